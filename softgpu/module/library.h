/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries (cuLibrary*): code that is loaded in a context when that needs it. */
#pragma once

#include "softgpu/cuda_api.h"

struct ckt_soft_context;
struct ckt_soft_function;

/*
 * The kernel's function in that context (loaded there first where need be), with a reference.
 */
CUresult ckt_soft_kernel_function(
	CUkernel handle, struct ckt_soft_context *context, struct ckt_soft_function **ret_function);
void ckt_soft_libraries_forget(struct ckt_soft_context *context);
