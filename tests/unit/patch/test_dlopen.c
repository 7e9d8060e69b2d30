/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/preload/dlopen.c: the name that is opened instead of another.  This program's own calls go
 * through it, too.
 */
#include "client/preload/dlopen.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "client/patch/libraries.h"
#include "tests/unit/suite.h"

static char *no_environment[] = {NULL};

static const char *named(const char *name, int flags)
{
	errno = 5;
	const char *result = ckt_dlopen_name(name, flags, (const void *)named);
	IS(errno, 5);
	return result;
}

static int who(void *handle)
{
	int (*function)(int, double) = (int (*)(int, double))dlsym(handle, "cublasWho");
	CU_ASSERT_PTR_NOT_NULL_FATAL(function);
	return function(0, 0);
}

static void test_names(void)
{
	ckt_patch_libraries_init_in(SHIMS, no_environment);
	ckt_dlopen_init(no_environment);
	static const char *const kept[] = {"libc.so.6", "/nowhere/libx.so", "", "libcublas.so.11"};
	for (size_t i = 0; i < COUNT(kept); i++)
		CU_ASSERT_PTR_EQUAL(named(kept[i], RTLD_LAZY), kept[i]);
	CU_ASSERT_PTR_NULL(named(NULL, RTLD_LAZY));
	TEXT(named("/x/libcublas.so.13", RTLD_LAZY), SHIMS "/libcublas.so.13");
	TEXT(named("libcublas.so", RTLD_NOW | RTLD_GLOBAL), SHIMS "/libcublas.so.13");
	/* A probe of what is not there asks for the name itself. */
	TEXT(named("libcublas.so.13", RTLD_LAZY | RTLD_NOLOAD), "libcublas.so.13");
	void *handle = dlopen("/x/libcublas.so.13", RTLD_LAZY);
	CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
	IS(who(handle), 200);
	TEXT(named("libcublas.so.13", RTLD_LAZY | RTLD_NOLOAD), SHIMS "/libcublas.so.13");
	dlclose(handle);
}

/* Under an audit module everything passes. */
static void test_audit(void)
{
	char *environment[] = {(char *)"LD_AUDIT=/x/other.so:/x/libcricket-audit.so", NULL},
	     *other[] = {(char *)"LD_AUDIT=/x/other.so", NULL};
	ckt_dlopen_init(environment);
	TEXT(named("/x/libcublas.so.13", RTLD_LAZY), "/x/libcublas.so.13");
	ckt_dlopen_init(other);
	TEXT(named("/x/libcublas.so.13", RTLD_LAZY), SHIMS "/libcublas.so.13");
}

/*
 * A library that needs it, beside which NVIDIA's lies; and the loader's own words for what fails.
 */
static void test_needed(void)
{
	void *handle = dlopen(NEEDS_CUBLAS, RTLD_NOW);
	CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
	IS(who(handle), 200);
	dlclose(handle);
	CU_ASSERT_PTR_NULL(dlopen("/nowhere/libx.so", RTLD_NOW));
	HAS(dlerror(), "/nowhere/libx.so: cannot open shared object file");
	CU_ASSERT_PTR_NOT_NULL(dlopen(NULL, RTLD_NOW));
	char *off[] = {(char *)"LD_AUDIT=libcricket-audit.so", NULL};
	ckt_dlopen_init(off);
	ckt_patch_libraries_init_in(NULL, no_environment);
}

UNIT_SUITE(dlopen, {"names", test_names}, {"audit", test_audit}, {"needed", test_needed})
