/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's graphs, stream capture, graph memory and objects of the program. */
#include "api.h"
#include "kernels.h"
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#define QUIET(name, ...)                                           \
	do {                                                       \
		int quiet_ = (int)FUNCTION(name)(__VA_ARGS__);     \
		if (quiet_) {                                      \
			REMARK(#name " for the test: %d", quiet_); \
			api_end_case();                            \
		}                                                  \
	} while (0)

static void *memory(size_t size)
{
	void *p = NULL;
	QUIET(cudaMalloc, &p, size);
	QUIET(cudaMemset, p, 0xab, size);
	return p;
}

static void CONTENT(const char *what, const void *p, size_t size)
{
	uint8_t data[512];
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaMemcpy, data, p, size, cudaMemcpyDeviceToHost);
	BYTES(what, data, size);
}

static cudaGraph_t new_graph(void)
{
	cudaGraph_t graph = NULL;
	QUIET(cudaGraphCreate, &graph, 0);
	return graph;
}

static cudaGraphNode_t empty(cudaGraph_t graph, const cudaGraphNode_t *list, size_t count)
{
	cudaGraphNode_t node = NULL;
	QUIET(cudaGraphAddEmptyNode, &node, graph, list, count);
	return node;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t exec = NULL;
	QUIET(cudaGraphInstantiate, &exec, graph, 0);
	return exec;
}

static void run(cudaGraphExec_t exec)
{
	QUIET(cudaGraphLaunch, exec, NULL);
	QUIET(cudaStreamSynchronize, NULL);
}

static struct cudaMemsetParams set_params(void *p, unsigned value, size_t width)
{
	struct cudaMemsetParams m = {
		.dst = p, .value = value, .elementSize = 4, .width = width, .height = 1};
	return m;
}

/* "fill", as a kernel of a library. */
static void *fill_kernel(void)
{
	cudaLibrary_t library = NULL;
	cudaKernel_t function = NULL;
	QUIET(cudaLibraryLoadData, &library, api_ptx, NULL, NULL, 0, NULL, NULL, 0);
	QUIET(cudaLibraryGetKernel, &function, library, "fill");
	return (void *)function;
}

CASE(create)
{
	cudaGraph_t graph = NULL;
	cudaGraphNode_t node = NULL, list[4];
	enum cudaGraphNodeType type = 77;
	size_t count = 77;
	CALL(cudaGraphCreate, &graph, 0);
	YES("some", graph != NULL);
	CALL(cudaGraphCreate, &graph, 1);
	CALL(cudaGraphCreate, NULL, 0);
	CALL(cudaGraphAddEmptyNode, &node, graph, NULL, 0);
	CALL(cudaGraphNodeGetType, node, &type);
	NUMBER("type", type);
	count = 4;
	CALL(cudaGraphGetNodes, graph, list, &count);
	NUMBER("count", count);
	YES("it", list[0] == node);
	CALL(cudaGraphGetRootNodes, graph, NULL, &count);
	NUMBER("count", count);
	CALL(cudaGraphDestroyNode, node);
	CALL(cudaGraphGetNodes, graph, NULL, &count);
	NUMBER("count", count);
	CALL(cudaGraphDestroy, graph);
	CALL(cudaGraphDestroy, NULL);
	CALL(cudaGraphAddEmptyNode, &node, NULL, NULL, 0);
}

CASE(edges)
{
	cudaGraph_t graph = new_graph(), clone = NULL;
	cudaGraphNode_t a = empty(graph, NULL, 0), b = empty(graph, &a, 1),
			c = empty(graph, NULL, 0), from[4], to[4], list[4], found = NULL;
	cudaGraphEdgeData data[4];
	size_t count = 77;
	CALL(cudaGraphAddDependencies, graph, &b, &c, NULL, 1);
	CALL(cudaGraphAddDependencies, graph, &b, &c, NULL, 1);
	CALL(cudaGraphGetEdges, graph, NULL, NULL, NULL, &count);
	NUMBER("count", count);
	count = 4;
	memset(data, 0x55, sizeof(data));
	CALL(cudaGraphGetEdges, graph, from, to, data, &count);
	NUMBER("count", count);
	NUMBER("type", data[0].type);
	count = 4;
	CALL(cudaGraphNodeGetDependencies, c, list, NULL, &count);
	YES("b", count == 1 && list[0] == b);
	count = 4;
	CALL(cudaGraphNodeGetDependentNodes, a, list, NULL, &count);
	YES("b", count == 1 && list[0] == b);
	CALL(cudaGraphClone, &clone, graph);
	CALL(cudaGraphNodeFindInClone, &found, b, clone);
	YES("another", found != b);
	CALL(cudaGraphRemoveDependencies, graph, &b, &c, NULL, 1);
	CALL(cudaGraphRemoveDependencies, graph, &b, &c, NULL, 1);
	CALL(cudaGraphGetEdges, graph, NULL, NULL, NULL, &count);
	NUMBER("count", count);
	CALL(cudaGraphGetEdges, clone, NULL, NULL, NULL, &count);
	NUMBER("count", count);
	CALL(cudaGraphClone, &clone, NULL);
}

