/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's streams and events. */
#include "runtime.h"

static cudaEvent_t new_event(void)
{
	cudaEvent_t event = NULL;
	QUIET(cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
	return event;
}

CASE(create)
{
	static const unsigned list[] = {cudaStreamDefault, cudaStreamNonBlocking};
	for (int i = 0; i < 2; i++) {
		cudaStream_t s = NULL;
		unsigned flags = 77;
		int priority = -77, device = -7;
		unsigned long long id = 0;
		CALL(cudaStreamCreateWithFlags, &s, list[i]);
		YES("some", s != NULL);
		CALL(cudaStreamGetFlags, s, &flags);
		NUMBER("flags", flags);
		CALL(cudaStreamGetPriority, s, &priority);
		NUMBER("priority", priority);
		CALL(cudaStreamGetDevice, s, &device);
		NUMBER("device", device);
		CALL(cudaStreamGetId, s, &id);
		YES("some", id != 0);
		CALL(cudaStreamQuery, s);
		CALL(cudaStreamSynchronize, s);
		CALL(cudaStreamDestroy, s);
	}
}

CASE(create_wrong)
{
	cudaStream_t s = NULL;
	CALL(cudaStreamCreate, NULL);
	CALL(cudaStreamCreateWithFlags, &s, 0x80);
	CALL(cudaStreamCreateWithFlags, NULL, 0);
	CALL(cudaStreamCreateWithPriority, &s, 0x80, 0);
	CALL(cudaStreamCreateWithPriority, NULL, 0, 0);
	CALL(cudaStreamDestroy, NULL);
	CALL(cudaStreamDestroy, cudaStreamLegacy);
	CALL(cudaStreamDestroy, cudaStreamPerThread);
	CALL(cudaGetLastError);
}

CASE(priorities)
{
	static const int list[] = {0, -1, -5, -100, 1, 100};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		cudaStream_t s = NULL;
		int priority = -77;
		CALL(cudaStreamCreateWithPriority, &s, cudaStreamNonBlocking, list[i]);
		CALL(cudaStreamGetPriority, s, &priority);
		NUMBER("priority", priority);
	}
}

CASE(ids)
{
	cudaStream_t a = new_stream(), b = new_stream();
	unsigned long long of_a = 0, of_b = 0, again = 0, legacy = 0, named = 0, thread = 0;
	CALL(cudaStreamGetId, a, &of_a);
	CALL(cudaStreamGetId, b, &of_b);
	YES("another", of_a != of_b);
	CALL(cudaStreamGetId, a, &again);
	YES("the same", of_a == again);
	CALL(cudaStreamGetId, NULL, &legacy);
	CALL(cudaStreamGetId, cudaStreamLegacy, &named);
	YES("the same", legacy == named);
	CALL(cudaStreamGetId, cudaStreamPerThread, &thread);
	YES("another", thread != legacy && thread != of_a);
}

