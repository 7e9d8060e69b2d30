/* SPDX-License-Identifier: Apache-2.0 */
/* What most programs of the runtime API begin with. */
#pragma once

#include "api.h"
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

/* A call that is no part of the test: it has to succeed. */
#define QUIET(name, ...)                                           \
	do {                                                       \
		int quiet_ = (int)FUNCTION(name)(__VA_ARGS__);     \
		if (quiet_) {                                      \
			REMARK(#name " for the test: %d", quiet_); \
			api_end_case();                            \
		}                                                  \
	} while (0)

/* Device memory, every byte 0xab. */
static inline char *memory(size_t size)
{
	void *p = NULL;
	QUIET(cudaMalloc, &p, size);
	QUIET(cudaMemset, p, 0xab, size);
	return (char *)p;
}

/* Its contents, after all work on the device. */
static inline void CONTENT(const char *what, const void *p, size_t size)
{
	static uint8_t data[1 << 16];
	memset(data, 0xcd, sizeof(data));
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaMemcpy, data, p, size, cudaMemcpyDeviceToHost);
	BYTES(what, data, size);
}

/* i, i + 1, ... */
static inline void *numbers(void *data, size_t size, int first)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = (uint8_t)(first + (int)i);
	return data;
}

static inline cudaStream_t new_stream(void)
{
	cudaStream_t stream = NULL;
	QUIET(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
	return stream;
}
