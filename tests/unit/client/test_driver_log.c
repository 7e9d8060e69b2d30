/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/driver_log.c: the driver's log: a line for what is not supported, whole lines
 * only, iterators and callbacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

static unsigned called;
static char heard[256];

static void hear(void *data, CUlogLevel level, char *message, size_t length)
{
	called++;
	IS(level, CU_LOG_LEVEL_ERROR);
	YES(data == heard);
	snprintf(heard, sizeof heard, "%.*s", (int)length, message);
}

static void test_log(void)
{
	CUlogIterator before, now;
	CUlogsCallbackHandle handle;
	char text[4096], path[] = "/tmp/ckt-log-XXXXXX";
	size_t size = sizeof text;
	LOCAL(cuLogsCurrent(&before, 0), CUDA_SUCCESS);
	IS(cuLogsRegisterCallback(hear, heard, &handle), CUDA_SUCCESS);
	CUmodule module;
	CUsurfref surface;
	MUST(cuModuleLoadData(&module, relay_ptx), CUDA_SUCCESS);
	IS(cuModuleGetSurfRef(&surface, module, "x") != CUDA_SUCCESS, true);
	IS(cuModuleGetSurfRef(&surface, module, "x") != CUDA_SUCCESS, true);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	IS(called, 2);
	HAS(heard, "cuModuleGetSurfRef");
	IS(cuLogsCurrent(&now, 0), CUDA_SUCCESS);
	YES(now > before);
	IS(cuLogsDumpToMemory(&before, text, &size, 0), CUDA_SUCCESS);
	HAS(text, "cuModuleGetSurfRef");
	IS(size, strlen(text));
	IS(text[size - 1], '\n');
	IS(before, now); /* moved on */
	size = sizeof text;
	IS(cuLogsDumpToMemory(&before, text, &size, 0), CUDA_SUCCESS);
	IS(size, 0);
	size = 5;
	IS(cuLogsDumpToMemory(NULL, text, &size, 0), BAD); /* no whole line has room */
	IS(cuLogsDumpToMemory(NULL, NULL, &size, 0), BAD);
	size = 0;
	IS(cuLogsDumpToMemory(NULL, text, &size, 0), CUDA_SUCCESS);
	size = sizeof text;
	/* flags are not looked at */
	IS(cuLogsDumpToMemory(NULL, text, &size, 1), CUDA_SUCCESS);
	HAS(text, "cuModuleGetSurfRef");
	close(mkstemp(path));
	IS(cuLogsDumpToFile(NULL, path, 0), CUDA_SUCCESS);
	FILE *file = fopen(path, "r");
	YES(fgets(text, sizeof text, file) != NULL);
	HAS(text, "is not supported by a remote session");
	fclose(file);
	unlink(path);
	IS(cuLogsDumpToFile(NULL, "/nowhere/x", 0), BAD);
	IS(cuLogsUnregisterCallback(handle), CUDA_SUCCESS);
	IS(cuLogsUnregisterCallback(handle), BAD);
	IS(cuLogsRegisterCallback(NULL, NULL, &handle), BAD);
}

UNIT_SUITE(driver_log, {"log", test_log})
