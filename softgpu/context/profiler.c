/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiler control.  Without a profiler attached a real driver accepts these calls and does
 * nothing, and so does this one.
 */
#include "softgpu/context/context.h"

CUresult CUDAAPI cuProfilerStart(void)
{
	struct ckt_soft_context *context;
	return ckt_soft_enter(&context);
}

CUresult CUDAAPI cuProfilerStop(void)
{
	struct ckt_soft_context *context;
	return ckt_soft_enter(&context);
}
