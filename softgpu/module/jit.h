/* SPDX-License-Identifier: Apache-2.0 */
/* JIT options, as cuModuleLoadDataEx and cuLinkCreate take them. */
#pragma once

#include <stdbool.h>

#include "softgpu/cuda_api.h"

struct ckt_cudacommon_jit;

/* The capability that the options ask for; false, and 0, where they ask for none. */
bool ckt_soft_jit_target(const struct ckt_cudacommon_jit *jit, unsigned *ret_target);
/* Whether a text compiled with the options would load on a device. */
CUresult ckt_soft_jit_check(const struct ckt_cudacommon_jit *jit, unsigned capability);
void ckt_soft_jit_finish(const struct ckt_cudacommon_jit *jit, const char *error);
/*
 * Whether the caller learns from its log that there is nothing for the device: it may have
 * something else to load, so nobody else is told.
 */
bool ckt_soft_jit_tells(const struct ckt_cudacommon_jit *jit, CUresult result);
