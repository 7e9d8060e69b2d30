/*
 * Every generated function of cuBLAS, from the shim (client/libs/cublas/handle.c) through its message and the worker's handler to a double of
 * the genuine library: what it is called with, in both pointer modes, is what the program gave.
 */
#include "client/libs/cublas/cublas.h"
#include "server/worker/libs/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/roundtrip.h"

#define REFUSED_STATUS CUBLAS_STATUS_INVALID_VALUE
#define NO_OBJECT_STATUS CUBLAS_STATUS_NOT_INITIALIZED

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

#include "tests/unit/libs/cublas_roundtrip.inc"

static void test_everything(void)
{
	double_basics();
	double_install();
	MUST(cublasCreate_v2(&handle_of_the_test), CUBLAS_STATUS_SUCCESS);
	/* Sends the workspace that it begins with. */
	YES(ckt_cublas_take_handle(handle_of_the_test) != NULL);
	YES(sizeof roundtrips / sizeof *roundtrips > 480);
	for (unsigned mode = 0; mode < 2; mode++) {
		cublasSetPointerMode_v2(handle_of_the_test, (cublasPointerMode_t)mode);
		test_mode = mode;
		roundtrip_mode(roundtrips, sizeof roundtrips / sizeof *roundtrips);
	}
	IS(cublasDestroy_v2(handle_of_the_test), CUBLAS_STATUS_SUCCESS);
}

UNIT_SUITE(cublas_roundtrip, {"everything", test_everything})
