/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture when what took part in it goes away before it ends: streams, events, the thread
 * that made them.
 */
#include <pthread.h>

#include "driver.h"

static CUdeviceptr p;
static CUstream s, t;
static CUevent fork_event, join_event;
static CUcontext context;

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

/* A capture on s of which t has become part. */
static void forked(CUstreamCaptureMode mode)
{
	context = start();
	p = memory(64);
	s = new_stream();
	t = new_stream();
	fork_event = new_event();
	join_event = new_event();
	QUIET(cuStreamBeginCapture_v2, s, mode);
	QUIET(cuMemsetD8Async, p, 1, 4, s);
	QUIET(cuEventRecord, fork_event, s);
	QUIET(cuStreamWaitEvent, t, fork_event, 0);
}

static void status(CUstream stream)
{
	CUstreamCaptureStatus now = 77;
	CALL(cuStreamIsCapturing, stream, &now);
	NUMBER("status", now);
}

/* Ends the capture, and runs what it made. */
static void ended(void)
{
	CUgraph graph = (CUgraph)7;
	CUgraphExec exec = NULL;
	size_t nodes = 77, edges = 77;
	int result = CALL(cuStreamEndCapture, s, &graph);
	YES("none", graph == NULL);
	status(s);
	if (result)
		return;
	CALL(cuGraphGetNodes, graph, NULL, &nodes);
	NUMBER("nodes", (long long)nodes);
	CALL(cuGraphGetEdges, graph, NULL, NULL, &edges);
	NUMBER("edges", (long long)edges);
	if (CALL(cuGraphInstantiateWithFlags, &exec, graph, 0))
		return;
	CALL(cuGraphLaunch, exec, s);
	CONTENT("p", p, 32);
}

CASE(joined)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	QUIET(cuStreamWaitEvent, s, join_event, 0);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	CALL(cuMemsetD8Async, p + 16, 3, 4, s);
	ended();
}

/* The event remembers what the stream did. */
CASE(joined_later)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	CALL(cuStreamWaitEvent, s, join_event, 0);
	ended();
}

CASE(unjoined)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	CALL(cuMemsetD8Async, p + 16, 3, 4, s);
	ended();
}

CASE(unjoined_relaxed)
{
	forked(CU_STREAM_CAPTURE_MODE_RELAXED);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	CALL(cuMemsetD8Async, p + 16, 3, 4, s);
	ended();
}

/* It joined and did nothing. */
CASE(idle)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	ended();
}

/* More work behind what was joined. */
CASE(joined_in_part)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	QUIET(cuStreamWaitEvent, s, join_event, 0);
	QUIET(cuMemsetD8Async, p + 24, 4, 4, t);
	CALL(cuStreamDestroy_v2, t);
	status(s);
	ended();
}

/* Another one takes its place, perhaps with its handle. */
CASE(replaced)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	for (int i = 0; i < 3; i++) {
		QUIET(cuMemsetD8Async, p + 8 * (size_t)i, (unsigned char)(i + 2), 4, t);
		QUIET(cuEventRecord, join_event, t);
		QUIET(cuStreamWaitEvent, s, join_event, 0);
		CALL(cuStreamDestroy_v2, t);
		t = new_stream();
		status(t);
		QUIET(cuEventRecord, fork_event, s);
		QUIET(cuStreamWaitEvent, t, fork_event, 0);
	}
	ended();
}

CASE(events)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuEventDestroy_v2, fork_event);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	QUIET(cuStreamWaitEvent, s, join_event, 0);
	CALL(cuEventDestroy_v2, join_event);
	status(s);
	ended();
}

/* The only way back is gone. */
CASE(event_unjoined)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	CALL(cuEventDestroy_v2, join_event);
	status(s);
	ended();
}

/* An event that the graph itself records, and waits for. */
CASE(event_external)
{
	CUevent recorded, awaited;
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	recorded = new_event();
	awaited = new_event();
	CALL(cuEventRecordWithFlags, recorded, s, CU_EVENT_RECORD_EXTERNAL);
	CALL(cuStreamWaitEvent, s, awaited, CU_EVENT_WAIT_EXTERNAL);
	QUIET(cuEventRecord, join_event, t);
	QUIET(cuStreamWaitEvent, s, join_event, 0);
	CALL(cuEventDestroy_v2, recorded);
	CALL(cuEventDestroy_v2, awaited);
	status(s);
	ended();
}

