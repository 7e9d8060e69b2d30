/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/managed.c: hints about managed memory. */
#include "files.h"

static void test_hints(void)
{
	struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
			       nowhere = {cudaMemLocationTypeDevice, 9};
	uint32_t *memory;
	void *none;
	MUST(cudaMallocManaged((void **)&memory, 4096, cudaMemAttachGlobal), OK);
	IS(cudaMallocManaged(&none, 4096, 0x80), BAD);
	memory[0] = 5;
	IS(cudaMemAdvise(memory, 4096, cudaMemAdviseSetReadMostly, device), OK);
	YES(cudaMemAdvise(memory, 4096, cudaMemAdviseSetPreferredLocation, nowhere) != OK);
	IS(cudaMemPrefetchAsync(memory, 4096, device, 0, NULL), OK);
	IS(cudaMemPrefetchAsync(memory, 4096, device, 1, NULL), BAD);
	IS(cudaDeviceSynchronize(), OK);
	IS(memory[0], 5);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(managed, {"hints", test_hints})
