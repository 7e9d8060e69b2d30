/* SPDX-License-Identifier: Apache-2.0 */
/* What most programs of the driver API begin with, without a line for it. */
#pragma once

#include "api.h"
#include "kernels.h"

/* A call that is no part of the test: it has to succeed. */
#define QUIET(name, ...)                                           \
	do {                                                       \
		int quiet_ = (int)FUNCTION(name)(__VA_ARGS__);     \
		if (quiet_) {                                      \
			REMARK(#name " for the test: %d", quiet_); \
			api_end_case();                            \
		}                                                  \
	} while (0)

/* The first device's primary context, current. */
static inline CUcontext start(void)
{
	CUcontext context = NULL;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &context, 0);
	QUIET(cuCtxSetCurrent, context);
	return context;
}

static inline CUmodule load(void)
{
	CUmodule module = NULL;
	QUIET(cuModuleLoadData, &module, api_ptx);
	return module;
}

static inline CUfunction kernel(CUmodule module, const char *name)
{
	CUfunction function = NULL;
	QUIET(cuModuleGetFunction, &function, module, name);
	return function;
}

/* Device memory, every byte 0xab. */
static inline CUdeviceptr memory(size_t size)
{
	CUdeviceptr p = 0;
	QUIET(cuMemAlloc_v2, &p, size);
	QUIET(cuMemsetD8_v2, p, 0xab, size);
	return p;
}

/* Its contents, after all work on the device. */
static inline void CONTENT(const char *what, CUdeviceptr p, size_t size)
{
	static uint8_t data[1 << 20];
	memset(data, 0xcd, size);
	QUIET(cuCtxSynchronize);
	QUIET(cuMemcpyDtoH_v2, data, p, size);
	BYTES(what, data, size);
}

/* i, i + 1, ... */
static inline void *numbers(void *data, size_t size, int first)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = (uint8_t)(first + (int)i);
	return data;
}
