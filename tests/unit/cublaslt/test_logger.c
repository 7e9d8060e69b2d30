/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cublasLt/logger.c: what the program's logger hears. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cublaslt/bridge.h"

static char heard[256];
static int levels;

static void hear(int level, const char *function, const char *message)
{
	levels += level;
	snprintf(heard, sizeof heard, "%s: %s", function, message);
}

static void test_levels(void)
{
	IS(cublasLtLoggerSetLevel(-1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtLoggerSetLevel(7), CUBLAS_STATUS_INVALID_VALUE);
	for (int level = 0; level <= 6; level++)
		IS(cublasLtLoggerSetLevel(level), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtLoggerSetMask(0), CUBLAS_STATUS_SUCCESS);
}

static void test_callback(void)
{
	bridge_handle();
	IS(cublasLtLoggerSetCallback(hear), CUBLAS_STATUS_SUCCESS);
	cublasLtDestroy(NULL);
	TEXT(heard, "");
	cublasLtLoggerSetLevel(1);
	cublasLtDestroy(NULL);
	TEXT(heard, "cublasLtDestroy: CUBLAS_STATUS_INVALID_VALUE");
	IS(levels, 1);
	heard[0] = 0;
	int value;
	cublasLtGetProperty(MAJOR_VERSION, &value);
	TEXT(heard, "");
	/* Calls that go well belong to the trace. */
	cublasLtLoggerSetMask(16);
	cublasLtGetProperty(MAJOR_VERSION, &value);
	TEXT(heard, "cublasLtGetProperty: CUBLAS_STATUS_SUCCESS");
	IS(levels, 1 + 5);
	cublasLtLoggerSetMask(0);
	cublasLtLoggerSetCallback(NULL);
}

static void test_file(void)
{
	char path[] = "/tmp/cublaslt-log-XXXXXX", line[256] = "";
	int fd = mkstemp(path);
	MUST(fd >= 0, true);
	IS(cublasLtLoggerOpenFile("/nonexistent/file"), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtLoggerOpenFile(path), CUBLAS_STATUS_SUCCESS);
	cublasLtLoggerSetLevel(1);
	cublasLtDestroy(NULL);
	cublasLtLoggerSetMask(0);
	IS(cublasLtLoggerOpenFile(NULL), CUBLAS_STATUS_SUCCESS);
	YES(read(fd, line, sizeof line - 1) > 0);
	HAS(line, "[cublasLt]");
	HAS(line, "[Error][cublasLtDestroy] CUBLAS_STATUS_INVALID_VALUE\n");
	/* A file of the program's stays the program's. */
	FILE *own = fdopen(fd, "r+");
	IS(cublasLtLoggerSetFile(own), CUBLAS_STATUS_SUCCESS);
	IS(cublasLtLoggerSetFile(NULL), CUBLAS_STATUS_SUCCESS);
	IS(fclose(own), 0);
	unlink(path);
}

/* In the end: it is for good. */
static void test_disable(void)
{
	heard[0] = 0;
	cublasLtLoggerSetCallback(hear);
	cublasLtLoggerSetLevel(5);
	IS(cublasLtLoggerForceDisable(), CUBLAS_STATUS_SUCCESS);
	cublasLtDestroy(NULL);
	TEXT(heard, "");
	cublasLtLoggerSetMask(0);
	cublasLtLoggerSetCallback(NULL);
}

UNIT_SUITE(logger, {"levels", test_levels}, {"callback", test_callback}, {"file", test_file},
	{"disable", test_disable})
