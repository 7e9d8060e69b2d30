/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of streams.  The client sets them on the worker's stream, and an image saves them with
 * the stream.  The client keeps the values for later queries.
 */
#include <string.h>

#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/stream/stream_hints.h"
#include "cudacommon/capture.h"
#include "cudacommon/launch_attribute.h"

static const CUstreamAttrID all[] = {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_PRIORITY,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP};

static CUstreamAttrValue told(const struct ckt_stream_hints *hints, CUstreamAttrID attribute)
{
	CUstreamAttrValue value = ckt_stream_attribute_fresh(attribute);
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		value.accessPolicyWindow = hints->window;
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (hints->policy)
			value.syncPolicy = hints->policy;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		value.priority = hints->priority;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		value.memSyncDomain = hints->domain;
		break;
	default:
		if (hints->map_set)
			value.memSyncDomainMap = hints->map;
		break;
	}
	return value;
}

static void remember(
	struct ckt_stream_hints *hints, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		hints->window = value->accessPolicyWindow;
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		hints->policy = value->syncPolicy;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		hints->priority = value->priority;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		hints->domain = value->memSyncDomain;
		break;
	default:
		hints->map = value->memSyncDomainMap;
		hints->map_set = true;
		break;
	}
}

/*
 * Sets the attribute on the worker's stream.  The reply is an error if the device does not support
 * it.
 */
static CUresult set_at_worker(
	uint64_t stream, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	return CKT_WAITED(stream_set_attribute, STREAM_SET_ATTRIBUTE, CKT_CALL_F_NUMBERED, NULL,
		.stream = stream, .attribute = (uint32_t)attribute, .value = (const uint8_t *)value,
		.value_len = sizeof *value);
}

CKT_EXPORT CUresult cuStreamGetAttribute(
	CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	struct ckt_stream_hints *hints;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_stream_hints(handle, &hints);
	if (result)
		return result;
	if (!ckt_stream_attribute_known(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	*value = told(hints, attribute);
	return CUDA_SUCCESS;
}

static CUresult clamp(int *priority)
{
	int least, greatest;
	CUresult result = cuCtxGetStreamPriorityRange(&least, &greatest);
	if (!result)
		*priority = *priority > least ? least : *priority < greatest ? greatest : *priority;
	return result;
}

CKT_EXPORT CUresult cuStreamSetAttribute(
	CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *given)
{
	struct ckt_stream_hints *hints;
	struct ckt_context *context;
	uint64_t stream;
	if (!given)
		return CUDA_ERROR_INVALID_VALUE;
	CKT_ROUTE_STREAM(handle);
	CUstreamAttrValue value = *given;
	CUresult result = ckt_client_stream_hints(handle, &hints);
	if (!result)
		result = ckt_stream_resolve(handle, &stream);
	if (!result)
		result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_stream_attribute_check(attribute, &value,
			ckt_client_device_attribute(context->device,
				CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE));
	if (!result && attribute == CU_STREAM_ATTRIBUTE_PRIORITY)
		result = clamp(&value.priority);
	if (!result)
		result = set_at_worker(stream, attribute, &value);
	if (!result)
		remember(hints, attribute, &value);
	return result;
}

CKT_EXPORT CUresult cuStreamCopyAttributes(CUstream target, CUstream source)
{
	struct ckt_stream_hints *to, *from;
	uint64_t stream;
	CKT_ROUTE_STREAM(target);
	CUresult result = ckt_client_stream_hints(target, &to);
	if (!result)
		result = ckt_stream_resolve(target, &stream);
	if (!result)
		result = ckt_client_stream_hints(source, &from);
	for (size_t i = 0; i < sizeof all / sizeof *all && !result; i++) {
		CUstreamAttrValue value = told(from, all[i]), before = told(to, all[i]);
		if (memcmp(&value, &before, sizeof value) == 0)
			continue;
		/* CU_SYNC_POLICY_AUTO has the same meaning as a policy that was never set. */
		if (all[i] == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY && !from->policy)
			value.syncPolicy = CU_SYNC_POLICY_AUTO;
		result = set_at_worker(stream, all[i], &value);
	}
	if (!result)
		*to = *from;
	return result;
}

CKT_EXPORT CUresult cuStreamCopyAttributes_ptsz(CUstream target, CUstream source)
{
	return cuStreamCopyAttributes(
		target ? target : CU_STREAM_PER_THREAD, source ? source : CU_STREAM_PER_THREAD);
}

unsigned ckt_stream_node_attributes(
	uint64_t id, CUlaunchAttribute ret_attributes[CKT_STREAM_ATTRIBUTES_MAX])
{
	struct ckt_stream_hints *hints;
	unsigned count = 0;
	if (ckt_client_stream_hints((CUstream)(uintptr_t)id, &hints))
		return 0;
	if (hints->window.num_bytes)
		ret_attributes[count++] =
			(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
				.value.accessPolicyWindow = hints->window};
	if (hints->priority)
		ret_attributes[count++] = (CUlaunchAttribute){
			.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = hints->priority};
	if (hints->domain)
		ret_attributes[count++] =
			(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
				.value.memSyncDomain = hints->domain};
	if (hints->map_set)
		ret_attributes[count++] =
			(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
				.value.memSyncDomainMap = hints->map};
	return count;
}
