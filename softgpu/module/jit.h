/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options of cuModuleLoadDataEx and cuLinkCreate. */
#pragma once

#include <stdbool.h>

#include "softgpu/cuda_api.h"

struct ckt_cudacommon_jit;

/* The capability in the options; false and 0 if they name none. */
bool ckt_soft_jit_target(const struct ckt_cudacommon_jit *jit, unsigned *ret_target);
/* Whether a device could load a text that was compiled with the options. */
CUresult ckt_soft_jit_check(const struct ckt_cudacommon_jit *jit, unsigned capability);
void ckt_soft_jit_finish(const struct ckt_cudacommon_jit *jit, const char *error);
/*
 * Whether the caller's log reports that there is no image for the device.  The caller may load
 * another image, so the soft GPU does not log the error.
 */
bool ckt_soft_jit_tells(const struct ckt_cudacommon_jit *jit, CUresult result);
