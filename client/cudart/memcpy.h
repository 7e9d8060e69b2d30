/* SPDX-License-Identifier: Apache-2.0 */
/* Linear copies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

/* The memory type of a copy's source or destination. */
CUmemorytype ckt_rt_source_type(enum cudaMemcpyKind kind);
CUmemorytype ckt_rt_destination_type(enum cudaMemcpyKind kind);
/* Makes one linear copy in stream.  Unless async, it waits as the synchronous functions do. */
cudaError_t ckt_rt_copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t stream, bool async);
