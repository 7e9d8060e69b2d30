/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's descriptors beside the genuine library's, whose functions for them need no GPU: every
 * attribute from -1 to 63 with every size from 0 to 16, in each form, must give the same status,
 * the same size and the same value.
 *
 * What newer libraries know is compared where the genuine one is as new; a layout too short for
 * them is not, as the genuine one then reads what lies behind it.
 *
 * Arguments: the shim, the genuine library.  77 where that is not there.
 */
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

static void *libraries[2]; /* ours, the genuine one */
static bool newer;         /* that is CUDA 13.2's or later, */
static bool newest;        /* 13.5's or later */

int unit_setup(int argc, char **argv)
{
	libraries[0] = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!libraries[0]) {
		fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "arguments: SHIM GENUINE");
		return 2;
	}
	libraries[1] = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!libraries[1])
		printf("%s\n", dlerror());
	newer = libraries[1] && dlsym(libraries[1], "cublasLtGroupedMatrixLayoutCreate");
	newest = libraries[1] && dlsym(libraries[1], "cublasLtMatmulAlgoGetHeuristicForStream");
	return libraries[1] ? 0 : 77;
}

typedef cublasStatus_t (*set_function)(
	void *descriptor, int attribute, const void *value, size_t size);
typedef cublasStatus_t (*get_function)(
	void *descriptor, int attribute, void *value, size_t size, size_t *written);

/*
 * room: of both libraries.  first_unknown: the number of the first attribute that one of them may
 * not know.
 */
static void compare(
	const char *set_name, const char *get_name, uint64_t room[2][64], int first_unknown)
{
	set_function set[2];
	get_function get[2];
	for (int side = 0; side < 2; side++) {
		set[side] = (set_function)dlsym(libraries[side], set_name);
		get[side] = (get_function)dlsym(libraries[side], get_name);
		MUST(set[side] && get[side], true);
	}
	for (int attribute = -1; attribute < first_unknown; attribute++) {
		for (size_t size = 0; size <= 16; size++) {
			uint8_t values[2][16], value[16];
			size_t written[2] = {777, 777};
			cublasStatus_t status[2];
			memset(values, 0xdd, sizeof values);
			for (int side = 0; side < 2; side++)
				status[side] = get[side](
					room[side], attribute, values[side], size, &written[side]);
			if (status[0] != status[1] || written[0] != written[1] ||
				memcmp(values[0], values[1], 16))
				printf("%s attribute %d size %zu\n", get_name, attribute, size);
			IS(status[0], status[1]);
			IS(written[0], written[1]);
			IS(memcmp(values[0], values[1], 16), 0);
			/*
			 * The value that is there, so that no later check of the genuine library's
			 * finds another.
			 */
			memcpy(value, values[0], 16);
			for (int side = 0; side < 2; side++)
				status[side] = size && !status[side]
					? set[side](room[side], attribute, value, size)
					: set[side](room[side], attribute, value, 15);
			IS(status[0], status[1]);
		}
		for (int side = 0; side < 2; side++)
			IS(get[side](room[side], attribute, NULL, 0, NULL),
				CUBLAS_STATUS_INVALID_VALUE);
	}
}

static void test_matmul(void)
{
	static const size_t sizes[] = {0, 8, 48, 56, 64, 88, 96, 176, 184, 208, 248, 256};
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		uint64_t room[2][64] = {{0}};
		cublasStatus_t status[2];
		for (int side = 0; side < 2; side++) {
			__typeof__(cublasLtMatmulDescInit_internal) *init =
				dlsym(libraries[side], "cublasLtMatmulDescInit_internal");
			status[side] = init((void *)room[side], sizes[i],
				CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
		}
		IS(status[0], status[1]);
		if (!status[1])
			compare("cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescGetAttribute",
				room,
				newest          ? 64
					: newer ? 41
						: 39);
	}
}

static void test_layout(void)
{
	/* No header had the 56 bytes that newer libraries are content with. */
	for (size_t size = newer ? 64 : 0; size <= 128; size += 8) {
		uint64_t room[2][64] = {{0}};
		cublasStatus_t status[2];
		for (int side = 0; side < 2; side++) {
			__typeof__(cublasLtMatrixLayoutInit_internal) *init =
				dlsym(libraries[side], "cublasLtMatrixLayoutInit_internal");
			status[side] = init((void *)room[side], size, CUDA_R_16BF, 5, 7, -9);
		}
		IS(status[0], status[1]);
		if (!status[1])
			compare("cublasLtMatrixLayoutSetAttribute",
				"cublasLtMatrixLayoutGetAttribute", room,
				newer && size >= 112 ? 64 : 9);
	}
}

