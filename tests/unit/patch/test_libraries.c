/* SPDX-License-Identifier: Apache-2.0 */
/* client/patch/libraries.c: which name leads to which shim, with a directory that holds some. */
#include "client/patch/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char directory[] = "/tmp/ckt-libraries-XXXXXX";
static const char *const made[] = {"libcublas.so.13", "libcublas.so.12", "libcublasLt.so.12",
	"libcublasLt.so.13", "libcufft.so.11", "libcusparseLt.so.0"};
static char *no_environment[] = {NULL};

static const char *in_directory(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static void make(void)
{
	strcpy(strrchr(directory, '-'), "-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	for (size_t i = 0; i < COUNT(made); i++)
		close(open(in_directory(made[i]), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void drop(void)
{
	for (size_t i = 0; i < COUNT(made); i++)
		unlink(in_directory(made[i]));
	unlink(in_directory("libcublas.so"));
	rmdir(directory);
	ckt_patch_libraries_init_in(NULL, no_environment);
}

/* NULL: none. */
static void leads(const char *name, const char *shim)
{
	char path[PATH_MAX];
	errno = 5;
	const char *found = ckt_patch_library_shim(name);
	IS(errno, 5);
	IS(ckt_patch_library_path(name, path), shim != NULL);
	if (!shim) {
		CU_ASSERT_PTR_NULL(found);
		return;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	TEXT(found, in_directory(shim));
	TEXT(path, found);
	/* It stays, and its own path leads to itself. */
	CU_ASSERT_PTR_EQUAL(ckt_patch_library_shim(found), found);
}

static void test_names(void)
{
	static const struct {
		const char *name, *shim;
	} rows[] = {
		{"libcublas.so.13", "libcublas.so.13"},
		{"libcublas.so.12", "libcublas.so.12"},
		{"/x/y/libcublas.so.13", "libcublas.so.13"},
		{"libcublas.so.13.0.0.19", "libcublas.so.13"},
		{"x/libcublas-0123abcd.so.12", "libcublas.so.12"},
		{"libcublas.so", "libcublas.so.13"},
		{"libcublasLt.so", "libcublasLt.so.13"},
		{"libcufft.so.11", "libcufft.so.11"},
		{"libcufft.so", "libcufft.so.11"},
		{"libcusparseLt.so.0", "libcusparseLt.so.0"},
		{"libcusparseLt.so", "libcusparseLt.so.0"},
		/* No file, no such version, other names. */
		{"libcufft.so.12", NULL},
		{"libnccl.so.2", NULL},
		{"libnccl.so", NULL},
		{"libcublas.so.11", NULL},
		{"libcublas.so.130", NULL},
		{"libcublas.so.13x", NULL},
		{"libcublas.so.", NULL},
		{"libcublas.so.x", NULL},
		{"libcublas.so13", NULL},
		{"libcublas.a", NULL},
		{"libcublas", NULL},
		{"libcublas-0123abc.so.12", NULL},
		{"libcublas-0123abcg.so.12", NULL},
		{"cublas.so.13", NULL},
		{"libcublasXt.so.13", NULL},
		{"libcublas.so.13/", NULL},
		{"libcublas.so.13/x", NULL},
		{"", NULL},
		{"/", NULL},
		{"lib", NULL},
		{"libcusparseLt.so.1", NULL},
		{"libcublas.so.99999999999999999999", NULL},
		{"libcublas.so.-13", NULL},
	};
	make();
	ckt_patch_libraries_init_in(directory, no_environment);
	for (size_t i = 0; i < COUNT(rows); i++)
		leads(rows[i].name, rows[i].shim);
	leads(NULL, NULL);
	YES(ckt_patch_library_known("/x/libnccl.so.2"));
	YES(ckt_patch_library_known("libcublas.so"));
	NO(ckt_patch_library_known("libcudart.so.13"));
	IS(ckt_patch_library_refusal("libcublas.so.13"), 15);
	IS(ckt_patch_library_refusal("libcufft.so.11"), 16);
	IS(ckt_patch_library_refusal("libother.so.1"), 1);
	drop();
	leads("libcublas.so.13", NULL);
}

/* A name without a version. */
static void test_versions(void)
{
	char link[PATH_MAX];
	make();
	ckt_patch_libraries_init_in(directory, no_environment);
	strcpy(link, in_directory("libcublas.so"));
	IS(symlink("libcublas.so.12", link), 0);
	leads(link, "libcublas.so.12");
	leads("libcublas.so", "libcublas.so.13");
	ckt_patch_library_loaded("/x/libcublas.so.12.1");
	leads("libcublas.so", "libcublas.so.12");
	leads("libcublas.so.13", "libcublas.so.13");
	ckt_patch_library_loaded("libcublas.so.13");
	leads("libcublas.so", "libcublas.so.13");
	/* What says nothing. */
	ckt_patch_library_loaded("libcublas.so");
	ckt_patch_library_loaded("libcublas.so.7");
	ckt_patch_library_loaded(NULL);
	leads("libcublas.so", "libcublas.so.13");
	leads("libcublasLt.so", "libcublasLt.so.13");
	drop();
}

static void test_choice(void)
{
	static const struct {
		const char *choice;
		bool cublas, lt, fft;
	} rows[] = {
		{"CRICKET_LIBRARIES=", true, true, true},
		{"CRICKET_LIBRARIES=none", false, false, false},
		{"CRICKET_LIBRARIES=cufft", false, false, true},
		{"CRICKET_LIBRARIES=cublas,cufft", true, false, true},
		{"CRICKET_LIBRARIES=-cufft", true, true, false},
		{"CRICKET_LIBRARIES=-cublas", false, false, true},
		{"CRICKET_LIBRARIES=-cublasLt,-cufft,", true, false, false},
		{"CRICKET_LIBRARIES=cublas,cublasLt", true, true, false},
		{"CRICKET_LIBRARIES=cublasLt", false, false, false},
		{"CRICKET_LIBRARIES=-", true, true, true},
		{"XCRICKET_LIBRARIES=none", true, true, true},
		{"REMOTE_GPU_ADDRESS=local:", false, false, false},
		{"REMOTE_GPU_ADDRESS=local:/x/libcuda.so.1", false, false, false},
		{"REMOTE_GPU_ADDRESS=localhost:1", true, true, true},
	};
	make();
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *environment[] = {(char *)"A=1", (char *)rows[i].choice, NULL};
		ckt_patch_libraries_init_in(directory, environment);
		leads("libcublas.so.13", rows[i].cublas ? "libcublas.so.13" : NULL);
		leads("libcublasLt.so.13", rows[i].lt ? "libcublasLt.so.13" : NULL);
		leads("libcufft.so.11", rows[i].fft ? "libcufft.so.11" : NULL);
	}
	/* NVIDIA's cuBLAS needs its own cuBLASLt. */
	unlink(in_directory("libcublas.so.12"));
	ckt_patch_libraries_init_in(directory, no_environment);
	leads("libcublasLt.so.12", NULL);
	leads("libcublasLt.so.13", "libcublasLt.so.13");
	drop();
}

/* Beside the program itself, where there is none. */
static void test_beside(void)
{
	ckt_patch_libraries_init((const void *)test_beside, no_environment);
	leads("libcufft.so.11", NULL);
	ckt_patch_libraries_init(NULL, no_environment);
	leads("libcufft.so.11", NULL);
}

UNIT_SUITE(libraries, {"names", test_names}, {"versions", test_versions}, {"choice", test_choice},
	{"beside", test_beside})