CASE(kernel)
{
	void *p = memory(128), *function = fill_kernel();
	unsigned value = 5, later = 9;
	void *args[] = {&p, &value}, *changed[] = {&p, &later};
	struct cudaKernelNodeParams params = {.func = function,
					    .gridDim = {1, 1, 1},
					    .blockDim = {32, 1, 1},
					    .kernelParams = args},
				    got;
	cudaLaunchAttributeValue attribute;
	cudaGraph_t graph = new_graph();
	cudaGraphNode_t node = NULL, second = NULL;
	cudaGraphExec_t exec;
	CALL(cudaGraphAddKernelNode, &node, graph, NULL, 0, &params);
	memset(&got, 0x55, sizeof(got));
	CALL(cudaGraphKernelNodeGetParams, node, &got);
	NUMBER("threads", got.blockDim.x);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 128);
	params.kernelParams = changed;
	CALL(cudaGraphKernelNodeSetParams, node, &params);
	CALL(cudaGraphExecKernelNodeSetParams, exec, node, &params);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 128);
	CALL(cudaGraphAddKernelNode, &second, graph, &node, 1, &params);
	memset(&attribute, 0, sizeof(attribute));
	CALL(cudaGraphKernelNodeSetAttribute, node, cudaLaunchAttributePriority, &attribute);
	CALL(cudaGraphKernelNodeGetAttribute, node, cudaLaunchAttributePriority, &attribute);
	NUMBER("priority", attribute.priority);
	CALL(cudaGraphKernelNodeCopyAttributes, second, node);
	params.blockDim.x = 0;
	CALL(cudaGraphAddKernelNode, &second, graph, NULL, 0, &params);
	CALL(cudaGraphAddKernelNode, &second, graph, NULL, 0, NULL);
}

CASE(copies)
{
	void *a = memory(64), *b = memory(64);
	static uint8_t host[64];
	cudaGraph_t graph = new_graph();
	cudaGraphNode_t in = NULL, move = NULL, out = NULL;
	struct cudaMemcpy3DParms params = {0}, got;
	cudaGraphExec_t exec;
	for (int i = 0; i < 64; i++)
		host[i] = (uint8_t)i;
	params.srcPtr.ptr = a;
	params.srcPtr.pitch = params.srcPtr.xsize = 32;
	params.srcPtr.ysize = 1;
	params.dstPtr = params.srcPtr;
	params.dstPtr.ptr = b;
	params.extent.width = 32;
	params.extent.height = params.extent.depth = 1;
	params.kind = cudaMemcpyDeviceToDevice;
	CALL(cudaGraphAddMemcpyNode1D, &in, graph, NULL, 0, a, host, 64, cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNode, &move, graph, &in, 1, &params);
	CALL(cudaGraphAddMemcpyNode1D, &out, graph, &move, 1, host + 32, b, 16,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphMemcpyNodeGetParams, move, &got);
	YES("same", got.srcPtr.ptr == a && got.dstPtr.ptr == b && got.extent.width == 32);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("b", b, 64);
	BYTES("host", host, 64);
	params.extent.width = 8;
	CALL(cudaGraphMemcpyNodeSetParams, move, &params);
	CALL(cudaGraphExecMemcpyNodeSetParams, exec, move, &params);
	CALL(cudaGraphMemcpyNodeSetParams1D, out, host + 40, b, 8, cudaMemcpyDeviceToHost);
	CALL(cudaGraphExecMemcpyNodeSetParams1D, exec, out, host + 40, b, 8,
		cudaMemcpyDeviceToHost);
	run(exec);
	REMARK("launched");
	BYTES("host", host, 64);
	CALL(cudaGraphAddMemcpyNode1D, &in, graph, NULL, 0, NULL, host, 64, cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNode1D, &in, graph, NULL, 0, a, host, 64, 77);
	CALL(cudaGraphAddMemcpyNode, &move, graph, NULL, 0, NULL);
	CALL(cudaGraphAddMemcpyNodeToSymbol, &in, graph, NULL, 0, host, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphAddMemcpyNodeFromSymbol, &in, graph, NULL, 0, host, host, 4, 0,
		cudaMemcpyDeviceToHost);
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol, out, host, host, 4, 0, cudaMemcpyHostToDevice);
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, out, host, host, 4, 0, cudaMemcpyDeviceToHost);
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, out, host, host, 4, 0,
		cudaMemcpyHostToDevice);
	CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, exec, out, host, host, 4, 0,
		cudaMemcpyDeviceToHost);
}

