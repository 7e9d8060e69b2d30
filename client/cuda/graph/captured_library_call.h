/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of forwarded libraries on streams that capture.  Threading: any thread. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the stream (by its id on the wire) captures, the call becomes the capture's next node, and
 * nothing is to be sent: *ret_captured. proc: CKT_LIB_PROC(); args: its arguments as they would be
 * sent; workspace: of ckt_client_lib_workspace_alloc, that the call uses, or 0.  Only calls that
 * put work on that one stream and answer nothing can be captured.  Errors are those of a launch on
 * such a stream; CUDA_ERROR_NOT_SUPPORTED above 1 MiB of arguments.
 */
CUresult ckt_client_lib_capture(uint64_t stream, uint32_t proc, const void *args, size_t size,
	uint64_t workspace, bool *ret_captured);

/* Device memory in the current context for a handle; also while a stream captures. */
CUresult ckt_client_lib_workspace_alloc(size_t bytes, uint64_t *ret_address);
/*
 * The handle has ended: frees the memory with the last captured call that uses it, or at once,
 * after all work.
 */
CUresult ckt_client_lib_workspace_free(uint64_t address);
