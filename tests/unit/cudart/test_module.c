/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cudart/module.c: registered modules: loaded for their first use, in each device; variables
 * by their shadows.
 */
#include "files.h"

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext,
	size_t size, int constant, int global);

static struct {
	uint32_t magic, version;
	const void *image, *more;
} wrapper = {0x466243b1, 1, files_ptx, NULL};
static char stub, missing, variable[4];

static void **register_all(void)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, &stub, NULL, "add", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &missing, NULL, "nothing", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, variable, NULL, "word", 0, sizeof variable, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

static void test_modules(void)
{
	void **handle = register_all(), *address, *again;
	const dim3 one = {1, 1, 1};
	uint32_t word = 0;
	size_t size = 0;
	/* Each device has a variable of its own. */
	for (int device = 1; device >= 0; device--) {
		IS(cudaSetDevice(device), OK);
		uint32_t *memory = files_memory(4, 0);
		void *arguments[] = {&memory};
		IS(cudaLaunchKernel(&stub, one, one, arguments, 0, NULL), OK);
		IS(files_word(memory), 1);
		IS(cudaFree(memory), OK);
		IS(cudaMemcpyFromSymbol(&word, variable, 4, 0, cudaMemcpyDeviceToHost), OK);
		IS(word, 7);
		word = 8;
		IS(cudaMemcpyToSymbol(variable, &word, 4, 0, cudaMemcpyHostToDevice), OK);
	}
	IS(cudaGetSymbolSize(&size, variable), OK);
	IS(size, 4);
	IS(cudaGetSymbolAddress(&address, variable), OK);
	IS(cudaGetSymbolAddress(&again, variable), OK);
	YES(address == again);
	IS(files_word(address), 8);
	IS(cudaLaunchKernel(&missing, one, one, NULL, 0, NULL), cudaErrorSymbolNotFound);
	__cudaUnregisterFatBinary(handle);
	void *arguments[] = {&address};
	YES(cudaLaunchKernel(&stub, one, one, arguments, 0, NULL) != OK);
	/* Opened again, it is a new one. */
	handle = register_all();
	IS(cudaMemcpyFromSymbol(&word, variable, 4, 0, cudaMemcpyDeviceToHost), OK);
	IS(word, 7);
	__cudaUnregisterFatBinary(handle);
	cudaGetLastError();
}

UNIT_SUITE(module, {"modules", test_modules})