static unsigned called;

static void count_call(void *data)
{
	called += *(unsigned *)data;
}

CASE(sets_hosts_and_events)
{
	static unsigned one = 1, ten = 10;
	void *p = memory(64);
	cudaGraph_t graph = new_graph();
	cudaGraphNode_t set = NULL, host = NULL, record = NULL, wait = NULL;
	struct cudaMemsetParams fill = set_params(p, 3, 4), fill_got;
	struct cudaHostNodeParams call = {.fn = count_call, .userData = &one}, call_got;
	cudaEvent_t first = NULL, second = NULL, got = NULL;
	cudaGraphExec_t exec;
	unsigned enabled = 77;
	QUIET(cudaEventCreate, &first);
	QUIET(cudaEventCreate, &second);
	CALL(cudaGraphAddMemsetNode, &set, graph, NULL, 0, &fill);
	CALL(cudaGraphAddHostNode, &host, graph, &set, 1, &call);
	CALL(cudaGraphAddEventRecordNode, &record, graph, &host, 1, first);
	CALL(cudaGraphAddEventWaitNode, &wait, graph, &record, 1, first);
	CALL(cudaGraphMemsetNodeGetParams, set, &fill_got);
	YES("same", fill_got.dst == p && fill_got.value == 3 && fill_got.width == 4);
	CALL(cudaGraphHostNodeGetParams, host, &call_got);
	YES("same", call_got.fn == count_call && call_got.userData == &one);
	CALL(cudaGraphEventRecordNodeGetEvent, record, &got);
	YES("first", got == first);
	CALL(cudaGraphEventWaitNodeGetEvent, wait, &got);
	YES("first", got == first);
	exec = instantiate(graph);
	run(exec);
	REMARK("called %u", called);
	CONTENT("p", p, 32);
	fill.value = 4;
	call.userData = &ten;
	CALL(cudaGraphMemsetNodeSetParams, set, &fill);
	CALL(cudaGraphExecMemsetNodeSetParams, exec, set, &fill);
	CALL(cudaGraphHostNodeSetParams, host, &call);
	CALL(cudaGraphExecHostNodeSetParams, exec, host, &call);
	CALL(cudaGraphEventRecordNodeSetEvent, record, second);
	CALL(cudaGraphEventWaitNodeSetEvent, wait, second);
	CALL(cudaGraphExecEventRecordNodeSetEvent, exec, record, second);
	CALL(cudaGraphExecEventWaitNodeSetEvent, exec, wait, second);
	run(exec);
	REMARK("called %u", called);
	CONTENT("p", p, 32);
	CALL(cudaGraphNodeSetEnabled, exec, set, 0);
	CALL(cudaGraphNodeGetEnabled, exec, set, &enabled);
	NUMBER("enabled", enabled);
	CALL(cudaGraphNodeSetEnabled, exec, host, 0);
	fill.elementSize = 3;
	CALL(cudaGraphAddMemsetNode, &set, graph, NULL, 0, &fill);
	call.fn = NULL;
	CALL(cudaGraphAddHostNode, &host, graph, NULL, 0, &call);
	CALL(cudaGraphAddEventRecordNode, &record, graph, NULL, 0, NULL);
}

