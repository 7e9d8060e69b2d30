/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of graphs, many of them: ../runner/launches.py counts the messages that they are. */
#include "phase.h"

__global__ void step(unsigned *p, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += i;
}

int main()
{
	const unsigned n = 256, nodes = 20, launches = 500;
	unsigned *p, *host;
	cudaStream_t s;
	cudaGraph_t graph;
	cudaGraphExec_t exec, copies;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMalloc(&p, n * 4));
	CHECK(cudaMallocHost(&host, n * 4));
	CHECK(cudaMemset(p, 0, n * 4));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	for (unsigned i = 0; i < nodes; i++)
		step<<<2, 128, 0, s>>>(p, n);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	/* What its nodes read of the program's memory goes with a launch. */
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemcpyAsync(p, host, n * 4, cudaMemcpyHostToDevice, s));
	step<<<2, 128, 0, s>>>(p, n);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphInstantiate(&copies, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamSynchronize(s));
	phase();
	for (unsigned i = 0; i < launches; i++)
		CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	phase();
	CHECK(cudaMemcpy(host, p, n * 4, cudaMemcpyDeviceToHost));
	EXPECT(host[7] == 7 * nodes * launches);
	print_checksum("launched", host, n * 4);
	phase();
	for (unsigned i = 0; i < 10; i++) {
		host[7] = i;
		CHECK(cudaGraphLaunch(copies, s));
	}
	CHECK(cudaStreamSynchronize(s));
	phase();
	CHECK(cudaMemcpy(host, p, n * 4, cudaMemcpyDeviceToHost));
	EXPECT(host[7] == 9 + 7);
	/* As XLA does: before each launch every kernel gets its arguments, which are of another buffer each time. */
	unsigned *buffers[2] = {p, NULL}, count = n;
	cudaGraphNode_t node;
	cudaGraph_t single;
	cudaGraphExec_t changed;
	CHECK(cudaMalloc(&buffers[1], n * 4));
	CHECK(cudaMemset(buffers[0], 0, n * 4));
	CHECK(cudaMemset(buffers[1], 0, n * 4));
	void *arguments[] = {&buffers[0], &count};
	cudaKernelNodeParams params = {};
	params.func = (void *)step;
	params.gridDim = dim3(2);
	params.blockDim = dim3(128);
	params.kernelParams = arguments;
	CHECK(cudaGraphCreate(&single, 0));
	CHECK(cudaGraphAddKernelNode(&node, single, NULL, 0, &params));
	CHECK(cudaGraphInstantiate(&changed, single, 0));
	CHECK(cudaStreamSynchronize(s));
	phase();
	for (unsigned i = 0; i < 100; i++) {
		arguments[0] = &buffers[i % 2];
		CHECK(cudaGraphExecKernelNodeSetParams(changed, node, &params));
		CHECK(cudaGraphLaunch(changed, s));
	}
	CHECK(cudaStreamSynchronize(s));
	phase();
	for (unsigned *buffer : buffers) {
		CHECK(cudaMemcpy(host, buffer, n * 4, cudaMemcpyDeviceToHost));
		EXPECT(host[7] == 7 * 50);
	}
	/* What the driver may refuse is asked, and its answer is the call's. */
	params.blockDim = dim3(2048);
	EXPECT(cudaGraphExecKernelNodeSetParams(changed, node, &params) != cudaSuccess);
	CHECK(cudaGraphExecDestroy(changed));
	CHECK(cudaGraphDestroy(single));
	CHECK(cudaFree(buffers[1]));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(copies));
	return finish();
}
