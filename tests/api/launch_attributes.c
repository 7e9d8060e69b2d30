/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch may bring with it: events that it records, when its node may be changed, how it is
 * scheduled.
 */
#include "driver.h"

static CUmodule module;
static CUdeviceptr p;
static CUstream s, t;
static unsigned value = 5;
static void *params[] = {&p, &value};
static CUlaunchAttribute attributes[2];
static CUlaunchConfig config;

static void prepare(void)
{
	start();
	module = load();
	p = memory(256);
	QUIET(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &t, CU_STREAM_NON_BLOCKING);
	memset(&config, 0, sizeof(config));
	memset(attributes, 0, sizeof(attributes));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = 4, config.blockDimY = config.blockDimZ = 1;
	config.hStream = s;
	config.attrs = attributes;
	config.numAttrs = 1;
}

static CUevent new_event(unsigned flags)
{
	CUevent event = NULL;
	QUIET(cuEventCreate, &event, flags);
	return event;
}

static void programmatic(CUevent event, int flags, int at_start)
{
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	attributes[0].value.programmaticEvent.event = event;
	attributes[0].value.programmaticEvent.flags = flags;
	attributes[0].value.programmaticEvent.triggerAtBlockStart = at_start;
}

static void completion(CUevent event, int flags)
{
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	attributes[0].value.launchCompletionEvent.event = event;
	attributes[0].value.launchCompletionEvent.flags = flags;
}

/* Another kernel waits for the event that the launch records, and the host does. */
static void recorded(CUevent event)
{
	CUfunction function = kernel(module, "fill");
	unsigned later = 9;
	void *second[] = {&p, &later};
	CALL(cuEventQuery, event);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuStreamWaitEvent, t, event, 0);
	CALL(cuEventSynchronize, event);
	CALL(cuEventQuery, event);
	CALL(cuStreamSynchronize, s);
	CONTENT("p", p, 20);
	CALL(cuLaunchKernel, function, 1, 1, 1, 4, 1, 1, 0, t, second, NULL);
	CALL(cuStreamSynchronize, t);
	CONTENT("p", p, 20);
}

CASE(programmatic_event)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	programmatic(event, 0, 0);
	recorded(event);
	programmatic(event, 0, 1);
	recorded(event);
}

CASE(programmatic_event_wrong)
{
	CUfunction function;
	float ms = 77;
	CUevent timed, event;
	prepare();
	function = kernel(module, "fill");
	timed = new_event(CU_EVENT_DEFAULT);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	programmatic(timed, 0, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuEventQuery, timed);
	CALL(cuEventElapsedTime_v2, &ms, timed, timed);
	programmatic(event, CU_EVENT_RECORD_EXTERNAL, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	programmatic(event, 0x80, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	programmatic(new_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), 0, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	programmatic(event, 0, 7);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuCtxSynchronize);
	CONTENT("p", p, 20);
}

CASE(programmatic_event_null)
{
	CUfunction function;
	prepare();
	function = kernel(module, "fill");
	programmatic(NULL, 0, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuCtxSynchronize);
}

CASE(completion_event)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	completion(event, 0);
	recorded(event);
}

CASE(completion_event_wrong)
{
	CUfunction function;
	CUevent timed, event;
	prepare();
	function = kernel(module, "fill");
	timed = new_event(CU_EVENT_DEFAULT);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	completion(timed, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	completion(event, CU_EVENT_RECORD_EXTERNAL);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	completion(event, 0x80);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	completion(new_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuCtxSynchronize);
}

CASE(completion_event_null)
{
	CUfunction function;
	prepare();
	function = kernel(module, "fill");
	completion(NULL, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuCtxSynchronize);
}

CASE(both_events)
{
	CUfunction function;
	CUevent event, second;
	prepare();
	function = kernel(module, "fill");
	event = new_event(CU_EVENT_DISABLE_TIMING);
	second = new_event(CU_EVENT_DISABLE_TIMING);
	completion(event, 0);
	attributes[1] = attributes[0];
	programmatic(second, 0, 1);
	config.numAttrs = 2;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuEventSynchronize, event);
	CALL(cuEventSynchronize, second);
	completion(second, 0);
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
	CALL(cuCtxSynchronize);
	CONTENT("p", p, 20);
}

/* In a capture the event leads to edges of its kind. */
static void captured(CUevent event, int kernel_behind)
{
	CUfunction function = kernel(module, "nothing"), fill = kernel(module, "fill");
	CUevent join = new_event(CU_EVENT_DISABLE_TIMING);
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	CUgraphNode from[8], to[8];
	CUgraphEdgeData data[8];
	size_t count = 8;
	CUlaunchConfig plain = config;
	plain.numAttrs = 0;
	plain.hStream = t;
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	if (CALL(cuLaunchKernelEx, &config, fill, params, NULL)) {
		CALL(cuStreamEndCapture, s, &graph);
		return;
	}
	CALL(cuEventQuery, event);
	CALL(cuStreamEndCapture, s, &graph);
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernelEx, &config, fill, params, NULL);
	CALL(cuStreamWaitEvent, t, event, 0);
	if (kernel_behind)
		CALL(cuLaunchKernelEx, &plain, function, NULL, NULL);
	else
		CALL(cuMemsetD8Async, p + 64, 3, 16, t);
	CALL(cuEventRecord, join, t);
	CALL(cuStreamWaitEvent, s, join, 0);
	CALL(cuMemsetD8Async, p + 32, 7, 16, s);
	if (CALL(cuStreamEndCapture, s, &graph))
		return;
	memset(data, 0, sizeof(data));
	CALL(cuGraphGetEdges_v2, graph, from, to, data, &count);
	NUMBER("count", (long long)count);
	for (size_t i = 0; i < count; i++) {
		CUgraphNodeType a = 77, b = 77;
		QUIET(cuGraphNodeGetType, from[i], &a);
		QUIET(cuGraphNodeGetType, to[i], &b);
		REMARK("edge of %d and %d: type %d, from %d, to %d", a, b, data[i].type,
			data[i].from_port, data[i].to_port);
	}
	if (CALL(cuGraphInstantiateWithFlags, &exec, graph, 0))
		return;
	CALL(cuGraphLaunch, exec, s);
	CALL(cuStreamSynchronize, s);
	CONTENT("p", p, 80);
	CALL(cuEventQuery, event);
}

