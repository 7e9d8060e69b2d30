/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture (cudacommon/capture.h) for the functions of the soft GPU.  The nodes of a graph
 * that is being launched are not captured.
 */
#pragma once

#include <stddef.h>

#include "cudacommon/capture.h"
#include "softgpu/context/context.h"
#include "softgpu/cuda_api.h"
#include "softgpu/stream/stream.h"

/*
 * Like ckt_capture_enter: if *ret is not NULL, the graphs' lock is held, and the caller adds the
 * work as a node.
 */
static inline CUresult ckt_soft_capture(
	const struct ckt_soft_stream *stream, struct ckt_capture_stream **ret)
{
	*ret = NULL;
	return ckt_soft_in_graph ? CUDA_SUCCESS
				 : ckt_capture_enter(ckt_soft_stream_number(stream), ret);
}

static inline CUresult ckt_soft_capture_forbid(const struct ckt_soft_stream *stream)
{
	return ckt_soft_in_graph ? CUDA_SUCCESS
				 : ckt_capture_forbid(ckt_soft_stream_number(stream));
}

static inline CUresult ckt_soft_capture_unsafe(void)
{
	return ckt_soft_in_graph ? CUDA_SUCCESS : ckt_capture_unsafe();
}

/* Like ckt_soft_enter, for a call that is potentially unsafe for captures. */
static inline CUresult ckt_soft_enter_unsafe(struct ckt_soft_context **ret_context)
{
	CUresult result = ckt_soft_enter(ret_context);
	return result == CUDA_SUCCESS ? ckt_soft_capture_unsafe() : result;
}
