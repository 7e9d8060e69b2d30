/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's stream capture, also of the thread's own stream, and what its graphs' nodes do with
 * registered kernels and variables.
 */
#include "registered.h"
#include "kernels.h"

/* What stands for a kernel or variable on the host: its address is its name. */
static char fill[16];
static uint32_t table[4];

static void program(void)
{
	void **handle = registered(api_ptx, sizeof(api_ptx), 7, 8);
	FUNCTION(__cudaRegisterFunction)
	(handle, fill, (char *)"fill", "fill", -1, NULL, NULL, NULL, NULL, NULL);
	FUNCTION(__cudaRegisterVar)
	(handle, (char *)table, (char *)"table", "table", 0, sizeof(table), 0, 0);
	FUNCTION(__cudaRegisterFatBinaryEnd)(handle);
}

static void run(cudaGraph_t graph)
{
	cudaGraphExec_t exec = NULL;
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	QUIET(cudaGraphLaunch, exec, NULL);
	QUIET(cudaStreamSynchronize, NULL);
	REMARK("launched");
}

static cudaGraphNode_t empty(cudaGraph_t graph, const cudaGraphNode_t *list, size_t count)
{
	cudaGraphNode_t node = NULL;
	QUIET(cudaGraphAddEmptyNode, &node, graph, list, count);
	return node;
}

/* What a capture told last. */
struct told {
	enum cudaStreamCaptureStatus status;
	unsigned long long id;
	cudaGraph_t graph;
	const cudaGraphNode_t *nodes;
	const cudaGraphEdgeData *edges;
	size_t count;
};

static void TOLD(const struct told *told)
{
	NUMBER("status", told->status);
	if (told->status != cudaStreamCaptureStatusActive)
		return;
	YES("some", told->id != 0 && told->graph != NULL);
	NUMBER("count", (long long)told->count);
}

CASE(own_stream)
{
	char *p = memory(64);
	struct told told = {.status = (enum cudaStreamCaptureStatus)77};
	cudaGraph_t graph = NULL;
	enum cudaStreamCaptureStatus status = (enum cudaStreamCaptureStatus)77;
	CALL_AS(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz, NULL, &told.status,
		&told.id, &told.graph, &told.nodes, &told.edges, &told.count);
	TOLD(&told);
	CALL_AS(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz, NULL,
		cudaStreamCaptureModeThreadLocal);
	CALL_AS(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz, NULL, &status);
	NUMBER("status", status);
	QUIET(cudaMemsetAsync, p, 1, 8, cudaStreamPerThread);
	CALL_AS(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz, NULL, &told.status,
		&told.id, &told.graph, &told.nodes, &told.edges, &told.count);
	TOLD(&told);
	CALL_AS(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz, NULL,
		NULL, NULL, 0, cudaStreamSetCaptureDependencies);
	QUIET(cudaMemsetAsync, p + 8, 2, 8, cudaStreamPerThread);
	CALL_AS(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz, NULL, &told.status,
		&told.id, &told.graph, &told.nodes, &told.edges, &told.count);
	TOLD(&told);
	CALL_AS(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, NULL, &graph);
	YES("some", graph != NULL);
	run(graph);
	CONTENT("p", p, 32);
	CALL_AS(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz, NULL, &status);
	NUMBER("status", status);
	CALL_AS(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, NULL, &graph);
	CALL(cudaGetLastError);
}

CASE(own_stream_to_graph)
{
	char *p = memory(64);
	cudaGraph_t graph = NULL, got = NULL;
	cudaGraphNode_t node;
	size_t count = 77;
	QUIET(cudaGraphCreate, &graph, 0);
	node = empty(graph, NULL, 0);
	CALL_AS(cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz, NULL, graph,
		&node, NULL, 1, cudaStreamCaptureModeRelaxed);
	QUIET(cudaMemsetAsync, p, 1, 8, cudaStreamPerThread);
	CALL_AS(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz, NULL,
		&node, NULL, 1, cudaStreamAddCaptureDependencies);
	QUIET(cudaMemsetAsync, p + 8, 2, 8, cudaStreamPerThread);
	CALL_AS(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, NULL, &got);
	YES("the same", got == graph);
	CALL(cudaGraphGetEdges, graph, NULL, NULL, NULL, &count);
	NUMBER("count", (long long)count);
	run(graph);
	CONTENT("p", p, 32);
}

