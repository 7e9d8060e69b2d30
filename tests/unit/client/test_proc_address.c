/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/context/proc_address.c: entry points by name and version. */
#include <dlfcn.h>

#include "relay.h"

static void test_versions(void)
{
	static const struct {
		const char *name;
		int version;
		const char *symbol; /* NULL: none */
		CUdriverProcAddressQueryResult status;
	} cases[] = {
		{"cuMemAlloc", 3020, "cuMemAlloc_v2", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc", 13000, "cuMemAlloc_v2", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc", 2000, "cuMemAlloc", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc", 1, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
		{"cuMemAlloc_v2", 13000, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuNothing", 13000, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"", 13000, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuInit", 13000, "cuInit", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuCtxCreate", 12000, "cuCtxCreate_v3", CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuCtxCreate", 13000, "cuCtxCreate_v4", CU_GET_PROC_ADDRESS_SUCCESS},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		void *address = (void *)1;
		CUdriverProcAddressQueryResult status;
		LOCAL(cuGetProcAddress(cases[i].name, &address, cases[i].version, 0, &status),
			CUDA_SUCCESS);
		IS(status, cases[i].status);
		if (!IS((uintptr_t)address,
			    cases[i].symbol ? (uintptr_t)dlsym(RTLD_DEFAULT, cases[i].symbol) : 0))
			CU_FAIL("of a row of the table");
	}
	void *legacy, *per_thread;
	IS(cuGetProcAddress(
		   "cuMemcpyHtoDAsync", &legacy, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL),
		CUDA_SUCCESS);
	IS(cuGetProcAddress("cuMemcpyHtoDAsync", &per_thread, 13000,
		   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL),
		CUDA_SUCCESS);
	YES(legacy != per_thread && per_thread == dlsym(RTLD_DEFAULT, "cuMemcpyHtoDAsync_v2_ptsz"));
	IS(cuGetProcAddress(NULL, &legacy, 13000, 0, NULL), BAD);
	IS(cuGetProcAddress("cuInit", NULL, 13000, 0, NULL), BAD);
	IS(cuGetProcAddress("cuInit", &legacy, 13000, 0x80, NULL), BAD);
	const void *table = (void *)1;
	CUuuid id = {{0}};
	LOCAL(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
	CU_ASSERT_PTR_NULL(table);
	/* CUPTI's first table is there, and has room for no function. */
	const CUuuid cupti = {{0x7c, (char)0xb6, 0x3f, (char)0x9b, (char)0x9c, (char)0xa4,
		(char)0x8e, 0x42, (char)0xa4, (char)0x84, (char)0xbe, (char)0xb6, 0x6e, 0x6a,
		(char)0xed, 0x7f}};
	LOCAL(cuGetExportTable(&table, &cupti), CUDA_SUCCESS);
	MUST(table != NULL, true);
	IS(*(const uint64_t *)table, sizeof(uint64_t));
	for (unsigned i = 1; i < 512; i++)
		IS(((const uint64_t *)table)[i], 0);
	LOCAL(cuGetExportTable(NULL, &cupti), CUDA_ERROR_NOT_SUPPORTED);
	LOCAL(cuGetExportTable(&table, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

UNIT_SUITE(proc_address, {"versions", test_versions})
