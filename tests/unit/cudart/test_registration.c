/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/registration.c: what a program registers of its kernels and variables. */
#include "files.h"

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext,
	size_t size, int constant, int global);

static void test_records(void)
{
	static const uint64_t image[] = {UINT64_C(0x00100001ba55ed50), 8, 0};
	static struct {
		uint32_t magic, version;
		const void *image, *more;
	} wrapper = {0x466243b1, 1, image, NULL};
	static char stubs[300], variable[8];
	struct cudaFuncAttributes attributes;
	void **handle = __cudaRegisterFatBinary(&wrapper);
	void *address;
	/* More than the table begins with. */
	for (size_t i = 0; i < COUNT(stubs); i++)
		__cudaRegisterFunction(
			handle, &stubs[i], NULL, "stub", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, variable, NULL, "variable", 0, sizeof variable, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	/* Known, but with nothing for the device in the image. */
	for (size_t i = 0; i < COUNT(stubs); i += 50)
		IS(cudaFuncGetAttributes(&attributes, &stubs[i]), cudaErrorNoKernelImageForDevice);
	YES(cudaGetSymbolAddress(&address, variable) != cudaErrorInvalidSymbol);
	__cudaUnregisterFatBinary(handle);
	YES(cudaFuncGetAttributes(&attributes, stubs) != OK);
	/* never registered */
	IS(cudaGetSymbolAddress(&address, variable + 4), cudaErrorInvalidSymbol);
	cudaGetLastError();
}

UNIT_SUITE(registration, {"records", test_records})
