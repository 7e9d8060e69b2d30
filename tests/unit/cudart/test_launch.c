/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/launch.c: launches of stubs and of kernels of libraries, in all their forms. */
#include "files.h"

unsigned __cudaPushCallConfiguration(
	dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(
	dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry);

static const dim3 one = {1, 1, 1};

static void test_launches(void)
{
	static char nothing;
	const void *kernel = files_kernel();
	uint32_t *memory = files_memory(8, 0);
	void *arguments[] = {&memory};
	cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {8, 1, 1}};
	IS(cudaLaunchKernel(kernel, one, (dim3){8, 1, 1}, arguments, 0, NULL), OK);
	IS(cudaLaunchKernelExC(&config, kernel, arguments), OK);
	IS(files_word(memory + 7), 2);
	static const struct {
		dim3 grid, block;
		size_t shared_bytes;
	} wrong[] = {
		{{0, 1, 1}, {1, 1, 1}, 0},
		{{1, 1, 1}, {1, 0, 1}, 0},
		{{1, 1, 1}, {1025, 1, 1}, 0},
		{{1, 1, 1}, {1, 1, 1}, (size_t)1 << 32},
		{{1, 1, 1}, {1, 1, 1}, 1 << 24},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		config.gridDim = wrong[i].grid;
		config.blockDim = wrong[i].block;
		config.dynamicSmemBytes = wrong[i].shared_bytes;
		IS(cudaLaunchKernel(kernel, wrong[i].grid, wrong[i].block, arguments,
			   wrong[i].shared_bytes, NULL),
			BAD);
		IS(cudaGetLastError(), BAD);
		IS(cudaLaunchKernelExC(&config, kernel, arguments), BAD);
	}
	IS(cudaLaunchKernel(NULL, one, one, arguments, 0, NULL), cudaErrorInvalidDeviceFunction);
	IS(cudaLaunchKernel(&nothing, one, one, arguments, 0, NULL),
		cudaErrorInvalidResourceHandle);
	IS(cudaLaunchKernelExC(NULL, kernel, arguments), BAD);
	YES(cudaLaunchCooperativeKernel(&nothing, one, one, arguments, 0, NULL) != OK);
	IS(cudaLaunchCooperativeKernel(kernel, one, one, arguments, (size_t)1 << 32, NULL), BAD);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

/*
 * <<<>>> is put aside and taken back by the stub, the last one first, deeper than the thread's own
 * array too.
 */
static void test_configurations(void)
{
	enum { DEPTH = 40 };
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
	cudaKernel_t kernel;
	static char nothing;
	IS(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream),
		cudaErrorMissingConfiguration);
	for (unsigned i = 0; i < DEPTH; i++)
		IS(__cudaPushCallConfiguration((dim3){i + 1, 2, 3}, (dim3){4, 5, i + 1}, i * 8,
			   (cudaStream_t)(uintptr_t)i),
			0);
	for (unsigned i = DEPTH; i-- > 0;) {
		IS(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), OK);
		YES(grid.x == i + 1 && grid.y == 2 && block.z == i + 1 && shared_bytes == i * 8 &&
			(uintptr_t)stream == i);
	}
	IS(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream),
		cudaErrorMissingConfiguration);
	IS(__cudaGetKernel(&kernel, &nothing), cudaErrorInvalidDeviceFunction);
	IS(__cudaGetKernel(NULL, &nothing), BAD);
	cudaGetLastError();
}

UNIT_SUITE(launch, {"launches", test_launches}, {"configurations", test_configurations})