/* The stream that the capture began on. */
static void origin(CUstreamCaptureMode mode)
{
	CUgraph graph = (CUgraph)7;
	forked(mode);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	CALL(cuStreamDestroy_v2, s);
	status(t);
	CALL(cuMemsetD8Async, p + 16, 3, 4, t);
	CALL(cuStreamEndCapture, t, &graph);
	CALL(cuStreamDestroy_v2, t);
	s = new_stream();
	status(s);
	CALL(cuMemsetD8Async, p + 24, 4, 4, s);
	CALL(cuStreamSynchronize, s);
}

CASE(origin_global)
{
	origin(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CASE(origin_relaxed)
{
	origin(CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* What the origin captured is forbidden to others afterwards? */
CASE(origin_event)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuStreamDestroy_v2, s);
	CALL(cuStreamDestroy_v2, t);
	CALL(cuEventQuery, fork_event);
	s = new_stream();
	CALL(cuStreamWaitEvent, s, fork_event, 0);
	CALL(cuEventRecord, fork_event, s);
	CALL(cuEventSynchronize, fork_event);
}

CASE(origin_graph)
{
	CUgraph graph = NULL;
	size_t nodes = 77;
	context = start();
	p = memory(64);
	s = new_stream();
	QUIET(cuGraphCreate, &graph, 0);
	CALL(cuStreamBeginCaptureToGraph, s, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p, 1, 4, s);
	CALL(cuStreamDestroy_v2, s);
	CALL(cuGraphGetNodes, graph, NULL, &nodes);
	NUMBER("nodes", (long long)nodes);
	CALL(cuGraphDestroy, graph);
}

static void in_thread(void *(*call)(void *))
{
	pthread_t thread;
	pthread_create(&thread, NULL, call, NULL);
	pthread_join(thread, NULL);
	REMARK("back");
}

static void *destroys(void *unused)
{
	(void)unused;
	QUIET(cuCtxSetCurrent, context);
	CALL(cuStreamDestroy_v2, t);
	CALL(cuEventDestroy_v2, fork_event);
	return NULL;
}

/* Another thread destroys them. */
CASE(elsewhere)
{
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	QUIET(cuMemsetD8Async, p + 8, 2, 4, t);
	QUIET(cuEventRecord, join_event, t);
	QUIET(cuStreamWaitEvent, s, join_event, 0);
	in_thread(destroys);
	status(s);
	ended();
}

static void *makes(void *unused)
{
	(void)unused;
	QUIET(cuCtxSetCurrent, context);
	CALL(cuStreamCreate, &t, CU_STREAM_NON_BLOCKING);
	CALL(cuStreamWaitEvent, t, fork_event, 0);
	CALL(cuMemsetD8Async, p + 8, 2, 4, t);
	CALL(cuEventRecord, join_event, t);
	CALL(cuStreamDestroy_v2, t);
	return NULL;
}

/* Another thread's stream joins and goes. */
CASE(of_a_thread)
{
	forked(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	QUIET(cuStreamDestroy_v2, t);
	in_thread(makes);
	CALL(cuStreamWaitEvent, s, join_event, 0);
	ended();
}

static void *own_stream(void *unused)
{
	(void)unused;
	QUIET(cuCtxSetCurrent, context);
	CALL(cuStreamWaitEvent, CU_STREAM_PER_THREAD, fork_event, 0);
	CALL(cuMemsetD8Async, p + 8, 2, 4, CU_STREAM_PER_THREAD);
	CALL(cuEventRecord, join_event, CU_STREAM_PER_THREAD);
	return NULL;
}

/* A thread's own stream joins, and the thread ends. */
CASE(ended_thread)
{
	forked(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	QUIET(cuStreamDestroy_v2, t);
	in_thread(own_stream);
	CALL(cuStreamWaitEvent, s, join_event, 0);
	ended();
}

static void *destroys_origin(void *unused)
{
	(void)unused;
	QUIET(cuCtxSetCurrent, context);
	CALL(cuStreamDestroy_v2, s);
	return NULL;
}

CASE(origin_elsewhere)
{
	CUdeviceptr q = 0;
	forked(CU_STREAM_CAPTURE_MODE_GLOBAL);
	in_thread(destroys_origin);
	status(t);
	CALL(cuStreamDestroy_v2, t);
	CALL(cuMemAlloc_v2, &q, 64);
}
