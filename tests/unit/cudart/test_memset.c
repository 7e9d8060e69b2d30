/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/memset.c: filling memory. */
#include "files.h"

static void test_fills(void)
{
	uint32_t *memory = files_memory(16, 0);
	IS(cudaMemset(memory, 0x101, 4), OK); /* the low byte counts */
	IS(files_word(memory), 0x01010101);
	IS(cudaMemset(NULL, 0, 0), OK);
	IS(cudaMemset(NULL, 0, 1), BAD);
	IS(cudaMemset2D(memory, 8, 2, 4, 2), OK);
	IS(files_word(memory + 2), 0x02020202);
	IS(files_word(memory + 1), 0); /* between the rows */
	IS(cudaMemset2D(memory, 3, 2, 4, 2), BAD);
	IS(cudaMemset2D(memory, 3, 3, 4, 1), OK); /* one row has no pitch */
	IS(cudaMemset3D((struct cudaPitchedPtr){memory, 8, 8, 2}, 5, (struct cudaExtent){4, 1, 2}),
		OK);
	IS(files_word(memory + 4), 0x05050505);
	IS(cudaMemset3D((struct cudaPitchedPtr){memory, 8, 8, 1}, 5, (struct cudaExtent){4, 2, 2}),
		BAD);
	IS(cudaMemsetAsync(memory, 9, 4, NULL), OK);
	IS(cudaDeviceSynchronize(), OK);
	IS(files_word(memory), 0x09090909);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(memset, {"fills", test_fills})
