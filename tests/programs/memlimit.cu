/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes 128 MiB at a time until it is refused: memlimit [LIMIT_MIB [BLOCKS]].  With a limit (the server's --session-memory), the refusal must
 * come before it and the device must look as large as it; without one it stops after BLOCKS pieces (default 4) and frees them.
 */
#include "phase.h"

#define PIECE ((size_t)128 << 20)

int main(int argc, char **argv)
{
	size_t limit = argc > 1 ? (size_t)atol(argv[1]) << 20 : 0, most = argc > 2 ? (size_t)atol(argv[2]) : 4, got = 0, free_bytes, total_bytes, before;
	void *piece[4096], *p;
	struct cudaDeviceProp properties;
	cudaError_t error = cudaSuccess;
	unsigned word = 0x01020304, back = 0;

	if (limit)
		most = limit / PIECE + 2;
	if (most > 4096)
		most = 4096;
	CHECK(cudaMemGetInfo(&before, &total_bytes));
	CHECK(cudaGetDeviceProperties(&properties, 0));
	if (limit) {
		EXPECT(total_bytes == limit);
		EXPECT(properties.totalGlobalMem == limit);
		EXPECT(before <= limit);
	}
	for (got = 0; got < most; got++) {
		error = cudaMalloc(&piece[got], PIECE);
		if (error != cudaSuccess)
			break;
		CHECK(cudaMemcpy((char *)piece[got] + PIECE - 4, &word, 4, cudaMemcpyHostToDevice));
	}
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	/* Without a limit the card is everybody's, and others may free meanwhile. */
	if (limit) {
		EXPECT(before - free_bytes >= got * PIECE);
		EXPECT(error == cudaErrorMemoryAllocation);
		EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
		EXPECT(got * PIECE <= limit && got >= limit / PIECE - 2 && got > 0);
		printf("refused below %zu MiB\n", limit >> 20);
	} else {
		EXPECT(got == most);
	}
	phase();
	for (size_t i = 0; i < got; i++) {
		CHECK(cudaMemcpy(&back, (char *)piece[i] + PIECE - 4, 4, cudaMemcpyDeviceToHost));
		EXPECT(back == word);
		CHECK(cudaFree(piece[i]));
	}
	/* What was given back can be had again. */
	CHECK(cudaMalloc(&p, PIECE));
	CHECK(cudaFree(p));
	return finish();
}
