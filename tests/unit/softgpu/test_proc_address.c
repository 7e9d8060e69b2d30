/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/proc_address.c: which version of a function a program of some CUDA version gets,
 * and what is no function.
 */
#include "files.h"
#include "softgpu/context/device.h"
#include "softgpu/gen.h"

/* By the names that the library exports, whatever cuda.h makes of them. */
CUresult cuMemAlloc_old(CUdeviceptr *, size_t) __asm__("cuMemAlloc_v2");

static void test_versions(void)
{
	static const struct {
		const char *name;
		int version;
		cuuint64_t flags;
		CUdriverProcAddressQueryResult status;
	} table[] = {
		{"cuInit", 13000, 0, CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuInit", 2000, 0, CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuInit", 1000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
		{"cuNothing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuLibraryLoadData", 11000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
		{"cuLibraryLoadData", 12000, 0, CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
		{"cuProfilerStart", 4000, 0, CU_GET_PROC_ADDRESS_SUCCESS},
		{"cuMemcpyAsync", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
			CU_GET_PROC_ADDRESS_SUCCESS},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
		void *f = &f;
		OK(cuGetProcAddress(table[i].name, &f, table[i].version, table[i].flags, &status));
		IS(status, table[i].status);
		IS(f != NULL, table[i].status == CU_GET_PROC_ADDRESS_SUCCESS);
		OK(cuGetProcAddress(table[i].name, &f, table[i].version, table[i].flags, NULL));
	}
	void *newer, *older, *own, *shared;
	OK(cuGetProcAddress("cuMemAlloc", &newer, 13000, 0, NULL));
	YES(newer == (void *)cuMemAlloc_old);
	/* Two versions of one name, of different parameters. */
	OK(cuGetProcAddress("cuCtxCreate", &newer, 13000, 0, NULL));
	OK(cuGetProcAddress("cuCtxCreate", &older, 3020, 0, NULL));
	YES(newer && older && newer != older);
	OK(cuGetProcAddress("cuMemcpyHtoDAsync", &own, 13000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	OK(cuGetProcAddress("cuMemcpyHtoDAsync", &shared, 13000, 0, NULL));
	YES(own && shared && own != shared);
	OK(cuGetProcAddress(
		"cuInit", &own, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	YES(own == (void *)cuInit);
}

static void test_refused(void)
{
	void *f;
	CHECK_RESULT(cuGetProcAddress(NULL, &f, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGetProcAddress("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGetProcAddress("cuInit", &f, 13000, 4, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGetProcAddress("cuInit", &f, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGetProcAddress("cuInit", &f, 13001, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	const void *table = &f;
	CUuuid id = {{0}};
	CHECK_RESULT(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
	YES(table == NULL);
}

/* Sorted by name and version, which the look-up relies on; every entry a function. */
static void test_table(void)
{
	unsigned wrong = 0;
	YES(ckt_soft_entry_count > 400);
	for (size_t i = 0; i < ckt_soft_entry_count; i++) {
		const struct ckt_soft_entry *e = &ckt_soft_entries[i];
		wrong += !e->function || e->since < 2000 || e->since > CKT_SOFT_DRIVER_VERSION;
		if (i)
			wrong += strcmp(e[-1].name, e->name) > 0 ||
				(!strcmp(e[-1].name, e->name) && e[-1].since >= e->since);
	}
	IS(wrong, 0);
}

UNIT_SUITE(softgpu / context / proc_address, {"versions", test_versions}, {"refused", test_refused},
	{"table", test_table})
