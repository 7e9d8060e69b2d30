/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of streams: set, told, copied, and what launches and captured kernels take of them. */
#include "driver.h"

static CUstream stream, other;
static CUdeviceptr p;

static void streams(void)
{
	start();
	p = memory(1 << 16);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
}

static CUstreamAttrValue window_of(
	size_t bytes, float ratio, CUaccessProperty hit, CUaccessProperty miss)
{
	CUstreamAttrValue value;
	memset(&value, 0, sizeof(value));
	value.accessPolicyWindow.base_ptr = (void *)(uintptr_t)p;
	value.accessPolicyWindow.num_bytes = bytes;
	value.accessPolicyWindow.hitRatio = ratio;
	value.accessPolicyWindow.hitProp = hit;
	value.accessPolicyWindow.missProp = miss;
	return value;
}

static void told(CUstream of, CUstreamAttrID attribute)
{
	CUstreamAttrValue value;
	memset(&value, 0x11, sizeof(value));
	if (CALL(cuStreamGetAttribute, of, attribute, &value))
		return;
	switch ((int)attribute) {
	case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		YES("base", value.accessPolicyWindow.base_ptr == (void *)(uintptr_t)p);
		NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
		FLOAT("ratio", value.accessPolicyWindow.hitRatio);
		NUMBER("hit", value.accessPolicyWindow.hitProp);
		NUMBER("miss", value.accessPolicyWindow.missProp);
		break;
	case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		NUMBER("policy", value.syncPolicy);
		break;
	case CU_STREAM_ATTRIBUTE_PRIORITY:
		NUMBER("priority", value.priority);
		break;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
		NUMBER("domain", value.memSyncDomain);
		break;
	case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		NUMBER("default", value.memSyncDomainMap.default_);
		NUMBER("remote", value.memSyncDomainMap.remote);
		break;
	}
}

