/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: begin, end, joining, asking, and what is forbidden meanwhile, in each mode. */
#include <pthread.h>

#include "driver.h"

static CUstream new_stream(void)
{
	CUstream stream = NULL;
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

static CUevent new_event(void)
{
	CUevent event = NULL;
	QUIET(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	return event;
}

static void nodes_of(CUgraph graph)
{
	size_t nodes = 77, edges = 77;
	QUIET(cuGraphGetNodes, graph, NULL, &nodes);
	QUIET(cuGraphGetEdges, graph, NULL, NULL, &edges);
	NUMBER("nodes", nodes);
	NUMBER("edges", edges);
}

CASE(one_stream)
{
	CUdeviceptr p;
	CUstream s;
	CUgraph graph = NULL, seen = NULL;
	CUgraphExec exec = NULL;
	CUstreamCaptureStatus status = 77;
	cuuint64_t id = 0;
	const CUgraphNode *list = NULL;
	const CUgraphEdgeData *data = NULL;
	size_t count = 77;
	start();
	p = memory(64);
	s = new_stream();
	CALL(cuStreamIsCapturing, s, &status);
	NUMBER("status", status);
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuStreamIsCapturing, s, &status);
	NUMBER("status", status);
	CALL(cuMemsetD8Async, p, 1, 32, s);
	CALL(cuMemcpyDtoDAsync_v2, p + 32, p, 16, s);
	CALL(cuStreamGetCaptureInfo, s, &status, &id);
	NUMBER("status", status);
	YES("some", id != 0);
	CALL(cuStreamGetCaptureInfo_v2, s, &status, &id, &seen, &list, &count);
	YES("some", seen != NULL && list != NULL);
	NUMBER("count", count);
	CALL(cuStreamGetCaptureInfo_v3, s, &status, &id, &seen, &list, &data, &count);
	NUMBER("count", count);
	CALL(cuStreamEndCapture, s, &graph);
	YES("seen before", graph == seen);
	nodes_of(graph);
	CALL(cuStreamIsCapturing, s, &status);
	NUMBER("status", status);
	REMARK("before");
	CONTENT("p", p, 64);
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	CALL(cuGraphLaunch, exec, s);
	REMARK("behind");
	CONTENT("p", p, 64);
	CALL(cuStreamEndCapture, s, &graph);
	CALL(cuStreamBeginCapture_v2, s, 77);
	CALL(cuStreamBeginCapture, s);
	CALL(cuStreamEndCapture, s, &graph);
	CALL(cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuStreamIsCapturing, NULL, &status);
	NUMBER("status", status);
}

CASE(per_thread)
{
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = 77;
	cuuint64_t id = 0;
	start();
	CALL(cuStreamBeginCapture_v2_ptsz, NULL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	CALL(cuStreamIsCapturing_ptsz, NULL, &status);
	NUMBER("status", status);
	CALL(cuStreamGetCaptureInfo_ptsz, NULL, &status, &id);
	CALL(cuStreamEndCapture_ptsz, NULL, &graph);
	CALL(cuStreamBeginCapture_ptsz, NULL);
	CALL(cuStreamEndCapture_ptsz, NULL, &graph);
}

CASE(fork_and_join)
{
	CUdeviceptr p;
	CUstream s, t;
	CUevent fork, join;
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = 77;
	start();
	p = memory(64);
	s = new_stream();
	t = new_stream();
	fork = new_event();
	join = new_event();
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p, 1, 4, s);
	CALL(cuEventRecord, fork, s);
	CALL(cuStreamWaitEvent, t, fork, 0);
	CALL(cuStreamIsCapturing, t, &status);
	NUMBER("status", status);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuMemsetD8Async, p + 16, 3, 4, s);
	CALL(cuEventRecord, join, t);
	CALL(cuStreamWaitEvent, s, join, 0);
	QUIET(cuMemsetD8Async, p + 24, 4, 4, s);
	CALL(cuStreamEndCapture, s, &graph);
	if (graph)
		nodes_of(graph);
	CALL(cuStreamIsCapturing, t, &status);
	NUMBER("status", status);
	CALL(cuEventQuery, fork);
	CALL(cuStreamWaitEvent, t, fork, 0);
}

CASE(unjoined)
{
	CUdeviceptr p;
	CUstream s, t;
	CUevent fork;
	CUgraph graph = (CUgraph)7;
	start();
	p = memory(64);
	s = new_stream();
	t = new_stream();
	fork = new_event();
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuEventRecord, fork, s);
	QUIET(cuStreamWaitEvent, t, fork, 0);
	QUIET(cuMemsetD8Async, p, 2, 4, t);
	CALL(cuStreamEndCapture, t, &graph);
	CALL(cuStreamEndCapture, s, &graph);
	YES("none", graph == NULL);
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuEventRecord, fork, s);
	QUIET(cuStreamWaitEvent, t, fork, 0);
	QUIET(cuMemsetD8Async, p, 2, 4, t);
	CALL(cuStreamEndCapture, s, &graph);
	YES("none", graph == NULL);
}

