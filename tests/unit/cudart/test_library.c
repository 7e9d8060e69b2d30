/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/library.c: libraries that the program loads. */
#include "files.h"

static void test_libraries(void)
{
	cudaLibrary_t library;
	cudaKernel_t kernels[2] = {0}, kernel;
	void *word;
	size_t size = 0;
	unsigned count = 0;
	IS(cudaLibraryLoadData(NULL, files_ptx, NULL, NULL, 0, NULL, NULL, 0), BAD);
	YES(cudaLibraryLoadFromFile(&library, "/nothing", NULL, NULL, 0, NULL, NULL, 0) != OK);
	MUST(cudaLibraryLoadData(&library, files_ptx, NULL, NULL, 0, NULL, NULL, 0), OK);
	IS(cudaLibraryGetKernelCount(&count, library), OK);
	IS(count, 1);
	IS(cudaLibraryEnumerateKernels(kernels, 1, library), OK);
	IS(cudaLibraryGetKernel(&kernel, library, "add"), OK);
	YES(kernel == kernels[0]);
	IS(cudaLibraryGetKernel(NULL, library, "add"), BAD);
	IS(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaErrorSymbolNotFound);
	IS(cudaLibraryGetGlobal(&word, &size, library, "word"), OK);
	IS(size, 4);
	IS(files_word(word), 7);
	IS(cudaLibraryGetGlobal(&word, &size, library, "nothing"), cudaErrorSymbolNotFound);
	/* not a managed one */
	IS(cudaLibraryGetManaged(&word, &size, library, "word"), cudaErrorSymbolNotFound);
	/* A kernel of a library is launched as a stub is. */
	uint32_t *memory = files_memory(4, 0);
	void *arguments[] = {&memory};
	IS(cudaLaunchKernel(
		   (const void *)kernels[0], (dim3){1, 1, 1}, (dim3){4, 1, 1}, arguments, 0, NULL),
		OK);
	IS(files_word(memory + 3), 1);
	IS(cudaKernelSetAttributeForDevice(
		   kernels[0], cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 9),
		cudaErrorInvalidDevice);
	IS(cudaFree(memory), OK);
	IS(cudaLibraryUnload(library), OK);
	cudaGetLastError();
}

UNIT_SUITE(library, {"libraries", test_libraries})
