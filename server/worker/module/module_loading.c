/* SPDX-License-Identifier: Apache-2.0 */
/* Eager and lazy loading; see module_loading.h. */
#include "server/worker/module/module_loading.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/module_loading.h"
#include "server/worker/driver.h"

void ckt_loading_prepare(const bool *lazy)
{
	if (lazy)
		setenv("CUDA_MODULE_LOADING", *lazy ? CKT_LOADING_LAZY : "EAGER", 1);
	else
		setenv("CUDA_MODULE_LOADING", CKT_MODULE_LOADING_DEFAULT, 0);
	/* Variables are loaded with their module, so that a look-up of one is not a step. */
	if (!strcmp(getenv("CUDA_MODULE_LOADING"), CKT_LOADING_LAZY))
		setenv("CUDA_MODULE_DATA_LOADING", "EAGER", 1);
}

bool ckt_loading_is_lazy(void)
{
	static int answer = -1;
	CUmoduleLoadingMode mode;
	/*
	 * Lazy loading can be repeated only if the driver can be made to load a function at once
	 * and can report its mode.  Drivers before CUDA 12.4 cannot, so they are eager
	 * (ckt_loading_prepare's caller).
	 */
	if (answer < 0)
		answer = ckt_driver.cuModuleGetLoadingMode && ckt_driver.cuFuncLoad &&
			ckt_driver.cuModuleEnumerateFunctions &&
			ckt_driver.cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS &&
			mode == CU_MODULE_LAZY_LOADING;
	return answer;
}

CUresult ckt_loading_whole(CUmodule module)
{
	unsigned count = 0;
	if (!ckt_loading_is_lazy())
		return CUDA_SUCCESS;
	CUresult result = ckt_driver.cuModuleGetFunctionCount(&count, module);
	CUfunction *functions = result || !count ? NULL : calloc(count, sizeof(CUfunction));
	if (!result && count && !functions)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (functions)
		result = ckt_driver.cuModuleEnumerateFunctions(functions, count, module);
	/*
	 * If a function cannot be loaded, its own launch reports that, as with an eager driver; the
	 * module's other functions run.
	 */
	for (unsigned i = 0; i < count && functions && !result; i++)
		if (ckt_driver.cuFuncLoad(functions[i]) == CUDA_ERROR_OUT_OF_MEMORY)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	free(functions);
	return result;
}