/* Two captures meet. */
CASE(merge)
{
	CUstream s, t;
	CUevent event;
	CUgraph graph = NULL;
	start();
	s = new_stream();
	t = new_stream();
	event = new_event();
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED);
	CALL(cuStreamBeginCapture_v2, t, CU_STREAM_CAPTURE_MODE_RELAXED);
	CALL(cuEventRecord, event, s);
	CALL(cuStreamWaitEvent, t, event, 0);
	CALL(cuStreamEndCapture, s, &graph);
	CALL(cuStreamEndCapture, t, &graph);
}

CASE(to_graph)
{
	CUdeviceptr p;
	CUstream s;
	CUgraph graph = NULL, ended = NULL;
	CUgraphNode node = NULL;
	CUgraphNode *list = NULL;
	size_t count = 77;
	start();
	p = memory(64);
	s = new_stream();
	QUIET(cuGraphCreate, &graph, 0);
	QUIET(cuGraphAddEmptyNode, &node, graph, NULL, 0);
	CALL(cuStreamBeginCaptureToGraph, s, graph, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuGraphDestroy, graph);
	QUIET(cuMemsetD8Async, p, 1, 4, s);
	CALL(cuStreamUpdateCaptureDependencies, s, &node, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	CALL(cuStreamGetCaptureInfo_v2, s, NULL, NULL, NULL, (const CUgraphNode **)&list, &count);
	QUIET(cuMemsetD8Async, p, 2, 4, s);
	CALL(cuStreamUpdateCaptureDependencies_v2, s, &node, NULL, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	CALL(cuStreamUpdateCaptureDependencies, s, &node, 1, 77);
	QUIET(cuMemsetD8Async, p, 3, 4, s);
	CALL(cuStreamEndCapture, s, &ended);
	YES("the same", ended == graph);
	nodes_of(graph);
	CALL(cuStreamUpdateCaptureDependencies, s, &node, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	CALL(cuStreamBeginCaptureToGraph, s, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Each in a capture of its own. */
static void forbidden(CUstreamCaptureMode mode)
{
	CUdeviceptr p = memory(64), q = 0;
	CUstream s = new_stream();
	CUevent event = new_event();
	CUgraph graph = NULL;
	REMARK("mode %d", mode);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuMemAlloc_v2, &q, 64);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuMemsetD8_v2, p, 1, 4);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuStreamSynchronize, s);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuStreamQuery, s);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuCtxSynchronize);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuEventQuery, event);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	QUIET(cuEventRecord, event, s);
	CALL(cuEventSynchronize, event);
	CALL(cuStreamEndCapture, s, &graph);
	QUIET(cuStreamBeginCapture_v2, s, mode);
	CALL(cuStreamDestroy_v2, s);
}

