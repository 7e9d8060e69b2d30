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
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(copies));
	return finish();
}