CASE(children_and_updates)
{
	void *p = memory(64);
	cudaGraph_t graph = new_graph(), child = new_graph(), other = new_graph(), inner = NULL;
	cudaGraphNode_t node = NULL, set = NULL;
	struct cudaMemsetParams fill = set_params(p, 1, 4);
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	struct cudaGraphNodeParams any = {.type = cudaGraphNodeTypeMemset};
	QUIET(cudaGraphAddMemsetNode, &set, child, NULL, 0, &fill);
	CALL(cudaGraphAddChildGraphNode, &node, graph, NULL, 0, child);
	CALL(cudaGraphChildGraphNodeGetGraph, node, &inner);
	YES("a copy", inner != child);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	fill.value = 2;
	QUIET(cudaGraphAddMemsetNode, &set, other, NULL, 0, &fill);
	CALL(cudaGraphExecChildGraphNodeSetParams, exec, node, other);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	QUIET(cudaGraphExecDestroy, exec);
	exec = instantiate(child);
	memset(&info, 0x55, sizeof(info));
	CALL(cudaGraphExecUpdate, exec, other, &info);
	NUMBER("result", info.result);
	YES("no node", info.errorNode == NULL);
	empty(other, NULL, 0);
	CALL(cudaGraphExecUpdate, exec, other, &info);
	NUMBER("result", info.result);
	any.memset.dst = p;
	any.memset.value = 7;
	any.memset.elementSize = 4;
	any.memset.width = 4;
	any.memset.height = 1;
	CALL(cudaGraphAddNode, &node, other, &set, NULL, 1, &any);
	CALL(cudaGraphNodeSetParams, node, &any);
	exec = instantiate(other);
	any.memset.value = 8;
	CALL(cudaGraphExecNodeSetParams, exec, node, &any);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cudaGraphAddNode, &node, other, NULL, NULL, 0, NULL);
}