CASE(forbidden_global)
{
	start();
	forbidden(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CASE(forbidden_thread_local)
{
	start();
	forbidden(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

CASE(forbidden_relaxed)
{
	start();
	forbidden(CU_STREAM_CAPTURE_MODE_RELAXED);
}

static CUstream shared;
static CUcontext shared_context;

/* What another thread may do meanwhile. */
static void *elsewhere(void *unused)
{
	CUdeviceptr q = 0;
	CUgraph graph = NULL;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	(void)unused;
	QUIET(cuCtxSetCurrent, shared_context);
	CALL(cuMemAlloc_v2, &q, 64);
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cuMemAlloc_v2, &q, 64);
	mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cuMemAlloc_v2, &q, 64);
	CALL(cuMemsetD8Async, q, 1, 4, shared);
	CALL(cuStreamEndCapture, shared, &graph);
	return NULL;
}

static void with_thread(CUstreamCaptureMode mode)
{
	pthread_t thread;
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = 77;
	shared_context = start();
	shared = new_stream();
	CALL(cuStreamBeginCapture_v2, shared, mode);
	pthread_create(&thread, NULL, elsewhere, NULL);
	pthread_join(thread, NULL);
	REMARK("back");
	CALL(cuStreamIsCapturing, shared, &status);
	NUMBER("status", status);
	CALL(cuStreamEndCapture, shared, &graph);
}

CASE(thread_global)
{
	with_thread(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CASE(thread_local_mode)
{
	with_thread(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

CASE(thread_relaxed)
{
	with_thread(CU_STREAM_CAPTURE_MODE_RELAXED);
}

CASE(legacy)
{
	CUdeviceptr p;
	CUstream s = NULL;
	CUgraph graph = NULL;
	CUstreamCaptureStatus status = 77;
	start();
	p = memory(64);
	QUIET(cuStreamCreate, &s, CU_STREAM_DEFAULT);
	QUIET(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED);
	CALL(cuStreamIsCapturing, NULL, &status);
	CALL(cuMemsetD8Async, p, 1, 4, NULL);
	CALL(cuStreamEndCapture, s, &graph);
}

/* Stream-ordered allocation becomes nodes. */
CASE(allocation)
{
	CUdeviceptr p = 0, plain;
	CUstream s;
	CUgraph graph = NULL;
	CUgraphNode list[4];
	CUgraphNodeType type = 77;
	size_t count = 4;
	start();
	plain = memory(64);
	s = new_stream();
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuMemAllocAsync, &p, 1000, s);
	CALL(cuMemsetD8Async, p, 1, 1000, s);
	CALL(cuMemFreeAsync, p, s);
	CALL(cuStreamEndCapture, s, &graph);
	CALL(cuGraphGetNodes, graph, list, &count);
	NUMBER("count", count);
	for (size_t i = 0; i < count; i++) {
		QUIET(cuGraphNodeGetType, list[i], &type);
		NUMBER("type", type);
	}
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuMemFreeAsync, plain, s);
	CALL(cuStreamEndCapture, s, &graph);
}

/* Kernels that may begin before those before them have ended. */
CASE(programmatic)
{
	CUfunction function;
	CUstream s;
	CUgraph graph = NULL;
	CUgraphNode from[4], to[4];
	CUgraphEdgeData data[4];
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1};
	size_t count = 4;
	start();
	function = kernel(load(), "nothing");
	s = new_stream();
	config.hStream = s;
	attribute.value.programmaticStreamSerializationAllowed = 1;
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	CALL(cuStreamEndCapture, s, &graph);
	memset(data, 0x55, sizeof(data));
	CALL(cuGraphGetEdges_v2, graph, from, to, data, &count);
	NUMBER("count", count);
	NUMBER("type", data[0].type);
	NUMBER("from", data[0].from_port);
	NUMBER("to", data[0].to_port);
	count = 4;
	CALL(cuGraphGetEdges, graph, from, to, &count);
}

CASE(own_stream)
{
	CUdeviceptr p;
	CUgraph graph = NULL, got = NULL;
	CUgraphNode node = NULL;
	const CUgraphNode *list = NULL;
	const CUgraphEdgeData *edges = NULL;
	CUgraphExec exec = NULL;
	CUstreamCaptureStatus status = 77;
	cuuint64_t id = 0;
	size_t count = 77;
	start();
	p = memory(64);
	QUIET(cuGraphCreate, &graph, 0);
	QUIET(cuGraphAddEmptyNode, &node, graph, NULL, 0);
	CALL(cuStreamBeginCaptureToGraph_ptsz, NULL, graph, &node, NULL, 1,
		CU_STREAM_CAPTURE_MODE_RELAXED);
	CALL(cuStreamGetCaptureInfo_v2_ptsz, NULL, &status, &id, &got, &list, &count);
	NUMBER("status", status);
	YES("some", id != 0);
	YES("the graph", got == graph);
	YES("the node", count == 1 && list[0] == node);
	QUIET(cuMemsetD8Async, p, 1, 8, CU_STREAM_PER_THREAD);
	CALL(cuStreamUpdateCaptureDependencies_ptsz, NULL, &node, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	QUIET(cuMemsetD8Async, p + 8, 2, 8, CU_STREAM_PER_THREAD);
	CALL(cuStreamUpdateCaptureDependencies_v2_ptsz, NULL, &node, NULL, 1,
		CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	CALL(cuStreamGetCaptureInfo_v3_ptsz, NULL, &status, NULL, NULL, &list, &edges, &count);
	NUMBER("count", (long long)count);
	CALL(cuStreamEndCapture_ptsz, NULL, &got);
	YES("the graph", got == graph);
	CALL(cuGraphGetEdges_v2, graph, NULL, NULL, NULL, &count);
	NUMBER("count", (long long)count);
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	QUIET(cuGraphLaunch, exec, NULL);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cuStreamUpdateCaptureDependencies_ptsz, NULL, &node, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	CALL(cuStreamUpdateCaptureDependencies_v2_ptsz, NULL, &node, NULL, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	CALL(cuStreamGetCaptureInfo_v3_ptsz, NULL, &status, &id, NULL, NULL, NULL, NULL);
	NUMBER("status", status);
}
