/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/launch_attribute.c: which attributes a launch and a stream take, and the events that a
 * launch records.
 */
#include "cudacommon/launch_attribute.h"

#include "../softgpu/files.h"

static CUresult check(CUlaunchAttributeID id, unsigned value, bool capturing)
{
	CUlaunchAttribute attribute = {.id = id};
	attribute.value.nvlinkUtilCentricScheduling = value;
	return ckt_launch_attribute_check(&attribute, capturing);
}

static void test_plain(void)
{
	for (int id = 0; id < 20; id++) {
		bool event = id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
			id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
		bool none = id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == 15 ||
			id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
		CUresult wanted = none ? CUDA_ERROR_INVALID_VALUE
			: event        ? CUDA_ERROR_INVALID_HANDLE
			: id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
			? CUDA_ERROR_NOT_SUPPORTED
			: CUDA_SUCCESS;
		CHECK_RESULT(check((CUlaunchAttributeID)id, 0, false), wanted);
	}
	CHECK_RESULT(
		check(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 1, false), CUDA_SUCCESS);
	CHECK_RESULT(check(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 2, false),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		check(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 0, true), CUDA_SUCCESS);
	CHECK_RESULT(check(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1, true),
		CUDA_ERROR_NOT_SUPPORTED);
}

static void test_events(void)
{
	CUevent event, timed;
	CUgraphEdgeData edge;
	test_context();
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
		.value.programmaticEvent = {.event = event}};
	OK(ckt_launch_attribute_check(&attribute, false));
	YES(ckt_launch_attribute_event(&attribute, &edge) == event);
	IS(edge.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
	IS(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
	attribute.value.programmaticEvent.triggerAtBlockStart = 1;
	YES(ckt_launch_attribute_event(&attribute, &edge) == event);
	IS(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
	NO(ckt_launch_attribute_stays(&attribute));
	attribute.value.programmaticEvent.flags = CU_EVENT_RECORD_EXTERNAL;
	CHECK_RESULT(ckt_launch_attribute_check(&attribute, false), CUDA_ERROR_ILLEGAL_STATE);
	attribute.value.programmaticEvent.flags = 0x80;
	CHECK_RESULT(ckt_launch_attribute_check(&attribute, false), CUDA_ERROR_INVALID_VALUE);
	attribute = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
		.value.launchCompletionEvent = {.event = timed}};
	CHECK_RESULT(ckt_launch_attribute_check(&attribute, false), CUDA_ERROR_NOT_SUPPORTED);
	YES(ckt_launch_attribute_event(&attribute, &edge) == timed);
	IS(edge.type, 0);
	IS(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
	attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	CU_ASSERT_PTR_NULL(ckt_launch_attribute_event(&attribute, &edge));
	YES(ckt_launch_attribute_stays(&attribute));
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(timed));
}

static void test_streams(void)
{
	CUstreamAttrValue value = {0};
	value.accessPolicyWindow = (CUaccessPolicyWindow){
		.num_bytes = 4096, .hitRatio = 1, .missProp = CU_ACCESS_PROPERTY_STREAMING};
	OK(ckt_stream_attribute_check(CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value, 4096));
	CHECK_RESULT(
		ckt_stream_attribute_check(CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value, 4095),
		CUDA_ERROR_INVALID_VALUE);
	value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
	CHECK_RESULT(
		ckt_stream_attribute_check(CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value, 0),
		CUDA_ERROR_INVALID_VALUE);
	value = ckt_stream_attribute_fresh(CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
	OK(ckt_stream_attribute_check(CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value, 0));
	IS(value.memSyncDomainMap.remote, 1);
	value.memSyncDomainMap.remote = 4;
	CHECK_RESULT(ckt_stream_attribute_check(CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value, 0),
		CUDA_ERROR_INVALID_VALUE);
	NO(ckt_stream_attribute_known(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
	CHECK_RESULT(ckt_stream_attribute_check(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value, 0),
		CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(cudacommon / launch_attribute, {"plain", test_plain}, {"events", test_events},
	{"streams", test_streams})
