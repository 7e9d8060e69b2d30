/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/stream_attribute.c: attributes of streams: sent to the worker, remembered for
 * each, copied, checked.
 */
#include "relay.h"

static void test_attributes(void)
{
	CUstream a, b;
	CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_SPIN};
	IS(cuStreamCreate(&a, 0), CUDA_SUCCESS);
	IS(cuStreamCreate(&b, 0), CUDA_SUCCESS);
	COST(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS, 1, 0);
	value.syncPolicy = (CUsynchronizationPolicy)77;
	LOCAL(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), BAD);
	LOCAL(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS);
	IS(value.syncPolicy, CU_SYNC_POLICY_SPIN);
	IS(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS);
	YES(value.syncPolicy != CU_SYNC_POLICY_SPIN);
	COST(cuStreamCopyAttributes(b, a), CUDA_SUCCESS, 1, 0);
	IS(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_SUCCESS);
	IS(value.syncPolicy, CU_SYNC_POLICY_SPIN);
	IS(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value), CUDA_SUCCESS);
	IS(value.memSyncDomainMap.default_ * 10 + value.memSyncDomainMap.remote, 1);
	value.accessPolicyWindow = (CUaccessPolicyWindow){.hitRatio = 1.5f};
	LOCAL(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), BAD);
	value.accessPolicyWindow =
		(CUaccessPolicyWindow){.hitRatio = 0.5f, .missProp = CU_ACCESS_PROPERTY_PERSISTING};
	LOCAL(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), BAD);
	value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
	COST(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
		CUDA_SUCCESS, 1, 0);
	value.priority = -1000;
	COST(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS, 1, 0);
	value.priority = 77;
	LOCAL(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
	IS(value.priority, -5);
	LOCAL(cuStreamGetPriority(a, &value.priority), CUDA_SUCCESS);
	IS(value.priority, -5);
	LOCAL(cuStreamSetAttribute(a, (CUstreamAttrID)99, &value), BAD);
	LOCAL(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, NULL), BAD);
	LOCAL(cuStreamGetAttribute((CUstream)0x1234, CU_STREAM_ATTRIBUTE_PRIORITY, &value),
		CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamDestroy(a), CUDA_SUCCESS);
	IS(cuStreamDestroy(b), CUDA_SUCCESS);
}

UNIT_SUITE(stream_attribute, {"attributes", test_attributes})
