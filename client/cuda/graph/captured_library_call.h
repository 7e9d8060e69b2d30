/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of forwarded libraries on streams that capture.  Any thread may call these functions. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * If the stream (its id on the wire) captures, the call becomes the capture's next node.  The
 * function then sets *ret_captured, and the caller sends nothing.  proc: CKT_LIB_PROC().  args: the
 * arguments as the caller would send them.  workspace: memory of ckt_client_lib_workspace_alloc
 * that the call uses, or 0.
 *
 * Only calls that put work on that one stream and return nothing can be captured.  Errors are those
 * of a launch on such a stream, and CUDA_ERROR_NOT_SUPPORTED for more than 1 MiB of arguments.
 */
CUresult ckt_client_lib_capture(uint64_t stream, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured);

/* Allocates device memory for a handle in the current context, also during a capture. */
CUresult ckt_client_lib_workspace_alloc(size_t bytes, uint64_t *ret_address);
/*
 * Frees the memory of a handle that has ended.  If captured calls use it, the last of them frees
 * it.  Otherwise it is freed at once, after all work.
 */
CUresult ckt_client_lib_workspace_free(uint64_t address);
