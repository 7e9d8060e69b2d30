/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublas/logger.c: what the program's log and its callback hear, and where it goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/libs/cublas/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

static char heard[4096];

static void hear(const char *message)
{
	strncat(heard, message, sizeof heard - strlen(heard) - 1);
}

static const char *heard_since(void)
{
	static char copy[sizeof heard];
	memcpy(copy, heard, sizeof copy);
	heard[0] = 0;
	return copy;
}

/* One call by hand, one property, and one that is generated. */
static void call_some(void)
{
	int mode;
	cublasCreate_v2(NULL);
	cublasGetMathMode(NULL, (cublasMath_t *)&mode);
	cublasSgemm_v2(
		NULL, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, NULL, NULL, 1, NULL, 1, NULL, NULL, 1);
}

static void test_callback(void)
{
	cublasLogCallback callback = hear;
	IS(cublasGetLoggerCallback(NULL), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetLoggerCallback(&callback), CUBLAS_STATUS_SUCCESS);
	YES(callback == NULL);
	call_some();
	TEXT(heard_since(), "");
	/* It needs no cublasLoggerConfigure, which turns it off all the same. */
	IS(cublasSetLoggerCallback(hear), CUBLAS_STATUS_SUCCESS);
	IS(cublasGetLoggerCallback(&callback), CUBLAS_STATUS_SUCCESS);
	YES(callback == hear);
	call_some();
	const char *said = heard_since();
	HAS(said, "I! cuBLAS function cublasCreate_v2 called:\ni! Time: ");
	HAS(said, "I! cuBLAS function cublasGetMathMode called:\n");
	HAS(said, "I! cuBLAS function cublasSgemm_v2 called:\n");
	HAS(said, "Thread=");
	IS(cublasLoggerConfigure(0, 0, 0, NULL), CUBLAS_STATUS_SUCCESS);
	call_some();
	TEXT(heard_since(), "");
	IS(cublasLoggerConfigure(1, 0, 0, NULL), CUBLAS_STATUS_SUCCESS);
	call_some();
	HAS(heard_since(), "cublasSgemm_v2");
	IS(cublasSetLoggerCallback(NULL), CUBLAS_STATUS_SUCCESS);
	call_some();
	TEXT(heard_since(), "");
	IS(cublasLoggerConfigure(0, 0, 0, NULL), CUBLAS_STATUS_SUCCESS);
}

static void test_file(void)
{
	char name[] = "/tmp/ckt-cublas-log-XXXXXX", text[4096] = "";
	int file = mkstemp(name);
	MUST(file >= 0, true);
	IS(cublasLoggerConfigure(1, 0, 0, name), CUBLAS_STATUS_SUCCESS);
	call_some();
	MUST(read(file, text, sizeof text - 1) > 0, true);
	HAS(text, "I! cuBLAS function cublasSgemm_v2 called:\n");
	/* A file that cannot be is no error; what was there is left. */
	IS(cublasLoggerConfigure(1, 0, 0, "/nowhere/at/all"), CUBLAS_STATUS_SUCCESS);
	call_some();
	IS(read(file, text, sizeof text), 0);
	IS(cublasLoggerConfigure(0, 0, 0, name), CUBLAS_STATUS_SUCCESS);
	call_some();
	IS(read(file, text, sizeof text), 0);
	close(file);
	unlink(name);
}

UNIT_SUITE(logger, {"callback", test_callback}, {"file", test_file})