CASE(defaults)
{
	cudaStream_t list[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
	for (int i = 0; i < 3; i++) {
		unsigned flags = 77;
		int priority = -77, device = -7;
		CALL(cudaStreamGetFlags, list[i], &flags);
		NUMBER("flags", flags);
		CALL(cudaStreamGetPriority, list[i], &priority);
		NUMBER("priority", priority);
		CALL(cudaStreamGetDevice, list[i], &device);
		NUMBER("device", device);
		CALL(cudaStreamQuery, list[i]);
		CALL(cudaStreamSynchronize, list[i]);
	}
}

CASE(per_thread)
{
	unsigned flags = 77;
	int priority = -77, device = -7;
	unsigned long long id = 0, thread = 0;
	cudaStream_t s = new_stream();
	CALL_AS(cudaStreamGetFlags, cudaStreamGetFlags_ptsz, NULL, &flags);
	NUMBER("flags", flags);
	CALL_AS(cudaStreamGetFlags, cudaStreamGetFlags_ptsz, s, &flags);
	NUMBER("flags", flags);
	CALL_AS(cudaStreamGetPriority, cudaStreamGetPriority_ptsz, NULL, &priority);
	NUMBER("priority", priority);
	CALL_AS(cudaStreamGetDevice, cudaStreamGetDevice_ptsz, NULL, &device);
	NUMBER("device", device);
	CALL_AS(cudaStreamGetId, cudaStreamGetId_ptsz, NULL, &id);
	QUIET(cudaStreamGetId, cudaStreamPerThread, &thread);
	YES("the thread's", id == thread);
	CALL_AS(cudaStreamQuery, cudaStreamQuery_ptsz, NULL);
	CALL_AS(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, NULL);
	CALL_AS(cudaStreamQuery, cudaStreamQuery_ptsz, s);
	CALL_AS(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, s);
}

CASE(per_thread_events)
{
	cudaEvent_t event = new_event();
	cudaStream_t s = new_stream();
	char *p = memory(16);
	CALL_AS(cudaEventRecord, cudaEventRecord_ptsz, event, NULL);
	CALL_AS(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz, s, event, 0);
	QUIET(cudaMemsetAsync, p, 1, 8, s);
	CALL_AS(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz, event, s,
		cudaEventRecordDefault);
	CALL_AS(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz, NULL, event, cudaEventWaitDefault);
	CALL_AS(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, NULL);
	CALL(cudaEventQuery, event);
	CONTENT("bytes", p, 12);
}

CASE(wrong)
{
	cudaStream_t s = new_stream();
	cudaEvent_t event = new_event();
	int device = -7;
	CALL(cudaStreamGetFlags, s, NULL);
	CALL(cudaStreamGetPriority, s, NULL);
	CALL(cudaStreamGetDevice, s, NULL);
	CALL(cudaStreamGetId, s, NULL);
	CALL(cudaStreamWaitEvent, s, NULL, 0);
	CALL(cudaStreamWaitEvent, s, event, 0x80);
	CALL(cudaStreamWaitEvent, s, event, 0);
	CALL(cudaStreamGetDevice, NULL, &device);
	CALL(cudaGetLastError);
}

CASE(destroyed)
{
	cudaStream_t s = new_stream();
	unsigned flags = 77;
	QUIET(cudaStreamDestroy, s);
	CALL(cudaStreamGetFlags, s, &flags);
	CALL(cudaStreamSynchronize, s);
	CALL(cudaStreamDestroy, s);
	CALL(cudaGetLastError);
}

static volatile int gate_open;
static void at_the_gate(void *data)
{
	(void)data;
	while (!gate_open)
		usleep(1000);
}

CASE(waiting)
{
	cudaStream_t first = new_stream(), second = new_stream();
	cudaEvent_t event = new_event();
	char *p = memory(16);
	QUIET(cudaLaunchHostFunc, first, at_the_gate, NULL);
	QUIET(cudaMemsetAsync, p, 1, 8, first);
	CALL(cudaEventRecord, event, first);
	CALL(cudaStreamWaitEvent, second, event, 0);
	QUIET(cudaMemsetAsync, p + 4, 2, 8, second);
	CALL(cudaStreamQuery, first);
	CALL(cudaStreamQuery, second);
	CALL(cudaEventQuery, event);
	CALL(cudaGetLastError);
	gate_open = 1;
	CALL(cudaStreamSynchronize, second);
	CALL(cudaEventQuery, event);
	CALL(cudaStreamQuery, first);
	CONTENT("bytes", p, 16);
}

CASE(default_waits)
{
	cudaStream_t blocking = NULL;
	char *p = memory(16);
	QUIET(cudaStreamCreate, &blocking);
	QUIET(cudaLaunchHostFunc, blocking, at_the_gate, NULL);
	QUIET(cudaMemsetAsync, p, 1, 8, blocking);
	QUIET(cudaMemsetAsync, p + 4, 2, 8, NULL);
	CALL(cudaStreamQuery, NULL);
	gate_open = 1;
	CALL(cudaStreamSynchronize, NULL);
	CONTENT("bytes", p, 16);
}

static volatile int order[8], called;

static void host_function(void *data)
{
	order[called++] = *(int *)data;
}

static void callback(cudaStream_t stream, cudaError_t status, void *data)
{
	(void)stream;
	order[called++] = *(int *)data + 100 * (int)status;
}

CASE(host_functions)
{
	static int one = 1, two = 2, three = 3, four = 4;
	cudaStream_t s = new_stream();
	CALL(cudaLaunchHostFunc, s, host_function, &one);
	CALL(cudaStreamAddCallback, s, callback, &two, 0);
	CALL(cudaLaunchHostFunc, s, host_function, &three);
	CALL(cudaStreamSynchronize, s);
	REMARK("called %d: %d %d %d", called, order[0], order[1], order[2]);
	CALL_AS(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz, NULL, host_function, &four);
	CALL_AS(cudaStreamAddCallback, cudaStreamAddCallback_ptsz, NULL, callback, &one, 0);
	CALL_AS(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, NULL);
	REMARK("called %d: %d %d", called, order[3], order[4]);
	CALL(cudaLaunchHostFunc, NULL, host_function, &two);
	CALL(cudaDeviceSynchronize);
	REMARK("called %d: %d", called, order[5]);
}

CASE(host_functions_wrong)
{
	static int one = 1;
	cudaStream_t s = new_stream();
	CALL(cudaLaunchHostFunc, s, NULL, &one);
	CALL(cudaStreamAddCallback, s, NULL, &one, 0);
	CALL(cudaStreamAddCallback, s, callback, &one, 1);
	CALL(cudaDeviceSynchronize);
	REMARK("called %d", called);
	CALL(cudaGetLastError);
}

CASE(attributes)
{
	cudaStream_t s = new_stream(), other = new_stream();
	cudaLaunchAttributeValue value;
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
	value.syncPolicy = cudaSyncPolicyYield;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeSynchronizationPolicy, &value);
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
	CALL(cudaStreamCopyAttributes, other, s);
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, other, cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributePriority, &value);
	NUMBER("priority", value.priority);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeAccessPolicyWindow, &value);
	NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeMemSyncDomain, &value);
	NUMBER("domain", value.memSyncDomain);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeMemSyncDomainMap, &value);
	NUMBER("default", value.memSyncDomainMap.default_);
	NUMBER("remote", value.memSyncDomainMap.remote);
}