CASE(instantiate)
{
	cudaGraph_t graph = new_graph();
	cudaGraphExec_t exec = NULL;
	unsigned long long flags = 77;
	cudaGraphInstantiateParams params = {
		.flags = cudaGraphInstantiateFlagUpload, .result_out = 77};
	char path[] = "/tmp/ckt-api-XXXXXX", first[16] = "";
	int fd = mkstemp(path);
	empty(graph, NULL, 0);
	CALL(cudaGraphInstantiate, &exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
	CALL(cudaGraphExecGetFlags, exec, &flags);
	NUMBER("flags", (long long)flags);
	CALL(cudaGraphInstantiateWithFlags, &exec, graph, 0);
	CALL(cudaGraphInstantiateWithParams, &exec, graph, &params);
	NUMBER("result", params.result_out);
	CALL(cudaGraphUpload, exec, NULL);
	CALL(cudaGraphLaunch, exec, NULL);
	CALL(cudaDeviceSynchronize);
	CALL(cudaGraphExecDestroy, exec);
	CALL(cudaGraphInstantiate, &exec, graph, 0x100);
	CALL(cudaGraphInstantiate, &exec, NULL, 0);
	CALL(cudaGraphLaunch, NULL, NULL);
	CALL(cudaGraphDebugDotPrint, graph, path, 0);
	if (read(fd, first, 7) != 7)
		first[0] = 0;
	TEXT("begins", first);
	unlink(path);
}

CASE(memory)
{
	cudaGraph_t graph = new_graph(), other = new_graph();
	cudaGraphNode_t alloc = NULL, release = NULL, node = NULL;
	cudaGraphExec_t exec;
	void *got = NULL;
	unsigned long long value = 77, zero = 0;
	struct cudaMemAllocNodeParams
		params = {.poolProps = {.allocType = cudaMemAllocationTypePinned,
				  .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
			.bytesize = 1000},
		told;
	CALL(cudaGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	YES("some", params.dptr != NULL);
	CALL(cudaGraphMemAllocNodeGetParams, alloc, &told);
	YES("same", told.dptr == params.dptr && told.bytesize == 1000);
	exec = instantiate(graph);
	CALL(cudaGraphLaunch, exec, NULL);
	CALL(cudaMemset, params.dptr, 1, 1000);
	CALL(cudaDeviceGetGraphMemAttribute, 0, cudaGraphMemAttrUsedMemCurrent, &value);
	YES("some", value >= 1000);
	CALL(cudaGraphLaunch, exec, NULL);
	CALL(cudaFreeAsync, params.dptr, NULL);
	CALL(cudaGraphLaunch, exec, NULL);
	CALL(cudaFree, params.dptr);
	CALL(cudaGraphAddMemFreeNode, &release, other, NULL, 0, params.dptr);
	CALL(cudaGraphMemFreeNodeGetParams, release, &got);
	YES("same", got == params.dptr);
	CALL(cudaGraphAddMemFreeNode, &node, other, &release, 1, params.dptr);
	CALL(cudaGraphAddMemFreeNode, &node, other, NULL, 0, NULL);
	CALL(cudaDeviceSetGraphMemAttribute, 0, cudaGraphMemAttrUsedMemHigh, &zero);
	CALL(cudaDeviceSetGraphMemAttribute, 0, cudaGraphMemAttrUsedMemCurrent, &zero);
	CALL(cudaDeviceGraphMemTrim, 0);
	CALL(cudaDeviceGraphMemTrim, 99);
	CALL(cudaGraphExecDestroy, exec);
}

static unsigned gone;

static void went(void *data)
{
	gone += *(unsigned *)data;
}

CASE(objects)
{
	static unsigned one = 1;
	cudaGraph_t graph = new_graph();
	cudaUserObject_t object = NULL;
	CALL(cudaUserObjectCreate, &object, &one, went, 1, cudaUserObjectNoDestructorSync);
	CALL(cudaUserObjectRetain, object, 1);
	CALL(cudaGraphRetainUserObject, graph, object, 1, cudaGraphUserObjectMove);
	CALL(cudaUserObjectRelease, object, 1);
	REMARK("gone %u", gone);
	CALL(cudaGraphReleaseUserObject, graph, object, 1);
	QUIET(cudaDeviceSynchronize);
	for (int i = 0; i < 60000 && !gone; i++)
		usleep(1000);
	REMARK("gone %u", gone);
	CALL(cudaUserObjectCreate, &object, &one, went, 1, 0);
}

CASE(capture)
{
	void *p = memory(64);
	cudaStream_t s = NULL, t = NULL;
	cudaEvent_t event = NULL;
	cudaGraph_t graph = NULL, seen = NULL;
	cudaGraphNode_t node;
	const cudaGraphNode_t *list = NULL;
	cudaGraphExec_t exec;
	enum cudaStreamCaptureStatus status = 77;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	unsigned long long id = 0;
	size_t count = 77;
	void *q = NULL;
	QUIET(cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
	QUIET(cudaStreamCreateWithFlags, &t, cudaStreamNonBlocking);
	QUIET(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
	CALL(cudaStreamBeginCapture, s, cudaStreamCaptureModeGlobal);
	QUIET(cudaMemsetAsync, p, 1, 8, s);
	CALL(cudaStreamIsCapturing, s, &status);
	NUMBER("status", status);
	CALL(cudaStreamGetCaptureInfo, s, &status, &id, &seen, &list, NULL, &count);
	YES("some", id != 0 && seen != NULL);
	NUMBER("count", count);
	QUIET(cudaEventRecord, event, s);
	QUIET(cudaStreamWaitEvent, t, event, 0);
	QUIET(cudaMemsetAsync, (char *)p + 8, 2, 8, t);
	QUIET(cudaEventRecord, event, t);
	QUIET(cudaStreamWaitEvent, s, event, 0);
	CALL(cudaStreamEndCapture, s, &graph);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cudaStreamEndCapture, s, &graph);
	graph = new_graph();
	node = empty(graph, NULL, 0);
	CALL(cudaStreamBeginCaptureToGraph, s, graph, &node, NULL, 1,
		cudaStreamCaptureModeThreadLocal);
	CALL(cudaStreamUpdateCaptureDependencies, s, &node, NULL, 1,
		cudaStreamSetCaptureDependencies);
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cudaMalloc, &q, 64);
	CALL(cudaThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cudaStreamEndCapture, s, &seen);
	YES("the same", seen == graph);
	CALL(cudaStreamBeginCapture, s, cudaStreamCaptureModeGlobal);
	CALL(cudaMalloc, &q, 64);
	CALL(cudaStreamEndCapture, s, &graph);
	CALL(cudaStreamBeginCapture, NULL, cudaStreamCaptureModeGlobal);
	CALL(cudaStreamBeginCapture, s, 77);
	CALL(cudaThreadExchangeStreamCaptureMode, NULL);
}
