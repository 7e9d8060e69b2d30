/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every generated function of cuBLAS, from the shim (client/libs/cublas/handle.c) through its
 * message and the worker's handler to a double of the genuine library: what it is called with, in
 * both pointer modes, is what the program gave.
 */
#include "client/libs/cublas/cublas.h"
#include "server/worker/libs/cublas/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/roundtrip.h"

#define REFUSED_STATUS CUBLAS_STATUS_INVALID_VALUE
#define NO_OBJECT_STATUS CUBLAS_STATUS_NOT_INITIALIZED

cublasStatus_t cublasShutdown(void);

static cublasHandle_t handle_of_the_test;

static cublasHandle_t test_object_handle(void)
{
	return handle_of_the_test;
}

static void expect_object(cublasHandle_t handle)
{
	cublasHandle_t real = double_handle();
	expect_put(&real, sizeof real);
}

/* A value that the function takes; the passes differ. */
static int test_enum(const char *type)
{
	bool second = test_pass == PASS_LONGEST;
	if (!strcmp(type, "cublasComputeType_t"))
		return second ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
	if (!strcmp(type, "cudaDataType"))
		return second ? CUDA_C_64F : CUDA_R_32F;
	return second;
}

/*
 * For the API without handles: the current context's, what its last call answered, and the
 * character of an enum's value.
 */
static cublasHandle_t test_default(void)
{
	struct ckt_cublas_default *own = ckt_cublas_default();
	MUST(own != NULL, true);
	return own->handle;
}

static int test_default_status(void)
{
	return (int)ckt_cublas_default()->error;
}

static char test_char(const char *type, int value)
{
	static const struct {
		const char *type, *small, *large;
	} characters[] = {
		{"cublasOperation_t", "ntc", "NTC"},
		{"cublasFillMode_t", "lu", "LU"},
		{"cublasSideMode_t", "lr", "LR"},
		{"cublasDiagType_t", "nu", "NU"},
	};
	for (size_t i = 0; i < sizeof characters / sizeof *characters; i++)
		if (!strcmp(type, characters[i].type))
			return (test_pass == PASS_NULL ? characters[i].large
						       : characters[i].small)[value];
	MUST(!"a type without characters", true);
	return 0;
}

#include "tests/unit/libs/cublas_roundtrip.inc"

static void test_everything(void)
{
	double_basics();
	double_install();
	MUST(cublasCreate_v2(&handle_of_the_test), CUBLAS_STATUS_SUCCESS);
	YES(ckt_cublas_take_handle(handle_of_the_test) != NULL);
	YES(sizeof roundtrips / sizeof *roundtrips > 480);
	for (unsigned mode = 0; mode < 2; mode++) {
		cublasSetPointerMode_v2(handle_of_the_test, (cublasPointerMode_t)mode);
		test_mode = mode;
		roundtrip_mode(roundtrips, sizeof roundtrips / sizeof *roundtrips);
	}
	IS(cublasDestroy_v2(handle_of_the_test), CUBLAS_STATUS_SUCCESS);
}

static void test_without_handles(void)
{
	double_basics();
	double_install();
	YES(ckt_cublas_take_handle(test_default()) != NULL);
	IS(sizeof legacies / sizeof *legacies, 150);
	test_mode = 0;
	roundtrip_mode(legacies, sizeof legacies / sizeof *legacies);
	cublasShutdown();
}

UNIT_SUITE(cublas_roundtrip, {"everything", test_everything},
	{"without handles", test_without_handles})
