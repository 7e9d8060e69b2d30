/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublas/answers.c: versions and texts. */
#include "client/libs/cublas/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

static void test_versions(void)
{
	int value = 0;
	double_basics();
	IS(cublasGetVersion_v2(NULL, NULL), CUBLAS_STATUS_INVALID_VALUE);
	MUST(cublasGetVersion_v2(NULL, &value), CUBLAS_STATUS_SUCCESS);
	IS(value, 130100);
	loop_mark();
	IS(cublasGetProperty(MAJOR_VERSION, &value), CUBLAS_STATUS_SUCCESS);
	IS(value, 13);
	IS(cublasGetProperty(MINOR_VERSION, &value), CUBLAS_STATUS_SUCCESS);
	IS(value, 1);
	IS(cublasGetProperty(PATCH_LEVEL, &value), CUBLAS_STATUS_SUCCESS);
	IS(value, 0);
	IS(cublasGetProperty((libraryPropertyType)3, &value), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetCudartVersion(), CUDART_VERSION);
	/* Asked once. */
	IS(loop_waited, 0);
}

static void test_texts(void)
{
	TEXT(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
	HAS(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED), "allocation");
	TEXT(cublasGetStatusName((cublasStatus_t)2), "CUBLAS_STATUS_UNKNOWN");
}

UNIT_SUITE(answers, {"versions", test_versions}, {"texts", test_texts})
