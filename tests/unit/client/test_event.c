/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/event.c: events: made, recorded and destroyed without an answer, asked and
 * waited for at the worker.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "relay.h"

static void test_events(void)
{
	CUevent event, other;
	CUstream stream;
	float ms;
	COST(cuEventCreate(&event, 0), CUDA_SUCCESS, 0, 1);
	COST(cuEventRecord(event, NULL), CUDA_SUCCESS, 0, 1);
	/* COST waited for all that was issued. */
	LOCAL(cuEventSynchronize(event), CUDA_SUCCESS);
	LOCAL(cuEventQuery(event), CUDA_SUCCESS);
	LOCAL(cuEventCreate(NULL, 0), BAD);
	LOCAL(cuEventCreate(&other, 0x100), BAD);
	LOCAL(cuEventCreate(&other, CU_EVENT_INTERPROCESS), BAD); /* only without timing */
	CUipcEventHandle shared;
	IS(cuEventCreate(&other, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	LOCAL(cuIpcGetEventHandle(NULL, other), BAD);
	COST(cuIpcGetEventHandle(&shared, other), CUDA_SUCCESS, 1, 0);
	/* its own */
	LOCAL(cuIpcOpenEventHandle(&other, shared), CUDA_ERROR_INVALID_CONTEXT);
	memset(&shared, 0x5a, sizeof shared);
	LOCAL(cuIpcOpenEventHandle(&other, shared), CUDA_ERROR_MAP_FAILED);
	/* no other process opens it behind this */
	COST(cuEventDestroy(other), CUDA_SUCCESS, 1, 1);
	LOCAL(cuEventRecordWithFlags(event, NULL, 2), BAD);
	LOCAL(cuEventRecord((CUevent)0x1234, NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	IS(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	COST(cuEventRecord(other, stream), CUDA_SUCCESS, 0, 1);
	IS(cuEventElapsedTime(&ms, event, other), CUDA_ERROR_INVALID_HANDLE);
	COST(cuCtxRecordEvent(primary, event), CUDA_SUCCESS, 1, 0);
	COST(cuCtxWaitEvent(primary, event), CUDA_SUCCESS, 1, 0);
	LOCAL(cuCtxWaitEvent((CUcontext)0x1234, event), CUDA_ERROR_INVALID_CONTEXT);
	COST(cuEventDestroy(event), CUDA_SUCCESS, 0, 1);
	LOCAL(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventDestroy(other), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

/* An event that was seen finished stays so, whatever else happens, until it is recorded again. */
static void test_known(void)
{
	CUevent event, other;
	CUstream stream;
	CUdeviceptr memory = memory_of(4096, 0);
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&other, 0), CUDA_SUCCESS);
	IS(cuEventRecord(event, stream), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	ASKS(cuEventSynchronize(event), "event_synchronize", 0);
	IS(cuMemsetD32Async(memory, 1, 1024, stream), CUDA_SUCCESS);
	IS(cuEventRecord(other, stream), CUDA_SUCCESS);
	ASKS(cuEventQuery(event), "event_query", 0);
	ASKS(cuEventSynchronize(other), "event_synchronize", 1);
	IS(cuEventRecord(event, stream), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	IS(cuCtxRecordEvent(primary, event), CUDA_SUCCESS);
	/* From then on it is asked about each time. */
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	ASKS(cuEventQuery(event), "event_query", 1);
	/* Other processes record theirs. */
	IS(cuEventDestroy(other), CUDA_SUCCESS);
	IS(cuEventCreate(&other, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	COST(cuEventQuery(other), CUDA_SUCCESS, 1, 0);
	COST(cuEventQuery(other), CUDA_SUCCESS, 1, 0);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuEventDestroy(other), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* A wait for the stream, or a copy to the host on it, covers the events that were recorded on it. */
static void test_covered(void)
{
	CUevent before, behind, elsewhere;
	CUstream stream, other;
	CUdeviceptr memory = memory_of(4096, 0);
	uint32_t word = 0;
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&before, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&behind, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&elsewhere, 0), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 7, 1024, stream), CUDA_SUCCESS);
	IS(cuEventRecord(before, stream), CUDA_SUCCESS);
	IS(cuEventRecord(elsewhere, other), CUDA_SUCCESS);
	ASKS(cuMemcpyDtoHAsync(&word, memory, 4, stream), "memcpy_dtoh", 1);
	IS(word, 7);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 0);
	ASKS(cuEventSynchronize(before), "event_synchronize", 0);
	ASKS(cuEventSynchronize(elsewhere), "event_synchronize", 1);
	/* Recorded behind the wait. */
	IS(cuEventRecord(behind, stream), CUDA_SUCCESS);
	ASKS(cuEventQuery(before), "event_query", 0);
	ASKS(cuEventSynchronize(behind), "event_synchronize", 1);
	/* Recorded again, on the stream that was not waited for. */
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	IS(cuEventRecord(before, other), CUDA_SUCCESS);
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(before), "event_synchronize", 1);
	/* A wait for the context covers all of its streams. */
	IS(cuEventRecord(before, other), CUDA_SUCCESS);
	IS(cuEventRecord(behind, NULL), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 8, 1024, stream), CUDA_SUCCESS);
	ASKS(cuEventQuery(before), "event_query", 0);
	ASKS(cuEventQuery(behind), "event_query", 0);
	/* A stream that is gone tells nothing. */
	IS(cuEventRecord(before, other), CUDA_SUCCESS);
	IS(cuStreamSynchronize(other), CUDA_SUCCESS);
	IS(cuStreamDestroy(other), CUDA_SUCCESS);
	ASKS(cuEventQuery(before), "event_query", 1);
	IS(cuEventDestroy(before), CUDA_SUCCESS);
	IS(cuEventDestroy(behind), CUDA_SUCCESS);
	IS(cuEventDestroy(elsewhere), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* In a stream without work an event without time is finished as soon as it is recorded. */
static void test_idle(void)
{
	CUevent event, timed;
	CUstream beside, blocking;
	CUdeviceptr memory = memory_of(4096, 0);
	IS(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	IS(cuEventCreate(&timed, 0), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 1, 1024, beside), CUDA_SUCCESS);
	IS(cuStreamSynchronize(beside), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		IS(cuEventRecord(event, beside), CUDA_SUCCESS);
		ASKS(cuEventSynchronize(event), "event_synchronize", 0);
		ASKS(cuStreamSynchronize(beside), "stream_synchronize", 0);
	}
	IS(cuMemsetD32Async(memory, 2, 1024, beside), CUDA_SUCCESS);
	IS(cuEventRecord(event, beside), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	/* The GPU's time of an event is there when the event is. */
	IS(cuStreamSynchronize(beside), CUDA_SUCCESS);
	IS(cuEventRecord(timed, beside), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(timed), "event_synchronize", 1);
	/* A recording in this stream waits for the default stream, which has work. */
	IS(cuMemsetD32Async(memory, 3, 1024, NULL), CUDA_SUCCESS);
	IS(cuStreamSynchronize(blocking), CUDA_SUCCESS);
	IS(cuEventRecord(event, blocking), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		IS(cuEventRecord(event, i % 2 ? blocking : NULL), CUDA_SUCCESS);
		ASKS(cuEventQuery(event), "event_query", 0);
		ASKS(cuCtxSynchronize(), "ctx_synchronize", 0);
	}
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuEventDestroy(timed), CUDA_SUCCESS);
	IS(cuStreamDestroy(beside), CUDA_SUCCESS);
	IS(cuStreamDestroy(blocking), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* An event that a launch records by its attributes is asked about each time. */
static void test_launched(void)
{
	CUevent event;
	uint32_t n = 3;
	CUdeviceptr out = memory_of(64, 0);
	void *params[] = {&out, &n};
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1};
	IS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	ASKS(cuEventQuery(event), "event_query", 1);
	ASKS(cuEventQuery(event), "event_query", 0);
	attribute.value.launchCompletionEvent.event = event;
	IS(cuLaunchKernelEx(&config, relay_add(), params, NULL), CUDA_SUCCESS);
	ASKS(cuEventSynchronize(event), "event_synchronize", 1);
	ASKS(cuEventQuery(event), "event_query", 1);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuMemFree(out), CUDA_SUCCESS);
}

static void hold(void *released)
{
	while (!atomic_load((_Atomic bool *)released))
		usleep(1000);
}

/* A graph records its event at each launch: nothing is known of events from then on. */
static void test_graph(void)
{
	static _Atomic bool released;
	CUgraph graph;
	CUgraphNode wait, record;
	CUgraphExec exec;
	CUstream stream;
	CUevent event;
	CUDA_HOST_NODE_PARAMS host = {.fn = hold, .userData = &released};
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	IS(cuEventQuery(event), CUDA_SUCCESS);
	LOCAL(cuEventQuery(event), CUDA_SUCCESS);
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	IS(cuGraphAddHostNode(&wait, graph, NULL, 0, &host), CUDA_SUCCESS);
	IS(cuGraphAddEventRecordNode(&record, graph, &wait, 1, event), CUDA_SUCCESS);
	MUST(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	IS(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
	/* No COST here: it waits for what is issued. */
	relay_mark();
	IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	IS(relay_count("event_query"), 1);
	atomic_store(&released, true);
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	COST(cuEventQuery(event), CUDA_SUCCESS, 1, 0);
	COST(cuEventQuery(event), CUDA_SUCCESS, 1, 0);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

/* graph is last: what it begins lasts as long as the process. */
UNIT_SUITE(event, {"events", test_events}, {"known", test_known}, {"covered", test_covered},
	{"idle", test_idle}, {"launched", test_launched}, {"graph", test_graph})
