/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/reference.c: texture references of the program's own are what was set on them, and
 * gone when they are destroyed.
 */
#include "../softgpu/files.h"

static void test_settings(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 2};
	CUDA_ARRAY_DESCRIPTOR flat = {
		.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
	CUtexref r;
	CUarray array, told = NULL;
	CUarray_format format;
	CUdeviceptr memory, address = 77;
	size_t offset = 77;
	int channels;
	test_context();
	OK(cuMemAlloc(&memory, 4096));
	OK(cuArray3DCreate(&array, &descriptor));
	OK(cuTexRefCreate(&r));
	CHECK_RESULT(cuTexRefGetArray(&told, r), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefSetArray(r, array, CU_TRSA_OVERRIDE_FORMAT));
	OK(cuTexRefGetArray(&told, r));
	YES(told == array);
	OK(cuTexRefGetFormat(&format, &channels, r));
	IS(format, CU_AD_FORMAT_UNSIGNED_INT16);
	IS(channels, 2);
	CHECK_RESULT(cuTexRefSetArray(r, (CUarray)&offset, CU_TRSA_OVERRIDE_FORMAT),
		CUDA_ERROR_INVALID_HANDLE);
	/*
	 * Memory takes the array's place; an address in between needs somebody to be told where it
	 * begins.
	 */
	CHECK_RESULT(cuTexRefSetAddress(NULL, r, memory + 4, 16), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefSetAddress(&offset, r, memory + 4, 16));
	IS(offset, 4);
	OK(cuTexRefGetAddress(&address, r));
	IS(address, memory + 4);
	CHECK_RESULT(cuTexRefGetArray(&told, r), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexRefSetAddress(&offset, r, memory, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexRefSetAddress2D(r, &flat, memory, 64), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefSetAddress2D(r, &flat, memory, 128));
	OK(cuTexRefGetFormat(&format, &channels, r));
	IS(channels, 4);
	CHECK_RESULT(cuTexRefSetFormat(r, CU_AD_FORMAT_FLOAT, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexRefDestroy(r));
	CHECK_RESULT(cuTexRefDestroy(r), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuTexRefSetFormat(r, CU_AD_FORMAT_FLOAT, 1), CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(array));
	OK(cuMemFree(memory));
}

UNIT_SUITE(cudacommon / reference, {"settings", test_settings})
