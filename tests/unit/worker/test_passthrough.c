/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/passthrough.c: the library by itself, in front of a driver of the
 * test's: every name is exported, stubs keep all arguments, a newer version of a hooked function is
 * not given away.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "server/worker/libs/inside/passthrough.h"
#include "tests/unit/suite.h"

static uint64_t seen[12];
static double seen_double[8];

/* More arguments than registers, of both kinds. */
static CUresult many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
	double g, double h, uint64_t i, uint64_t j, float k)
{
	memcpy(seen, (uint64_t[]){a, b, c, d, e, f, i, j}, 8 * sizeof *seen);
	memcpy(seen_double, (double[]){g, h, (double)k}, 3 * sizeof *seen_double);
	return (CUresult)4242;
}

static CUresult free_real(CUdeviceptr address)
{
	return (CUresult)(address + 1);
}

static CUresult free_hooked(CUdeviceptr address)
{
	return (CUresult)(address + 2);
}

static int tomorrow; /* the driver has a version of cuMemFree for CUDA 99 */

static CUresult get_address(const char *symbol, void **address, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	*address = NULL;
	if (!strcmp(symbol, "cuLaunchKernel"))
		*address = !(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ? (void *)many
			: version >= 7000 ? (void *)free_real
					  : NULL;
	if (!strcmp(symbol, "cuMemFree"))
		*address = tomorrow && version >= 99000 ? (void *)many : (void *)free_real;
	else if (!strcmp(symbol, "cuOnlyThisDriverHasIt"))
		*address = (void *)many;
	if (status)
		*status = *address ? CU_GET_PROC_ADDRESS_SUCCESS
				   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

static bool old_driver;

static void *symbol(const char *name)
{
	if (!strcmp(name, "cuGetProcAddress_v2"))
		return old_driver ? NULL : (void *)get_address;
	if (!strcmp(name, "cuMemFree_v2"))
		return (void *)free_real;
	return strcmp(name, "cuLaunchGridAsync") ? (void *)many : NULL;
}

static char told[64];
static int told_version;

static void unknown(const char *name, int version)
{
	strcpy(told, name);
	told_version = version;
}

static void *open_fresh(void)
{
	const char *file = getenv("CRICKET_INSIDE");
	void *handle = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!handle)
		CU_FAIL_FATAL(file ? dlerror() : "CRICKET_INSIDE says where the library is");
	return handle;
}

static int set(void *handle, const struct ckt_inside_hook *hooks, size_t count, const char **wrong)
{
	ckt_inside_set_fn *function;
	*(void **)&function = dlsym(handle, CKT_INSIDE_SET);
	return function(symbol, hooks, count, unknown, wrong);
}

static const struct ckt_inside_hook hooks[] = {{"cuMemFree_v2", (void *)free_hooked}};

/* Before it is set nothing jumps to nowhere. */
static void test_unset(void)
{
	CUresult (*function)(unsigned);
	void *handle = open_fresh();
	*(void **)&function = dlsym(handle, "cuInit");
	IS(function(0), CUDA_ERROR_NOT_INITIALIZED);
	const char *wrong = NULL;
	static const struct ckt_inside_hook no_such[] = {{"cuNoSuchFunction", (void *)many}};
	IS(set(handle, no_such, 1, &wrong), -1);
	TEXT(wrong, "cuNoSuchFunction");
	old_driver = true;
	IS(set(handle, hooks, 1, &wrong), -1);
	TEXT(wrong, "cuGetProcAddress_v2");
	old_driver = false;
}

static void test_stubs(void)
{
	void *handle = open_fresh();
	const char *wrong;
	MUST(set(handle, hooks, 1, &wrong), 0);
	CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double,
		double, uint64_t, uint64_t, float);
	*(void **)&function = dlsym(handle, "cuLaunchKernel");
	IS(function(1, 2, 3, 4, 5, 6, 1.5, 2.5, 7, 8, 3.5f), 4242);
	for (unsigned i = 0; i < 8; i++)
		IS(seen[i], i + 1);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_DOUBLE_EQUAL(seen_double[i], 1.5 + i, 0);
	CUresult (*release)(CUdeviceptr), (*missing)(void);
	*(void **)&release = dlsym(handle, "cuMemFree_v2");
	IS(release(10), 12);
	/* One that the driver lacks. */
	*(void **)&missing = dlsym(handle, "cuLaunchGridAsync");
	IS(missing(), CUDA_ERROR_NOT_SUPPORTED);
	/* Undocumented names that NVIDIA's library exports are there too. */
	YES(dlsym(handle, "cudbgApiInit") != NULL);
	YES(dlsym(handle, "cuEGLApiInit") != NULL);
	YES(dlsym(handle, "cuGetExportTable") != NULL);
}