CASE(attributes_per_thread)
{
	cudaStream_t s = new_stream();
	cudaLaunchAttributeValue value;
	memset(&value, 0, sizeof(value));
	CALL_AS(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz, NULL,
		cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
	value.syncPolicy = cudaSyncPolicySpin;
	CALL_AS(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz, NULL,
		cudaLaunchAttributeSynchronizationPolicy, &value);
	memset(&value, 0, sizeof(value));
	CALL_AS(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz, NULL,
		cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
	CALL_AS(cudaStreamCopyAttributes, cudaStreamCopyAttributes_ptsz, s, NULL);
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeSynchronizationPolicy, &value);
	NUMBER("policy", (int)value.syncPolicy);
}

CASE(attributes_window)
{
	cudaStream_t s = new_stream(), other = new_stream();
	cudaLaunchAttributeValue value;
	char *p = memory(1 << 20);
	memset(&value, 0, sizeof(value));
	value.accessPolicyWindow.base_ptr = p;
	value.accessPolicyWindow.num_bytes = 1 << 16;
	value.accessPolicyWindow.hitRatio = 0.5f;
	value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
	value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeAccessPolicyWindow, &value);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeAccessPolicyWindow, &value);
	YES("base", value.accessPolicyWindow.base_ptr == p);
	NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
	FLOAT("ratio", value.accessPolicyWindow.hitRatio);
	NUMBER("hit", value.accessPolicyWindow.hitProp);
	NUMBER("miss", value.accessPolicyWindow.missProp);
	CALL(cudaStreamCopyAttributes, other, s);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, other, cudaLaunchAttributeAccessPolicyWindow, &value);
	NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
}

CASE(attributes_wrong)
{
	cudaStream_t s = new_stream();
	cudaLaunchAttributeValue value;
	memset(&value, 0, sizeof(value));
	CALL(cudaStreamGetAttribute, s, (cudaLaunchAttributeID)99, &value);
	CALL(cudaStreamSetAttribute, s, (cudaLaunchAttributeID)99, &value);
	value.syncPolicy = (enum cudaSynchronizationPolicy)99;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeSynchronizationPolicy, &value);
	value.priority = -1000;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributePriority, &value);
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeCooperative, &value);
	CALL(cudaGetLastError);
}

CASE(events)
{
	static const unsigned list[] = {cudaEventDefault, cudaEventBlockingSync,
		cudaEventDisableTiming, cudaEventBlockingSync | cudaEventDisableTiming};
	cudaStream_t s = new_stream();
	for (int i = 0; i < 4; i++) {
		cudaEvent_t event = NULL;
		CALL(cudaEventCreateWithFlags, &event, list[i]);
		YES("some", event != NULL);
		CALL(cudaEventQuery, event);
		CALL(cudaEventRecord, event, s);
		CALL(cudaEventSynchronize, event);
		CALL(cudaEventQuery, event);
		CALL(cudaEventRecordWithFlags, event, s, cudaEventRecordDefault);
		CALL(cudaEventSynchronize, event);
		CALL(cudaEventRecord, event, NULL);
		CALL(cudaEventDestroy, event);
	}
}

