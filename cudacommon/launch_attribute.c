/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of launches and streams; see launch_attribute.h. */
#include "cudacommon/launch_attribute.h"

/* Without timing and not interprocess; other flags of a record are for graphs. */
static CUresult check_event(CUevent event, int flags)
{
	unsigned made;
	CUresult result = ckt_cudacommon_event_flags(event, &made);
	if (result)
		return result;
	if (flags & ~CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags)
		return CUDA_ERROR_ILLEGAL_STATE;
	return made & CU_EVENT_DISABLE_TIMING && !(made & CU_EVENT_INTERPROCESS)
		? CUDA_SUCCESS
		: CKT_AS_CUDA_NOT_SUPPORTED;
}

CUresult ckt_launch_attribute_check(const CUlaunchAttribute *attribute, bool capturing)
{
	switch ((int)attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return attribute->value.nvlinkUtilCentricScheduling > 1 ? CUDA_ERROR_INVALID_VALUE
									: CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return check_event(attribute->value.programmaticEvent.event,
			attribute->value.programmaticEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return check_event(attribute->value.launchCompletionEvent.event,
			attribute->value.launchCompletionEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		/* A launch without a node cannot update one. */
		if (!capturing)
			return CKT_AS_CUDA_NOT_SUPPORTED;
		return attribute->value.deviceUpdatableKernelNode.deviceUpdatable
			? CKT_CUDACOMMON_UNSUPPORTED("a device-updatable kernel node")
			: CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUevent ckt_launch_attribute_event(const CUlaunchAttribute *attribute, CUgraphEdgeData *ret_edge)
{
	*ret_edge = (CUgraphEdgeData){0};
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
		ret_edge->type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
		ret_edge->from_port = attribute->value.programmaticEvent.triggerAtBlockStart
			? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
			: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
		return attribute->value.programmaticEvent.event;
	}
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
		ret_edge->from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
		return attribute->value.launchCompletionEvent.event;
	}
	return NULL;
}

bool ckt_launch_attribute_stays(const CUlaunchAttribute *attribute)
{
	switch ((int)attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return false;
	default:
		return true;
	}
}

bool ckt_stream_attribute_known(CUstreamAttrID attribute)
{
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return true;
	default:
		return false;
	}
}

CUstreamAttrValue ckt_stream_attribute_fresh(CUstreamAttrID attribute)
{
	CUstreamAttrValue value = {0};
	/* The value is none of the constants. */
	if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		value.syncPolicy = (CUsynchronizationPolicy)-1;
	if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		value.memSyncDomainMap.remote = 1;
	return value;
}

CUresult ckt_stream_attribute_check(
	CUstreamAttrID attribute, const CUstreamAttrValue *value, int window_bytes)
{
	/* The limits of a device: an H200 accepts 128 MiB, and four domains. */
	enum { WINDOW_MAX = 1 << 30, DOMAINS_MAX = 4 };
	const CUaccessPolicyWindow *window = &value->accessPolicyWindow;
	bool good = false;
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		good = window->hitRatio >= 0 && window->hitRatio <= 1 &&
			(unsigned)window->missProp < CU_ACCESS_PROPERTY_PERSISTING &&
			window->num_bytes <= (size_t)(window_bytes ? window_bytes : WINDOW_MAX);
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		good = value->syncPolicy >= CU_SYNC_POLICY_AUTO &&
			value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		good = value->memSyncDomainMap.default_ < DOMAINS_MAX &&
			value->memSyncDomainMap.remote < DOMAINS_MAX;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		good = (unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		/* Any number is accepted and clamped to the range. */
		good = true;
		break;
	default:
		break;
	}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
