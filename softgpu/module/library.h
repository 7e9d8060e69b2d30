/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries (cuLibrary*): code that each context loads on first use. */
#pragma once

#include "softgpu/cuda_api.h"

struct ckt_soft_context;
struct ckt_soft_function;

/*
 * The kernel's function in the context, with a reference; loads the library there first if
 * necessary.
 */
CUresult ckt_soft_kernel_function(
	CUkernel handle, struct ckt_soft_context *context, struct ckt_soft_function **ret_function);
void ckt_soft_libraries_forget(struct ckt_soft_context *context);
