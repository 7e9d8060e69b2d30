/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/reference.c: texture references: nothing but what was set on them. */
#include "relay.h"

static void test_reference(void)
{
	CUtexref r;
	CUarray array;
	CUdeviceptr address;
	CUfilter_mode mode;
	CUarray_format format;
	int channels, most;
	unsigned flags;
	size_t offset;
	LOCAL(cuTexRefCreate(&r), CUDA_SUCCESS);
	LOCAL(cuTexRefCreate(NULL), BAD);
	LOCAL(cuTexRefSetFilterMode(r, CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
	LOCAL(cuTexRefGetFilterMode(&mode, r), CUDA_SUCCESS);
	IS(mode, CU_TR_FILTER_MODE_LINEAR);
	/* as an H200: not looked at */
	LOCAL(cuTexRefSetFilterMode(r, (CUfilter_mode)9), CUDA_SUCCESS);
	LOCAL(cuTexRefSetMipmapFilterMode(r, (CUfilter_mode)9), BAD);
	LOCAL(cuTexRefSetMaxAnisotropy(r, 4), CUDA_SUCCESS);
	LOCAL(cuTexRefGetMaxAnisotropy(&most, r), CUDA_SUCCESS);
	IS(most, 4);
	LOCAL(cuTexRefSetFlags(r, CU_TRSF_SRGB), CUDA_SUCCESS);
	LOCAL(cuTexRefGetFlags(&flags, r), CUDA_SUCCESS);
	IS(flags, CU_TRSF_SRGB);
	LOCAL(cuTexRefSetFlags(r, 0x8000), BAD);
	LOCAL(cuTexRefSetFormat(r, CU_AD_FORMAT_SIGNED_INT16, 2), CUDA_SUCCESS);
	LOCAL(cuTexRefGetFormat(&format, &channels, r), CUDA_SUCCESS);
	IS(format * 10 + channels, CU_AD_FORMAT_SIGNED_INT16 * 10 + 2);
	LOCAL(cuTexRefSetFormat(r, CU_AD_FORMAT_SIGNED_INT16, 3), BAD);
	LOCAL(cuTexRefGetArray(&array, r), BAD); /* none is attached */
	LOCAL(cuTexRefSetArray(r, (CUarray)0x1234, CU_TRSA_OVERRIDE_FORMAT),
		CUDA_ERROR_INVALID_HANDLE);
	CUdeviceptr memory = memory_of(4096, 0);
	LOCAL(cuTexRefSetAddress(&offset, r, memory + 4, 64), CUDA_SUCCESS);
	IS(offset, 4);
	LOCAL(cuTexRefSetAddress(NULL, r, memory + 4, 64), BAD);
	LOCAL(cuTexRefSetAddress(&offset, r, memory, 8192), BAD);
	LOCAL(cuTexRefGetAddress(&address, r), CUDA_SUCCESS);
	IS(address, memory + 4);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuTexRefDestroy(r), CUDA_SUCCESS);
	LOCAL(cuTexRefDestroy(r), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuTexRefGetFlags(&flags, r), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuTexRefGetFlags(&flags, NULL), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(reference, {"reference", test_reference})