static void test_others(void)
{
	uint64_t transform[2][64] = {{0}}, preference[2][64] = {{0}}, emulation[2][64] = {{0}};
	for (int side = 0; side < 2; side++) {
		__typeof__(cublasLtMatrixTransformDescInit_internal) *init_transform =
			dlsym(libraries[side], "cublasLtMatrixTransformDescInit_internal");
		__typeof__(cublasLtMatmulPreferenceInit_internal) *init_preference =
			dlsym(libraries[side], "cublasLtMatmulPreferenceInit_internal");
		__typeof__(cublasLtEmulationDescInit_internal) *init_emulation =
			dlsym(libraries[side], "cublasLtEmulationDescInit_internal");
		IS(init_transform((void *)transform[side], 64, CUDA_R_64F), CUBLAS_STATUS_SUCCESS);
		IS(init_preference((void *)preference[side], 64), CUBLAS_STATUS_SUCCESS);
		IS(init_emulation((void *)emulation[side], 64), CUBLAS_STATUS_SUCCESS);
		IS(init_transform((void *)transform[side], 56, CUDA_R_64F),
			CUBLAS_STATUS_ALLOC_FAILED);
		IS(init_preference((void *)preference[side], 56), CUBLAS_STATUS_ALLOC_FAILED);
	}
	compare("cublasLtMatrixTransformDescSetAttribute",
		"cublasLtMatrixTransformDescGetAttribute", transform, 64);
	compare("cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceGetAttribute",
		preference, 64);
	compare("cublasLtEmulationDescSetAttribute", "cublasLtEmulationDescGetAttribute", emulation,
		64);
}

/* A longer struct, with what newer libraries have room for in it. */
static void test_newer(void)
{
	uint64_t preference[2][64] = {{0}};
	if (!newer)
		return;
	for (size_t size = 0; size <= 128; size += 8) {
		uint64_t room[2][64] = {{0}};
		cublasStatus_t status[2];
		for (int side = 0; side < 2; side++) {
			cublasStatus_t (*init)(void *, size_t, cudaDataType, int, const void *,
				const void *, const void *) =
				dlsym(libraries[side], "cublasLtGroupedMatrixLayoutInit_internal");
			status[side] = init(room[side], size, CUDA_R_16BF, 5, (void *)0x100,
				(void *)0x200, (void *)0x300);
			IS(init(NULL, size, CUDA_R_16BF, 5, NULL, NULL, NULL),
				CUBLAS_STATUS_INVALID_VALUE);
		}
		IS(status[0], status[1]);
		if (!status[1])
			compare("cublasLtMatrixLayoutSetAttribute",
				"cublasLtMatrixLayoutGetAttribute", room, 64);
	}
	for (int side = 0; side < 2; side++) {
		__typeof__(cublasLtMatmulPreferenceInit_internal) *init =
			dlsym(libraries[side], "cublasLtMatmulPreferenceInit_internal");
		IS(init((void *)preference[side], 96), CUBLAS_STATUS_SUCCESS);
	}
	compare("cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceGetAttribute",
		preference, 64);
}

static void test_statuses(void)
{
	__typeof__(cublasLtGetStatusName) *name[2];
	__typeof__(cublasLtGetStatusString) *text[2];
	__typeof__(cublasLtLoggerSetLevel) *level[2];
	for (int side = 0; side < 2; side++) {
		name[side] = dlsym(libraries[side], "cublasLtGetStatusName");
		text[side] = dlsym(libraries[side], "cublasLtGetStatusString");
		level[side] = dlsym(libraries[side], "cublasLtLoggerSetLevel");
	}
	for (int status = -2; status < 40; status++) {
		TEXT(name[0]((cublasStatus_t)status), name[1]((cublasStatus_t)status));
		TEXT(text[0]((cublasStatus_t)status), text[1]((cublasStatus_t)status));
	}
	static const int levels[] = {-2, -1, 1, 2, 3, 4, 7, 8, 0};
	for (unsigned i = 0; i < COUNT(levels); i++)
		IS(level[0](levels[i]), level[1](levels[i]));
}

UNIT_SUITE(genuine, {"matmul", test_matmul}, {"layout", test_layout}, {"others", test_others},
	{"newer", test_newer}, {"statuses", test_statuses})
