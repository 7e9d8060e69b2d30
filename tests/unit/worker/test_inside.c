/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/inside.c: a library that wants libcuda.so.1 gets the pass-through one,
 * linked or asked, and through it hooks and driver; the driver keeps its place for the worker.
 */
#include <dlfcn.h>
#include <string.h>

#include "server/worker/libs/genuine.h"
#include "server/worker/libs/inside/inside.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

const struct toy *toy_library(void)
{
	static struct toy toy;
	static const struct ckt_genuine *genuine;
	char message[1024] = "";
	if (genuine)
		return &toy;
	setenv("CRICKET_LIBRARY_PATH", TOY_DIR, 1);
	if (ckt_genuine_open(&ckt_worker, "libtoy.so", 1, "", &genuine, message, sizeof message))
		CU_FAIL_FATAL(message);
#define TOY_FUNCTION(type, name, ...) *(void **)&toy.name = dlsym(genuine->handle, #name);
	TOY_FUNCTIONS
#undef TOY_FUNCTION
	return &toy;
}

static const char *file_of(void *function)
{
	Dl_info info;
	return dladdr(function, &info) ? info.dli_fname : "nowhere";
}

static void test_found(void)
{
	char message[1024] = "";
	toy_library();
	/* As a runtime looks for it: by name, though the driver was loaded first. */
	void *found = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	MUST(found != NULL, 1);
	HAS(file_of(dlsym(found, "cuMemAlloc_v2")), "libs/inside/libcuda.so.1");
	dlclose(found);
	HAS(file_of((void *)ckt_driver.cuMemAlloc_v2), "softgpu/libcuda.so.1");
	IS(ckt_inside_open(&ckt_worker, message, sizeof message), 0);
}

static void test_addresses(void)
{
	const struct toy *toy = toy_library();
	const uint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM,
		       per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	/* Hooked: ours.  cuGetProcAddress is, too, so that who asks for it stays here. */
	HAS(file_of(toy->toy_entry("cuMemAlloc", 3020, legacy)), "libs/inside/");
	HAS(file_of(toy->toy_entry("cuGetProcAddress", 12000, legacy)), "libs/inside/");
	HAS(file_of(toy->toy_entry("cuGetProcAddress", 11030, legacy)), "libs/inside/");
	HAS(file_of(toy->toy_entry("cuStreamCreate", 13000, legacy)), "libs/inside/");
	void *async = toy->toy_entry("cuMemFreeAsync", 11020, legacy),
	     *async_ptsz = toy->toy_entry("cuMemFreeAsync", 11020, per_thread);
	HAS(file_of(async), "libs/inside/");
	HAS(file_of(async_ptsz), "libs/inside/");
	YES(async != async_ptsz);
	/* Not hooked, and an older one that is another function: the driver's. */
	HAS(file_of(toy->toy_entry("cuMemcpyHtoDAsync", 3020, legacy)), "softgpu/");
	HAS(file_of(toy->toy_entry("cuCtxGetDevice", 2000, legacy)), "softgpu/");
	CU_ASSERT_PTR_NULL(toy->toy_entry("cuMemAllocOfTomorrow", 13000, legacy));
	CU_ASSERT_PTR_NULL(toy->toy_entry("cuMemAllocAsync", 11000, legacy));
}

static void test_owners(void)
{
	pthread_t executor = ckt_worker.executor;
	/* Of no object: the executor knows the context, other threads do not. */
	ckt_worker.executor = pthread_self();
	IS(ckt_inside_owner(), CKT_MEMORY_LIBRARY | ckt_handle_primary(0));
	memset(&ckt_worker.executor, 0, sizeof ckt_worker.executor);
	IS(ckt_inside_owner(), CKT_MEMORY_LIBRARY);
	uint64_t before = ckt_inside_enter(7);
	IS(before, 0);
	IS(ckt_inside_owner(), CKT_MEMORY_LIBRARY | 7);
	uint64_t outer = ckt_inside_enter(8);
	IS(outer, 7);
	IS(ckt_inside_owner(), CKT_MEMORY_LIBRARY | 8);
	ckt_inside_leave(outer);
	ckt_inside_leave(before);
	IS(ckt_inside_owner(), CKT_MEMORY_LIBRARY);
	ckt_worker.executor = executor;
}

UNIT_SUITE(
	libs_inside, {"found", test_found}, {"addresses", test_addresses}, {"owners", test_owners})