static void test_addresses(void)
{
	void *handle = open_fresh(), *found = NULL;
	const char *wrong;
	MUST(set(handle, hooks, 1, &wrong), 0);
	__typeof__(&get_address) ask;
	CUresult (*ask_old)(const char *, void **, int, cuuint64_t);
	CUdriverProcAddressQueryResult status;
	*(void **)&ask = dlsym(handle, "cuGetProcAddress_v2");
	*(void **)&ask_old = dlsym(handle, "cuGetProcAddress");
	IS(ask("cuMemFree", &found, 13000, 0, &status), CUDA_SUCCESS);
	YES(found == dlsym(handle, "cuMemFree_v2"));
	IS(ask("cuOnlyThisDriverHasIt", &found, 13000, 0, &status), CUDA_SUCCESS);
	YES(found == (void *)many);
	IS(ask_old("cuNobodyHasIt", &found, 13000, 0), CUDA_ERROR_NOT_FOUND);
	/* A version of a hooked function that the hooks do not know would allocate past them. */
	IS(ask("cuMemFree", &found, 99000, 0, &status), CUDA_SUCCESS);
	YES(found == dlsym(handle, "cuMemFree_v2"));
	tomorrow = 1;
	IS(ask("cuMemFree", &found, 99000, 0, &status), CUDA_SUCCESS);
	CU_ASSERT_PTR_NULL(found);
	IS(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	TEXT(told, "cuMemFree");
	IS(told_version, 99000);
	IS(ask("cuMemFree", &found, 13000, 0, &status), CUDA_SUCCESS);
	YES(found == dlsym(handle, "cuMemFree_v2"));
	tomorrow = 0;
}

/*
 * What cuBLAS's runtime asks for: the default stream of each thread came with CUDA 7.0, to
 * functions that were older.
 */
static void test_per_thread(void)
{
	static const struct ckt_inside_hook both[] = {
		{"cuLaunchKernel", (void *)many}, {"cuLaunchKernel_ptsz", (void *)free_hooked}};
	static const int versions[] = {7000, 12000, 13000};
	void *handle = open_fresh(), *found;
	const char *wrong;
	MUST(set(handle, both, 2, &wrong), 0);
	__typeof__(&get_address) ask;
	CUdriverProcAddressQueryResult status;
	*(void **)&ask = dlsym(handle, "cuGetProcAddress_v2");
	told[0] = 0;
	for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
		IS(ask("cuLaunchKernel", &found, versions[i],
			   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status),
			CUDA_SUCCESS);
		YES(found == dlsym(handle, "cuLaunchKernel_ptsz"));
		IS(ask("cuLaunchKernel", &found, versions[i], CU_GET_PROC_ADDRESS_LEGACY_STREAM,
			   &status),
			CUDA_SUCCESS);
		YES(found == dlsym(handle, "cuLaunchKernel"));
	}
	TEXT(told, "");
}

UNIT_SUITE(passthrough, {"unset", test_unset}, {"stubs", test_stubs}, {"addresses", test_addresses},
	{"per thread", test_per_thread})
