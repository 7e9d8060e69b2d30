/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/module_loading.c: which loading a driver is told, and that a module is
 * loaded whole.  Run with CUDA_MODULE_LOADING=LAZY.
 */
#include "server/worker/module/module_loading.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/format/image.h"
#include "rpc/module_loading.h"
#include "tests/unit/worker/inside.h"

static void test_environment(void)
{
	const bool yes = true, no = false;
	char *before = strdup(getenv("CUDA_MODULE_LOADING"));
	TEXT(before, "LAZY");
	ckt_loading_prepare(NULL);
	TEXT(getenv("CUDA_MODULE_LOADING"), "LAZY");
	TEXT(getenv("CUDA_MODULE_DATA_LOADING"), "EAGER");
	/* An image goes before the operator. */
	ckt_loading_prepare(&no);
	TEXT(getenv("CUDA_MODULE_LOADING"), "EAGER");
	ckt_loading_prepare(&yes);
	TEXT(getenv("CUDA_MODULE_LOADING"), "LAZY");
	unsetenv("CUDA_MODULE_LOADING");
	ckt_loading_prepare(NULL);
	TEXT(getenv("CUDA_MODULE_LOADING"), CKT_MODULE_LOADING_DEFAULT);
	setenv("CUDA_MODULE_LOADING", before, 1);
	free(before);
}

/* Kernels of the program's that are used first after a library's leave variables where they are. */
static void test_whole(void)
{
	static const char ptx[] =
		".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry a()\n{\nret;\n}\n.visible .entry b()\n{\nret;\n}\n";
	size_t before, after, total;
	CUmodule module;
	CUfunction function;
	YES(ckt_loading_is_lazy());
	YES(ckt_worker.checkpoint.start & CKT_IMAGE_START_LAZY);
	MUST(ckt_driver.cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
	ckt_driver.cuMemGetInfo_v2(&before, &total);
	IS(ckt_loading_whole(module), CUDA_SUCCESS);
	ckt_driver.cuMemGetInfo_v2(&after, &total);
	/* Both kernels' code. */
	YES(after < before);
	IS(ckt_driver.cuModuleGetFunction(&function, module, "b"), CUDA_SUCCESS);
	IS(ckt_driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	ckt_driver.cuMemGetInfo_v2(&before, &total);
	IS(before, after);
	IS(ckt_driver.cuModuleUnload(module), CUDA_SUCCESS);
}

UNIT_SUITE(loading, {"environment", test_environment}, {"whole", test_whole})