CASE(dependencies)
{
	cudaStream_t s = new_stream();
	cudaGraph_t graph = NULL, got = NULL;
	cudaGraphNode_t a, b;
	struct told told = {.status = (enum cudaStreamCaptureStatus)77};
	QUIET(cudaGraphCreate, &graph, 0);
	a = empty(graph, NULL, 0);
	b = empty(graph, NULL, 0);
	CALL(cudaStreamBeginCaptureToGraph, s, graph, &a, NULL, 1,
		cudaStreamCaptureModeThreadLocal);
	CALL(cudaStreamGetCaptureInfo, s, &told.status, &told.id, &told.graph, &told.nodes,
		&told.edges, &told.count);
	TOLD(&told);
	YES("the graph", told.graph == graph);
	YES("a", told.count == 1 && told.nodes[0] == a);
	CALL(cudaStreamUpdateCaptureDependencies, s, &b, NULL, 1, cudaStreamAddCaptureDependencies);
	CALL(cudaStreamGetCaptureInfo, s, &told.status, NULL, NULL, NULL, NULL, &told.count);
	NUMBER("count", (long long)told.count);
	CALL(cudaStreamUpdateCaptureDependencies, s, &b, NULL, 1, cudaStreamSetCaptureDependencies);
	CALL(cudaStreamGetCaptureInfo, s, &told.status, &told.id, NULL, &told.nodes, NULL,
		&told.count);
	YES("b", told.count == 1 && told.nodes[0] == b);
	CALL(cudaStreamUpdateCaptureDependencies, s, &b, NULL, 1, 77);
	CALL(cudaStreamEndCapture, s, &got);
	CALL(cudaStreamUpdateCaptureDependencies, s, &b, NULL, 1, cudaStreamSetCaptureDependencies);
	CALL(cudaGetLastError);
}

CASE(mode)
{
	cudaStream_t s = new_stream();
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaGraph_t graph = NULL;
	void *p = NULL;
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	mode = (enum cudaStreamCaptureMode)9;
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	mode = cudaStreamCaptureModeRelaxed;
	CALL(cudaStreamBeginCapture, s, cudaStreamCaptureModeGlobal);
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cudaMalloc, &p, 64);
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cudaStreamEndCapture, s, &graph);
	YES("some", graph != NULL);
}

/* What may not be done while a stream captures. */
CASE(forbidden)
{
	cudaStream_t s = new_stream();
	cudaGraph_t graph = NULL;
	QUIET(cudaStreamBeginCapture, s, cudaStreamCaptureModeRelaxed);
	CALL(cudaStreamSynchronize, s);
	CALL(cudaStreamEndCapture, s, &graph);
	QUIET(cudaStreamBeginCapture, s, cudaStreamCaptureModeRelaxed);
	CALL(cudaStreamQuery, s);
	CALL(cudaStreamEndCapture, s, &graph);
	QUIET(cudaStreamBeginCapture, s, cudaStreamCaptureModeThreadLocal);
	CALL(cudaDeviceSynchronize);
	CALL(cudaStreamEndCapture, s, &graph);
	CALL(cudaGetLastError);
}

