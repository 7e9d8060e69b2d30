/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/entry.c: entry points of the driver. */
#include "files.h"

#include <cuda_profiler_api.h>

static void test_entries(void)
{
	void *function = NULL;
	enum cudaDriverEntryPointQueryResult status;
	IS(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault, &status), OK);
	YES(function != NULL && status == cudaDriverEntryPointSuccess);
	/* A name that is none is an answer to who asks for the status. */
	function = &status;
	IS(cudaGetDriverEntryPoint("cuNothing", &function, cudaEnableDefault, &status), OK);
	YES(function == NULL && status == cudaDriverEntryPointSymbolNotFound);
	IS(cudaGetDriverEntryPoint(NULL, &function, cudaEnableDefault, &status), BAD);
	IS(cudaGetDriverEntryPointByVersion("cuMemAlloc", NULL, 12000, cudaEnableDefault, &status),
		BAD);
	IS(cudaGetDriverEntryPointByVersion(
		   "cuMemAlloc", &function, 12000, cudaEnableDefault, &status),
		OK);
	YES(function != NULL && status == cudaDriverEntryPointSuccess);
	IS(cudaProfilerStart(), OK);
	IS(cudaProfilerStop(), OK);
	cudaGetLastError();
}

UNIT_SUITE(entry, {"entries", test_entries})
