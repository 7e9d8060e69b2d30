/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs built by hand and by capture, where the driver has them. */
#include "check.h"

__device__ int symbol_value;

__global__ void add(int *p, int n)
{
	*p += n;
}

__global__ void multiply(int *p, int n)
{
	*p *= n;
}

int main()
{
	cudaGraph_t graph, captured;
	cudaGraphExec_t executable;
	cudaGraphNode_t set, first, second, back, symbol;
	cudaStream_t stream;
	int *p = NULL, host = -1, three = 3, five = 5, from_symbol = -1;
	cudaError_t created = cudaGraphCreate(&graph, 0);
	if (created == cudaErrorNotSupported)
		return 77;
	OK(created);
	OK(cudaMalloc(&p, sizeof *p));
	OK(cudaStreamCreate(&stream));
	cudaMemsetParams memset_params = {};
	memset_params.dst = p;
	memset_params.elementSize = 4;
	memset_params.value = 7;
	memset_params.width = 1;
	memset_params.height = 1;
	OK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &memset_params));
	void *three_args[] = {&p, &three}, *five_args[] = {&p, &five};
	cudaKernelNodeParams kernel = {}, told = {};
	kernel.func = (void *)add;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = three_args;
	OK(cudaGraphAddKernelNode(&first, graph, &set, 1, &kernel));
	kernel.func = (void *)multiply;
	kernel.kernelParams = five_args;
	OK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
	OK(cudaGraphKernelNodeGetParams(second, &told));
	CHECK(told.func == (void *)multiply && told.gridDim.x == 1);
	OK(cudaGraphAddMemcpyNode1D(&back, graph, &second, 1, &host, p, sizeof host, cudaMemcpyDeviceToHost));
	OK(cudaGraphAddMemcpyNodeToSymbol(&symbol, graph, &second, 1, symbol_value, p, sizeof(int), 0, cudaMemcpyDeviceToDevice));
	OK(cudaGraphInstantiate(&executable, graph, 0));
	for (int i = 0; i < 3; i++) {
		host = -1;
		OK(cudaGraphLaunch(executable, stream));
		OK(cudaStreamSynchronize(stream));
		CHECK(host == 50);
	}
	OK(cudaMemcpyFromSymbol(&from_symbol, symbol_value, sizeof from_symbol));
	CHECK(from_symbol == 50);
	OK(cudaGraphExecDestroy(executable));
	OK(cudaGraphDestroy(graph));
	cudaError_t begun = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	/* A driver may have graphs and no capture. */
	if (begun == cudaErrorNotSupported)
		return failed;
	OK(begun);
	add<<<1, 1, 0, stream>>>(p, 1);
	multiply<<<1, 1, 0, stream>>>(p, 2);
	OK(cudaStreamEndCapture(stream, &captured));
	OK(cudaGraphInstantiate(&executable, captured, 0));
	OK(cudaGraphLaunch(executable, stream));
	OK(cudaMemcpyAsync(&host, p, sizeof host, cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(host == 102);
	return failed;
}