/* A kernel, launched as always. */
CASE(kernel)
{
	char *p;
	unsigned value = 5, later = 9;
	void *args[] = {&p, &value}, *changed[] = {&p, &later};
	cudaStream_t s = new_stream();
	cudaGraph_t graph = NULL;
	cudaGraphNode_t node = NULL;
	struct cudaKernelNodeParams params;
	const dim3 grid = {2, 1, 1}, block = {4, 1, 1};
	size_t count = 1;
	program();
	p = memory(64);
	QUIET(cudaLaunchKernel, fill, grid, block, args, 0, s);
	QUIET(cudaStreamBeginCapture, s, cudaStreamCaptureModeGlobal);
	CALL(cudaLaunchKernel, fill, grid, block, args, 0, s);
	CALL(cudaStreamEndCapture, s, &graph);
	CALL(cudaGraphGetNodes, graph, &node, &count);
	NUMBER("count", (long long)count);
	memset(&params, 0x55, sizeof(params));
	CALL(cudaGraphKernelNodeGetParams, node, &params);
	YES("the stub", params.func == fill);
	NUMBER("grid", params.gridDim.x * 100 + params.gridDim.y * 10 + params.gridDim.z);
	NUMBER("block", params.blockDim.x * 100 + params.blockDim.y * 10 + params.blockDim.z);
	NUMBER("shared", params.sharedMemBytes);
	NUMBER("value", *(unsigned *)params.kernelParams[1]);
	YES("the memory", *(char **)params.kernelParams[0] == p);
	YES("no more", params.extra == NULL);
	run(graph);
	CONTENT("p", p, 64);
	params.kernelParams = changed;
	params.gridDim.x = 1;
	CALL(cudaGraphKernelNodeSetParams, node, &params);
	run(graph);
	CONTENT("p", p, 64);
	CALL(cudaGraphKernelNodeGetParams, node, &params);
	YES("the stub", params.func == fill);
	NUMBER("value", *(unsigned *)params.kernelParams[1]);
	CALL(cudaGraphAddKernelNode, &node, graph, NULL, 0, &params);
	params.func = table;
	CALL(cudaGraphAddKernelNode, &node, graph, NULL, 0, &params);
	CALL(cudaGetLastError);
}

CASE(symbols)
{
	static uint8_t host[64];
	char *p;
	cudaGraph_t graph = NULL;
	cudaGraphNode_t in = NULL, out = NULL;
	cudaGraphExec_t exec = NULL;
	numbers(host, sizeof(host), 1);
	program();
	p = memory(64);
	QUIET(cudaGraphCreate, &graph, 0);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &in, graph, NULL, 0, table, host, 16, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &out, graph, &in, 1, p, table, 12, 4,
		cudaMemcpyDeviceToDevice);
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	QUIET(cudaGraphLaunch, exec, NULL);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol, in, table, host + 32, 8, 4,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, out, p, table, 16, 0,
		cudaMemcpyDeviceToDevice);
	run(graph);
	CONTENT("p", p, 32);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, in, table, host + 40, 8, 4,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, exec, out, p + 16, table, 12, 4,
		cudaMemcpyDeviceToDevice);
	QUIET(cudaGraphLaunch, exec, NULL);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &in, graph, NULL, 0, table, host, 16, 4,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &out, graph, NULL, 0, p, table, 17, 0,
		cudaMemcpyDeviceToDevice);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &in, graph, NULL, 0, table, host, 16, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &out, graph, NULL, 0, p, table, 16, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGetLastError);
}

/* Of the thread's own stream. */
CASE(instantiate)
{
	char *p = memory(64);
	cudaGraph_t graph = NULL;
	cudaGraphNode_t node = NULL;
	cudaGraphExec_t exec = NULL;
	struct cudaMemsetParams set = {
		.dst = p, .value = 3, .elementSize = 1, .width = 8, .height = 1};
	cudaGraphInstantiateParams params;
	unsigned long long flags = 77;
	memset(&params, 0, sizeof(params));
	params.flags = cudaGraphInstantiateFlagUpload;
	params.result_out = (cudaGraphInstantiateResult)77;
	QUIET(cudaGraphCreate, &graph, 0);
	QUIET(cudaGraphAddMemsetNode, &node, graph, NULL, 0, &set);
	CALL_AS(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz, &exec, graph,
		&params);
	NUMBER("result", params.result_out);
	YES("no node", params.errNode_out == NULL);
	CALL(cudaGraphExecGetFlags, exec, &flags);
	NUMBER("flags", (long long)flags);
	CALL_AS(cudaGraphUpload, cudaGraphUpload_ptsz, exec, NULL);
	CALL_AS(cudaGraphLaunch, cudaGraphLaunch_ptsz, exec, NULL);
	QUIET(cudaStreamSynchronize, cudaStreamPerThread);
	CONTENT("p", p, 16);
	params.flags = 0x1000;
	CALL_AS(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz, &exec, graph,
		&params);
	CALL(cudaGetLastError);
}

CASE(conditional)
{
	cudaGraph_t graph = NULL;
	cudaGraphConditionalHandle handle = 0;
	QUIET(cudaGraphCreate, &graph, 0);
	CALL(cudaGraphConditionalHandleCreate, &handle, graph, 1, cudaGraphCondAssignDefault);
	YES("some", handle != 0);
	CALL(cudaGetLastError);
}
