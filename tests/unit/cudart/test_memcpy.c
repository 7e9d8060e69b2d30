/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/memcpy.c: linear copies and copies of rows. */
#include "files.h"

static void test_copies(void)
{
	uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
	uint32_t *memory = files_memory(4, 0), *other = files_memory(4, 0);
	static const struct {
		enum cudaMemcpyKind kind;
		bool to, from; /* the device */
		cudaError_t error;
	} cases[] = {
		{cudaMemcpyHostToDevice, true, false, OK},
		{cudaMemcpyDeviceToHost, false, true, OK},
		{cudaMemcpyDeviceToDevice, true, true, OK},
		{cudaMemcpyHostToHost, false, false, OK},
		{cudaMemcpyDefault, true, false, OK},
		{cudaMemcpyDefault, false, true, OK},
		{cudaMemcpyDefault, true, true, OK},
		{cudaMemcpyDefault, false, false, OK},
		{(enum cudaMemcpyKind)5, true, false, cudaErrorInvalidMemcpyDirection},
		{(enum cudaMemcpyKind) - 1, true, false, cudaErrorInvalidMemcpyDirection},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		MUST(cudaMemcpy(other, in, sizeof in, cudaMemcpyHostToDevice), OK);
		memset(out, 0, sizeof out);
		MUST(cudaMemset(memory, 0, sizeof in), OK);
		void *to = cases[i].to ? (void *)memory : out;
		const void *from = cases[i].from ? (void *)other : in;
		IS(cudaMemcpy(to, from, sizeof in, cases[i].kind), cases[i].error);
		if (cases[i].to)
			IS(files_word(memory + 3), cases[i].error ? 0 : 4);
		else
			IS(out[3], 4);
		/* nothing goes in every direction */
		IS(cudaMemcpyAsync(to, from, 0, cases[i].kind, NULL), OK);
	}
	/* every other word */
	IS(cudaMemcpy2D(memory, 4, in, 8, 4, 2, cudaMemcpyHostToDevice), OK);
	IS(files_word(memory + 1), 3);
	IS(cudaMemcpy2D(memory, 3, in, 8, 4, 2, cudaMemcpyHostToDevice),
		cudaErrorInvalidPitchValue);
	IS(cudaMemcpy2D(memory, 4, in, 3, 4, 2, cudaMemcpyHostToDevice),
		cudaErrorInvalidPitchValue);
	IS(cudaMemcpy2D(memory, 4, in, 8, 0, 2, cudaMemcpyHostToDevice), OK);
	IS(cudaFree(memory), OK);
	IS(cudaFree(other), OK);
	cudaGetLastError();
}

UNIT_SUITE(memcpy, {"copies", test_copies})
