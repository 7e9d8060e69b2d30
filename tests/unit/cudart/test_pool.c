/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/pool.c: memory pools. */
#include "files.h"

/* The soft GPU has no pools: what the runtime says of places before it asks. */
static void test_pools(void)
{
	cudaMemPool_t pool;
	IS(cudaDeviceGetDefaultMemPool(&pool, 2), cudaErrorInvalidDevice);
	IS(cudaDeviceGetDefaultMemPool(&pool, -1), cudaErrorInvalidDevice);
	IS(cudaDeviceGetMemPool(&pool, 2), BAD);
	IS(cudaDeviceSetMemPool(2, NULL), BAD);
	IS(cudaMemPoolImportPointer(NULL, NULL, NULL), BAD);
	IS(cudaGetLastError(), BAD);
}

UNIT_SUITE(pool, {"pools", test_pools})
