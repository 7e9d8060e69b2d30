/*
 * Attributes of streams.  They are hints about waiting, caching and the order of memory operations, which the worker's streams do without;
 * what was set is remembered for those who ask.
 */
#include <string.h>

#include "client/cuda/internal.h"
#include "client/cuda/route.h"
#include "driver/capture.h"

CKT_EXPORT CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	struct ckt_stream_hints *hints;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_hints(handle, &hints);
	if (result)
		return result;
	switch (attribute) {
	case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		value->accessPolicyWindow = hints->window;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		/* Never set, it is none of the constants (seen on an H200). */
		value->syncPolicy = hints->policy ? hints->policy : (CUsynchronizationPolicy)-1;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_PRIORITY:
		value->priority = hints->priority;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
		value->memSyncDomain = hints->domain;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		value->memSyncDomainMap = hints->map_set ? hints->map : (CUlaunchMemSyncDomainMap){.default_ = 0, .remote = 1};
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult set_window(struct ckt_stream_hints *hints, const CUaccessPolicyWindow *window)
{
	if (window->hitRatio < 0 || window->hitRatio > 1 || (unsigned)window->hitProp > CU_ACCESS_PROPERTY_PERSISTING ||
	    window->missProp == CU_ACCESS_PROPERTY_PERSISTING || (unsigned)window->missProp > CU_ACCESS_PROPERTY_PERSISTING)
		return CUDA_ERROR_INVALID_VALUE;
	hints->window = *window;
	return CUDA_SUCCESS;
}

static CUresult set_priority(struct ckt_stream_hints *hints, int priority)
{
	int least, greatest;
	CUresult result = cuCtxGetStreamPriorityRange(&least, &greatest);
	if (!result)
		hints->priority = priority > least ? least : priority < greatest ? greatest : priority;
	return result;
}

CKT_EXPORT CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	struct ckt_stream_hints *hints;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_hints(handle, &hints);
	if (result)
		return result;
	switch (attribute) {
	case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return set_window(hints, &value->accessPolicyWindow);
	case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			return CUDA_ERROR_INVALID_VALUE;
		hints->policy = value->syncPolicy;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
		if ((unsigned)value->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
			return CUDA_ERROR_INVALID_VALUE;
		hints->domain = value->memSyncDomain;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		hints->map = value->memSyncDomainMap;
		hints->map_set = true;
		return CUDA_SUCCESS;
	case CU_STREAM_ATTRIBUTE_PRIORITY:
		/* The worker's stream keeps the one it was made with. */
		return set_priority(hints, value->priority);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CKT_EXPORT CUresult cuStreamCopyAttributes(CUstream target, CUstream source)
{
	struct ckt_stream_hints *to, *from;
	CUresult result = ckt_stream_hints(target, &to);
	if (!result)
		result = ckt_stream_hints(source, &from);
	if (!result)
		*to = *from;
	return result;
}

CKT_EXPORT CUresult cuStreamCopyAttributes_ptsz(CUstream target, CUstream source)
{
	return cuStreamCopyAttributes(target ? target : CU_STREAM_PER_THREAD, source ? source : CU_STREAM_PER_THREAD);
}
