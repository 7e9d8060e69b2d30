/* SPDX-License-Identifier: Apache-2.0 */
/* A cooperative launch: all blocks meet at grid.sync() between the passes of an iteration. */
#include "phase.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void relax(int *a, int *b, int n, int passes)
{
	cg::grid_group grid = cg::this_grid();

	for (int k = 0; k < passes; k++) {
		for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
			b[i] = (a[(i + n - 1) % n] + a[(i + 1) % n]) / 2 + (i & 1);
		grid.sync();

		int *t = a;

		a = b;
		b = t;
	}
}

int main(void)
{
	int n = 4001, passes = 8, supported, per_sm, processors, *a, *b, wrong = 0;
	int *x = (int *)malloc(n * sizeof(int)), *y = (int *)malloc(n * sizeof(int)), *out = (int *)malloc(n * sizeof(int));
	void *args[] = { &a, &b, &n, &passes };

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
	EXPECT(supported);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, relax, 64, 0));
	CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	EXPECT(per_sm >= 1);
	for (int i = 0; i < n; i++)
		x[i] = i * 7919 % 1000;
	CHECK(cudaMalloc(&a, n * sizeof(int)));
	CHECK(cudaMalloc(&b, n * sizeof(int)));
	CHECK(cudaMemcpy(a, x, n * sizeof(int), cudaMemcpyHostToDevice));
	CHECK(cudaLaunchCooperativeKernel(relax, dim3(processors >= 4 ? 4 : 1), dim3(64), args, 0, 0));
	phase();
	CHECK(cudaMemcpy(out, a, n * sizeof(int), cudaMemcpyDeviceToHost));
	for (int k = 0; k < passes; k++) {
		for (int i = 0; i < n; i++)
			y[i] = (x[(i + n - 1) % n] + x[(i + 1) % n]) / 2 + (i & 1);
		memcpy(x, y, n * sizeof(int));
	}
	for (int i = 0; i < n; i++)
		wrong += out[i] != x[i];
	EXPECT(wrong == 0);
	print_checksum("relaxed", out, n * sizeof(int));
	/* More blocks than can be resident are refused. */
	EXPECT_ERROR(cudaLaunchCooperativeKernel(relax, dim3(per_sm * processors + 1), dim3(64), args, 0, 0), cudaErrorCooperativeLaunchTooLarge);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	return finish();
}