CASE(programmatic_captured)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	programmatic(event, 0, 0);
	captured(event, 1);
}

CASE(programmatic_captured_start)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	programmatic(event, 0, 1);
	captured(event, 1);
}

CASE(programmatic_captured_memset)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	programmatic(event, 0, 0);
	captured(event, 0);
}

CASE(completion_captured)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	completion(event, 0);
	captured(event, 1);
}

CASE(completion_captured_memset)
{
	CUevent event;
	prepare();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	completion(event, 0);
	captured(event, 0);
}

/* The node's attribute, and the handle that kernels would use. */
CASE(updatable)
{
	CUfunction function;
	CUgraph graph = NULL;
	prepare();
	function = kernel(module, "nothing");
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	attributes[0].value.deviceUpdatableKernelNode.deviceUpdatable = 1;
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	YES("some", attributes[0].value.deviceUpdatableKernelNode.devNode != NULL);
	CALL(cuStreamEndCapture, s, &graph);
}

CASE(updatable_not)
{
	CUfunction function;
	CUgraph graph = NULL;
	prepare();
	function = kernel(module, "nothing");
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	CALL(cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	YES("some", attributes[0].value.deviceUpdatableKernelNode.devNode != NULL);
	CALL(cuStreamEndCapture, s, &graph);
}

static void scheduled(int id, unsigned how)
{
	CUfunction function = kernel(module, "fill");
	attributes[0].id = (CUlaunchAttributeID)id;
	attributes[0].value.nvlinkUtilCentricScheduling = how;
	CALL(cuLaunchKernelEx, &config, function, params, NULL);
}

CASE(nvlink)
{
	prepare();
	scheduled(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 0);
	scheduled(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 1);
	scheduled(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 7);
	CALL(cuCtxSynchronize);
	CONTENT("p", p, 20);
}

/* Every attribute with nothing set, on a launch and on a node. */
CASE(zero)
{
	CUfunction function;
	CUgraph graph = NULL;
	CUgraphNode node = NULL;
	CUDA_KERNEL_NODE_PARAMS_v2 kernel_params;
	CUkernelNodeAttrValue zero;
	prepare();
	function = kernel(module, "fill");
	for (int i = 0; i < 20; i++) {
		if (i == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
			i == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
			i == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
			i == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
			continue;
		memset(attributes, 0, sizeof(attributes));
		attributes[0].id = (CUlaunchAttributeID)i;
		REMARK("attribute %d", i);
		CALL(cuLaunchKernelEx, &config, function, params, NULL);
	}
	CALL(cuCtxSynchronize);
	QUIET(cuGraphCreate, &graph, 0);
	memset(&kernel_params, 0, sizeof(kernel_params));
	kernel_params.func = function;
	kernel_params.gridDimX = kernel_params.gridDimY = kernel_params.gridDimZ = 1;
	kernel_params.blockDimX = 4, kernel_params.blockDimY = kernel_params.blockDimZ = 1;
	kernel_params.kernelParams = params;
	QUIET(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &kernel_params);
	for (int i = 0; i < 20; i++) {
		memset(&zero, 0, sizeof(zero));
		REMARK("attribute %d", i);
		CALL(cuGraphKernelNodeGetAttribute, node, (CUkernelNodeAttrID)i, &zero);
		if (i == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
			i == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
			i == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
			i == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ||
			i == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
			continue;
		memset(&zero, 0, sizeof(zero));
		CALL(cuGraphKernelNodeSetAttribute, node, (CUkernelNodeAttrID)i, &zero);
	}
}

/* A node's attribute that is an event. */
CASE(node_event)
{
	CUfunction function;
	CUgraph graph = NULL;
	CUgraphNode node = NULL;
	CUDA_KERNEL_NODE_PARAMS_v2 kernel_params;
	CUevent event;
	prepare();
	function = kernel(module, "fill");
	event = new_event(CU_EVENT_DISABLE_TIMING);
	QUIET(cuGraphCreate, &graph, 0);
	memset(&kernel_params, 0, sizeof(kernel_params));
	kernel_params.func = function;
	kernel_params.gridDimX = kernel_params.gridDimY = kernel_params.gridDimZ = 1;
	kernel_params.blockDimX = 4, kernel_params.blockDimY = kernel_params.blockDimZ = 1;
	kernel_params.kernelParams = params;
	QUIET(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &kernel_params);
	programmatic(event, 0, 0);
	CALL(cuGraphKernelNodeSetAttribute, node, attributes[0].id, &attributes[0].value);
	completion(event, 0);
	CALL(cuGraphKernelNodeSetAttribute, node, attributes[0].id, &attributes[0].value);
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	memset(&attributes[0].value, 0, sizeof(attributes[0].value));
	CALL(cuGraphKernelNodeSetAttribute, node, attributes[0].id, &attributes[0].value);
	attributes[0].value.deviceUpdatableKernelNode.deviceUpdatable = 1;
	CALL(cuGraphKernelNodeSetAttribute, node, attributes[0].id, &attributes[0].value);
	YES("some", attributes[0].value.deviceUpdatableKernelNode.devNode != NULL);
}
