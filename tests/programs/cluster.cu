/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters of blocks: their numbers, barrier, each other's shared memory, remote atomics, and bulk copies counted by a barrier there.
 * And groups of several warps, which from compute capability 8.0 on meet in shared memory that is not the kernel's.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>

#include "phase.h"

namespace cg = cooperative_groups;

/* Every block sums its part; the parts go to the cluster's first block by remote atomics, and round the ring by remote reads. */
__global__ void __cluster_dims__(4, 1, 1) ring(const int *data, int *sums, int *neighbours, unsigned *numbers)
{
	cg::cluster_group cluster = cg::this_cluster();
	__shared__ int total, own;
	unsigned rank = cluster.block_rank(), n = cluster.num_blocks();

	if (threadIdx.x == 0)
		total = own = 0;
	cluster.sync();
	int v = data[blockIdx.x * blockDim.x + threadIdx.x];
	atomicAdd(&own, v);
	atomicAdd(cluster.map_shared_rank(&total, 0), v);
	cluster.sync();
	if (threadIdx.x == 0) {
		neighbours[blockIdx.x] = *cluster.map_shared_rank(&own, (rank + 1) % n);
		if (rank == 0)
			sums[blockIdx.x / n] = total;
		numbers[blockIdx.x] = rank | n << 8 | cluster.dim_blocks().x << 16;
	}
	cluster.sync();	/* nobody leaves while others read */
}

/* The own half of a buffer is filled by a bulk copy from global memory, which a barrier counts. */
__global__ void bulk(const int *data, int *out)
{
	using barrier = cuda::barrier<cuda::thread_scope_block>;
	__shared__ alignas(16) int buffer[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ barrier bar;

	if (threadIdx.x == 0)
		init(&bar, blockDim.x);
	__syncthreads();
	barrier::arrival_token token;
	if (threadIdx.x == 0) {
		cuda::memcpy_async(buffer, data + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(buffer)), bar);
	}
	token = bar.arrive();
	bar.wait(std::move(token));
	out[blockIdx.x * 256 + threadIdx.x] = buffer[255 - threadIdx.x];
}

__global__ void launched(unsigned *out)
{
	cg::cluster_group cluster = cg::this_cluster();

	if (threadIdx.x == 0)
		out[blockIdx.y * gridDim.x + blockIdx.x] = cluster.block_rank() + 100 * cluster.block_index().x + 10000 * cluster.block_index().y;
	cluster.sync();
}

__global__ void warps(int *data, int *out)
{
	__shared__ int mine[256];
	unsigned i = threadIdx.x;
	auto block = cg::this_thread_block();
	auto pair = cg::tiled_partition<64>(block);
	auto four = cg::tiled_partition<128>(block);

	mine[i] = data[blockIdx.x * 256 + i];
	block.sync();
	int sum = cg::reduce(pair, mine[i], cg::plus<int>()), before = cg::exclusive_scan(four, mine[i]);
	pair.sync();
	out[blockIdx.x * 256 + i] = sum * 7 + before * 3 + mine[255 - i] + pair.shfl(mine[i], 33) + four.any(mine[i] > 98);
}

int main(void)
{
	enum { BLOCKS = 16, THREADS = 256 };
	static int data[BLOCKS * THREADS], sums[BLOCKS / 4], neighbours[BLOCKS], out[BLOCKS * THREADS], own[BLOCKS];
	unsigned numbers[BLOCKS], ranks[32];
	int *ddata, *dsums, *dneighbours, *dout;
	unsigned *dnumbers, *dranks;

	for (int i = 0; i < BLOCKS * THREADS; i++) {
		data[i] = i * 7 % 101;
		own[i / THREADS] += data[i];
	}
	CHECK(cudaMalloc(&ddata, sizeof(data)));
	CHECK(cudaMalloc(&dsums, sizeof(sums)));
	CHECK(cudaMalloc(&dneighbours, sizeof(neighbours)));
	CHECK(cudaMalloc(&dnumbers, sizeof(numbers)));
	CHECK(cudaMalloc(&dranks, sizeof(ranks)));
	CHECK(cudaMalloc(&dout, sizeof(out)));
	CHECK(cudaMemcpy(ddata, data, sizeof(data), cudaMemcpyHostToDevice));
	phase();
	ring<<<BLOCKS, THREADS>>>(ddata, dsums, dneighbours, dnumbers);
	bulk<<<BLOCKS, THREADS>>>(ddata, dout);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute;
	config.gridDim = dim3(8, 4);
	config.blockDim = dim3(64);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = 2;
	attribute.val.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, launched, dranks));
	int active = 0, largest = 0;
	CHECK(cudaOccupancyMaxActiveClusters(&active, launched, &config));
	EXPECT(active >= 1);
	CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, launched, &config));
	EXPECT(largest == 8);
	EXPECT_ERROR(cudaOccupancyMaxActiveClusters(NULL, launched, &config), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(sums, dsums, sizeof(sums), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(neighbours, dneighbours, sizeof(neighbours), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(numbers, dnumbers, sizeof(numbers), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(ranks, dranks, sizeof(ranks), cudaMemcpyDeviceToHost));
	for (int b = 0; b < BLOCKS; b++) {
		int sum = 0;

		for (int k = 0; k < 4; k++)
			sum += own[b / 4 * 4 + k];
		EXPECT(sums[b / 4] == sum);
		EXPECT(neighbours[b] == own[b / 4 * 4 + (b + 1) % 4]);
		EXPECT(numbers[b] == (unsigned)(b % 4 | 4 << 8 | 4 << 16));
		for (int t = 0; t < THREADS; t++)
			EXPECT(out[b * THREADS + t] == data[b * THREADS + 255 - t]);
	}
	warps<<<BLOCKS, THREADS>>>(ddata, dout);
	CHECK(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BLOCKS * THREADS; i++) {
		int sum = 0, before = 0, any = 0;

		for (int k = 0; k < 64; k++)
			sum += data[i / 64 * 64 + k];
		for (int k = i / 128 * 128; k < i; k++)
			before += data[k];
		for (int k = 0; k < 128; k++)
			any |= data[i / 128 * 128 + k] > 98;
		EXPECT(out[i] == sum * 7 + before * 3 + data[i / 256 * 256 + 255 - i % 256] + data[i / 64 * 64 + 33] + any);
	}
	for (unsigned y = 0; y < 4; y++)
		for (unsigned x = 0; x < 8; x++)
			EXPECT(ranks[y * 8 + x] == (x % 2 + y % 2 * 2) + 100 * (x % 2) + 10000 * (y % 2));
	for (int k = 0; k < BLOCKS / 4; k++)
		printf("cluster %d: %d\n", k, sums[k]);
	return finish();
}