static void told_all(CUstream of)
{
	told(of, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	told(of, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY);
	told(of, CU_STREAM_ATTRIBUTE_PRIORITY);
	told(of, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN);
	told(of, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
}

CASE(fresh)
{
	streams();
	told_all(stream);
	told_all(NULL);
	told_all(CU_STREAM_PER_THREAD);
	for (int i = 0; i < 18; i++) {
		CUstreamAttrValue value;
		if (i == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
			i == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY)
			continue;
		memset(&value, 0, sizeof(value));
		REMARK("attribute %d", i);
		CALL(cuStreamGetAttribute, stream, (CUstreamAttrID)i, &value);
		CALL(cuStreamSetAttribute, stream, (CUstreamAttrID)i, &value);
	}
}

CASE(window)
{
	CUstreamAttrValue value;
	streams();
	value = window_of(4096, 0.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	told(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	value = window_of(4096, 1.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	value = window_of(4096, 1, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_PERSISTING);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	value = window_of(4096, 1, (CUaccessProperty)3, CU_ACCESS_PROPERTY_NORMAL);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	value = window_of(4096, 1, CU_ACCESS_PROPERTY_STREAMING, CU_ACCESS_PROPERTY_NORMAL);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	told(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	value = window_of(
		(size_t)1 << 40, 1, CU_ACCESS_PROPERTY_STREAMING, CU_ACCESS_PROPERTY_NORMAL);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	told(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	value.accessPolicyWindow.base_ptr = (void *)0x10;
	value.accessPolicyWindow.num_bytes = 64;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	YES("kept", (told(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW), 1));
	value = window_of(0, 0, CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_NORMAL);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	told(stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
}

CASE(domain)
{
	CUstreamAttrValue value;
	streams();
	memset(&value, 0, sizeof(value));
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
	told(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN);
	told(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
	value.memSyncDomain = (CUlaunchMemSyncDomain)2;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
	memset(&value, 0, sizeof(value));
	value.memSyncDomainMap.default_ = 2;
	value.memSyncDomainMap.remote = 3;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value);
	told(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
	value.memSyncDomainMap.remote = 200;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value);
	told(stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
}

CASE(priority)
{
	CUstreamAttrValue value;
	int now = 77;
	streams();
	memset(&value, 0, sizeof(value));
	for (int i = -7; i < 3; i += 3) {
		value.priority = i;
		CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
		told(stream, CU_STREAM_ATTRIBUTE_PRIORITY);
		CALL(cuStreamGetPriority, stream, &now);
		NUMBER("priority", now);
	}
	QUIET(cuStreamCreateWithPriority, &other, CU_STREAM_NON_BLOCKING, -2);
	told(other, CU_STREAM_ATTRIBUTE_PRIORITY);
	value.priority = -1;
	CALL(cuStreamSetAttribute, other, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	CALL(cuStreamGetPriority, other, &now);
	NUMBER("priority", now);
	CALL(cuStreamSetAttribute, NULL, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	told(NULL, CU_STREAM_ATTRIBUTE_PRIORITY);
}

CASE(policy)
{
	CUstreamAttrValue value;
	streams();
	memset(&value, 0, sizeof(value));
	for (int i = 0; i < 6; i++) {
		value.syncPolicy = (CUsynchronizationPolicy)i;
		CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
			&value);
		told(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY);
	}
	value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	CALL(cuStreamSetAttribute, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	told(NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY);
	CALL(cuMemsetD8Async, p, 1, 64, NULL);
	CALL(cuStreamSynchronize, NULL);
}

CASE(copied)
{
	CUstreamAttrValue value;
	streams();
	value = window_of(4096, 0.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING);
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	memset(&value, 0, sizeof(value));
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
	memset(&value, 0, sizeof(value));
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	value.priority = -3;
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	CALL(cuStreamCopyAttributes, other, stream);
	told_all(other);
	CALL(cuStreamCopyAttributes, stream, NULL);
	told_all(stream);
}

static void node_told(CUgraphNode node, CUkernelNodeAttrID attribute)
{
	CUkernelNodeAttrValue value;
	memset(&value, 0x11, sizeof(value));
	if (CALL(cuGraphKernelNodeGetAttribute, node, attribute, &value))
		return;
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		YES("base", value.accessPolicyWindow.base_ptr == (void *)(uintptr_t)p);
		NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		NUMBER("priority", value.priority);
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		NUMBER("domain", value.memSyncDomain);
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		NUMBER("default", value.memSyncDomainMap.default_);
		NUMBER("remote", value.memSyncDomainMap.remote);
		break;
	}
}

/* What a captured kernel takes of its stream, and what a launch's own attribute changes of that. */
CASE(captured)
{
	CUfunction function;
	CUstreamAttrValue value;
	CUgraph graph = NULL;
	CUgraphNode nodes[4];
	size_t count = 4;
	CUlaunchAttribute own = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &own,
		.numAttrs = 1};
	streams();
	function = kernel(load(), "nothing");
	QUIET(cuStreamBeginCapture_v2, other, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, other, NULL, NULL);
	CALL(cuStreamEndCapture, other, &graph);
	QUIET(cuGraphGetNodes, graph, nodes, &count);
	node_told(nodes[0], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
	node_told(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY);
	node_told(nodes[0], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
	node_told(nodes[0], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
	value = window_of(4096, 0.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING);
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	memset(&value, 0, sizeof(value));
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
	memset(&value, 0, sizeof(value));
	value.priority = -3;
	QUIET(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	config.hStream = stream;
	own.value.priority = -1;
	CALL(cuLaunchKernelEx, &config, function, NULL, NULL);
	value.priority = -2;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	told(stream, CU_STREAM_ATTRIBUTE_PRIORITY);
	CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	CALL(cuStreamEndCapture, stream, &graph);
	count = 4;
	QUIET(cuGraphGetNodes, graph, nodes, &count);
	for (size_t i = 0; i < count; i++) {
		REMARK("node %zu", i);
		node_told(nodes[i], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
		node_told(nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY);
		node_told(nodes[i], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
		node_told(nodes[i], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
	}
}

CASE(host_atomics)
{
	unsigned capabilities[CU_ATOMIC_OPERATION_MAX];
	CUatomicOperation operations[CU_ATOMIC_OPERATION_MAX];
	int native = 77;
	start();
	for (int i = 0; i < CU_ATOMIC_OPERATION_MAX; i++) {
		capabilities[i] = 0x7777;
		operations[i] = (CUatomicOperation)i;
	}
	CALL(cuDeviceGetAttribute, &native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0);
	NUMBER("native", native);
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, CU_ATOMIC_OPERATION_MAX,
		0);
	for (int i = 0; i < CU_ATOMIC_OPERATION_MAX; i++)
		HEX("can", capabilities[i]);
	capabilities[0] = 0x7777;
	operations[0] = (CUatomicOperation)99;
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, 1, 0);
	HEX("can", capabilities[0]);
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, 1, 99);
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, NULL, 1, 0);
}
