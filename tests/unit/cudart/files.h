/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the suites of the runtime's files share: they run over the soft GPU in this process, with
 * two devices.
 */
#pragma once

#include "tests/unit/suite.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#define BAD cudaErrorInvalidValue
#define OK cudaSuccess

/*
 * A kernel that adds 1 to each of the words at its argument, one a thread; with a variable `word`.
 */
static const char files_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
				".visible .global .align 4 .u32 word = 7;\n"
				".visible .entry add(.param .u64 p)\n{\n"
				".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
				"ld.param.u64 %rd1, [p];\n"
				"mov.u32 %r1, %tid.x;\n"
				"mul.wide.u32 %rd2, %r1, 4;\n"
				"add.u64 %rd3, %rd1, %rd2;\n"
				"ld.global.u32 %r2, [%rd3];\n"
				"add.u32 %r3, %r2, 1;\n"
				"st.global.u32 [%rd3], %r3;\n"
				"ret;\n}\n";

static inline cudaLibrary_t files_library(void)
{
	static cudaLibrary_t library;
	if (!library)
		MUST(cudaLibraryLoadData(&library, files_ptx, NULL, NULL, 0, NULL, NULL, 0),
			cudaSuccess);
	return library;
}

static inline cudaKernel_t files_kernel(void)
{
	cudaKernel_t kernel;
	MUST(cudaLibraryGetKernel(&kernel, files_library(), "add"), cudaSuccess);
	return kernel;
}

/* Words of device memory that hold value. */
static inline uint32_t *files_memory(size_t words, uint8_t value)
{
	void *memory;
	MUST(cudaMalloc(&memory, words * sizeof(uint32_t)), cudaSuccess);
	MUST(cudaMemset(memory, value, words * sizeof(uint32_t)), cudaSuccess);
	return memory;
}

static inline uint32_t files_word(const uint32_t *at)
{
	uint32_t word = 0;
	MUST(cudaMemcpy(&word, at, sizeof word, cudaMemcpyDeviceToHost), cudaSuccess);
	return word;
}
