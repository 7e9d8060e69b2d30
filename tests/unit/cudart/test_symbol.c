/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/symbol.c: device variables by their shadows. */
#include "files.h"

static void test_symbols(void)
{
	static int nothing;
	void *address;
	size_t size;
	IS(cudaGetSymbolAddress(&address, &nothing), cudaErrorInvalidSymbol);
	IS(cudaGetSymbolAddress(NULL, &nothing), BAD);
	IS(cudaGetSymbolSize(&size, &nothing), cudaErrorInvalidSymbol);
	IS(cudaGetSymbolSize(NULL, &nothing), BAD);
	/* The direction is looked at first. */
	IS(cudaMemcpyToSymbol(&nothing, &size, 4, 0, cudaMemcpyDeviceToHost),
		cudaErrorInvalidMemcpyDirection);
	IS(cudaMemcpyFromSymbol(&size, &nothing, 4, 0, cudaMemcpyHostToDevice),
		cudaErrorInvalidMemcpyDirection);
	IS(cudaMemcpyToSymbol(&nothing, &size, 4, 0, cudaMemcpyHostToDevice),
		cudaErrorInvalidSymbol);
	IS(cudaMemcpyFromSymbolAsync(&size, NULL, 4, 0, cudaMemcpyDeviceToHost, NULL),
		cudaErrorInvalidSymbol);
	cudaGetLastError();
}

UNIT_SUITE(symbol, {"symbols", test_symbols})