CASE(elapsed)
{
	cudaStream_t s = new_stream();
	cudaEvent_t first = NULL, second = NULL, third = NULL;
	float ms = -77, other = -77, all = -77;
	char *p = memory(1 << 20);
	CALL(cudaEventCreate, &first);
	CALL(cudaEventCreate, &second);
	CALL(cudaEventCreate, &third);
	CALL(cudaEventRecord, first, s);
	QUIET(cudaMemsetAsync, p, 1, 1 << 20, s);
	CALL(cudaEventRecord, second, s);
	QUIET(cudaMemsetAsync, p, 2, 1 << 20, s);
	CALL(cudaEventRecord, third, s);
	CALL(cudaEventSynchronize, third);
	CALL(cudaEventElapsedTime, &ms, first, second);
	YES("later", ms >= 0);
	CALL(cudaEventElapsedTime, &other, second, first);
	YES("earlier", other <= 0);
	CALL(cudaEventElapsedTime, &all, first, third);
	YES("longer", all >= ms);
	CALL(cudaEventElapsedTime, &all, first, first);
	FLOAT("none", all);
	CALL(cudaEventDestroy, first);
}

CASE(events_wrong)
{
	cudaEvent_t event = new_event(), timed = NULL;
	cudaStream_t s = new_stream();
	float ms = 77;
	QUIET(cudaEventCreate, &timed);
	CALL(cudaEventCreate, NULL);
	CALL(cudaEventCreateWithFlags, &timed, 0x80);
	CALL(cudaEventCreateWithFlags, &timed, cudaEventInterprocess);
	CALL(cudaEventCreateWithFlags, NULL, 0);
	CALL(cudaEventRecord, NULL, s);
	CALL(cudaEventRecordWithFlags, event, s, 0x80);
	CALL(cudaEventRecordWithFlags, event, s, cudaEventRecordExternal);
	CALL(cudaEventElapsedTime, &ms, timed, timed);
	CALL(cudaEventElapsedTime, &ms, event, event);
	CALL(cudaEventElapsedTime, NULL, timed, timed);
	CALL(cudaEventQuery, NULL);
	CALL(cudaEventSynchronize, NULL);
	CALL(cudaEventDestroy, NULL);
	FLOAT("ms", ms);
	CALL(cudaGetLastError);
}

CASE(waits_wrong)
{
	cudaStream_t s = new_stream();
	cudaEvent_t event = new_event();
	CALL(cudaStreamWaitEvent, s, NULL, 0);
	CALL(cudaStreamWaitEvent, s, event, 0x80);
	CALL(cudaStreamWaitEvent, s, event, 0);
	CALL(cudaStreamWaitEvent, s, event, cudaEventWaitExternal);
	CALL(cudaGetLastError);
}

CASE(id_wrong)
{
	CALL(cudaStreamGetId, new_stream(), NULL);
}

CASE(priority_attribute)
{
	static const int list[] = {-1, -5, -1000, 0, 1000};
	cudaStream_t s = new_stream(), other = new_stream();
	cudaLaunchAttributeValue value;
	int priority = -77;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		memset(&value, 0, sizeof(value));
		value.priority = list[i];
		CALL(cudaStreamSetAttribute, s, cudaLaunchAttributePriority, &value);
		memset(&value, 0xee, sizeof(value));
		CALL(cudaStreamGetAttribute, s, cudaLaunchAttributePriority, &value);
		NUMBER("priority", value.priority);
		CALL(cudaStreamGetPriority, s, &priority);
		NUMBER("priority", priority);
		if (i == 1) {
			CALL(cudaStreamCopyAttributes, other, s);
			CALL(cudaStreamGetPriority, other, &priority);
			NUMBER("priority", priority);
		}
	}
}

CASE(domains)
{
	cudaStream_t s = new_stream();
	cudaLaunchAttributeValue value;
	memset(&value, 0, sizeof(value));
	value.memSyncDomain = cudaLaunchMemSyncDomainRemote;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeMemSyncDomain, &value);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeMemSyncDomain, &value);
	NUMBER("domain", value.memSyncDomain);
	memset(&value, 0, sizeof(value));
	value.memSyncDomainMap.default_ = 2;
	value.memSyncDomainMap.remote = 3;
	CALL(cudaStreamSetAttribute, s, cudaLaunchAttributeMemSyncDomainMap, &value);
	memset(&value, 0xee, sizeof(value));
	CALL(cudaStreamGetAttribute, s, cudaLaunchAttributeMemSyncDomainMap, &value);
	NUMBER("default", value.memSyncDomainMap.default_);
	NUMBER("remote", value.memSyncDomainMap.remote);
}
