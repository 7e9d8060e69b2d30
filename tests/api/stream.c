/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: making, asking, waiting, timing. */
#include "driver.h"

CASE(create)
{
	CUstream stream = NULL, other = NULL;
	unsigned flags = 77;
	int priority = -77;
	unsigned long long id = 0, second = 0;
	CUcontext context = start(), got = NULL;
	CUdevice device = -7;
	CALL(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	YES("some", stream != NULL);
	CALL(cuStreamGetFlags, stream, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetPriority, stream, &priority);
	NUMBER("priority", priority);
	CALL(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	YES("another", stream != other);
	CALL(cuStreamGetFlags, other, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetId, stream, &id);
	CALL(cuStreamGetId, other, &second);
	YES("another", id != second);
	CALL(cuStreamGetCtx, stream, &got);
	YES("the current one", got == context);
	CALL(cuStreamGetDevice, stream, &device);
	NUMBER("device", device);
	CALL(cuStreamQuery, stream);
	CALL(cuStreamSynchronize, stream);
	CALL(cuStreamDestroy_v2, stream);
	CALL(cuStreamDestroy, other);
}

CASE(priorities)
{
	CUstream stream = NULL;
	int least = -77, greatest = -77, priority = -77;
	unsigned flags = 77;
	start();
	QUIET(cuCtxGetStreamPriorityRange, &least, &greatest);
	CALL(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, greatest);
	CALL(cuStreamGetPriority, stream, &priority);
	YES("as asked", priority == greatest);
	CALL(cuStreamGetFlags, stream, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamDestroy_v2, stream);
	CALL(cuStreamCreateWithPriority, &stream, CU_STREAM_DEFAULT, greatest - 10);
	CALL(cuStreamGetPriority, stream, &priority);
	YES("the greatest", priority == greatest);
	CALL(cuStreamCreateWithPriority, &stream, CU_STREAM_DEFAULT, least + 10);
	CALL(cuStreamGetPriority, stream, &priority);
	YES("the least", priority == least);
	CALL(cuStreamCreateWithPriority, &stream, 0x80, 0);
	CALL(cuStreamCreateWithPriority, NULL, 0, 0);
}

CASE(defaults)
{
	unsigned flags = 77;
	int priority = -77;
	unsigned long long id = 0, legacy = 0, own = 0;
	CUcontext context = start(), got = NULL;
	CUdevice device = -7;
	CALL(cuStreamGetFlags, NULL, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetFlags, CU_STREAM_LEGACY, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetFlags, CU_STREAM_PER_THREAD, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetPriority, NULL, &priority);
	NUMBER("priority", priority);
	CALL(cuStreamGetId, NULL, &id);
	CALL(cuStreamGetId, CU_STREAM_LEGACY, &legacy);
	YES("the same", id == legacy);
	CALL(cuStreamGetId, CU_STREAM_PER_THREAD, &own);
	YES("another", own != id);
	CALL(cuStreamGetCtx, NULL, &got);
	YES("the current one", got == context);
	CALL(cuStreamGetDevice, NULL, &device);
	NUMBER("device", device);
	CALL(cuStreamQuery, NULL);
	CALL(cuStreamSynchronize, NULL);
	CALL(cuStreamQuery, CU_STREAM_PER_THREAD);
	CALL(cuStreamSynchronize, CU_STREAM_LEGACY);
	CALL(cuStreamDestroy_v2, NULL);
}

CASE(per_thread)
{
	unsigned flags = 77;
	int priority = -77;
	unsigned long long id = 0, own = 0;
	CUcontext context = start(), got = NULL;
	CUdevice device = -7;
	CUevent event;
	QUIET(cuEventCreate, &event, 0);
	CALL(cuStreamGetFlags_ptsz, NULL, &flags);
	NUMBER("flags", flags);
	CALL(cuStreamGetPriority_ptsz, NULL, &priority);
	NUMBER("priority", priority);
	CALL(cuStreamGetId_ptsz, NULL, &id);
	CALL(cuStreamGetId, CU_STREAM_PER_THREAD, &own);
	YES("the same", own == id);
	CALL(cuStreamGetCtx_ptsz, NULL, &got);
	YES("the current one", got == context);
	CALL(cuStreamGetDevice_ptsz, NULL, &device);
	NUMBER("device", device);
	CALL(cuEventRecord_ptsz, event, NULL);
	CALL(cuEventRecordWithFlags_ptsz, event, NULL, 0);
	CALL(cuStreamWaitEvent_ptsz, NULL, event, 0);
	CALL(cuStreamSynchronize_ptsz, NULL);
	CALL(cuStreamQuery_ptsz, NULL);
	CALL(cuEventQuery, event);
}

CASE(contexts)
{
	CUcontext context = start(), got = NULL;
	CUgreenCtx green = (CUgreenCtx)8;
	CUstream stream;
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuStreamGetCtx_v2, stream, &got, &green);
	YES("the current one", got == context);
	YES("no green one", green == NULL);
	CALL(cuStreamGetCtx_v2_ptsz, NULL, &got, &green);
	YES("the current one", got == context);
	CALL(cuStreamGetGreenCtx, stream, &green);
	YES("no green one", green == NULL);
	CALL(cuStreamGetGreenCtx, stream, NULL);
}

CASE(wrong)
{
	CUstream stream = NULL;
	unsigned flags = 77;
	CUevent event;
	start();
	QUIET(cuEventCreate, &event, 0);
	CALL(cuStreamCreate, NULL, 0);
	CALL(cuStreamCreate, &stream, 0x80);
	QUIET(cuStreamCreate, &stream, 0);
	CALL(cuStreamGetFlags, stream, NULL);
	CALL(cuStreamGetPriority, stream, NULL);
	CALL(cuStreamGetId, stream, NULL);
	CALL(cuStreamGetCtx, stream, NULL);
	CALL(cuStreamWaitEvent, stream, NULL, 0);
	CALL(cuStreamWaitEvent, stream, event, 0x80);
	CALL(cuStreamWaitEvent, stream, event, 0);
	CALL(cuStreamGetFlags, stream, &flags);
}

CASE(waiting)
{
	CUstream first, second;
	CUevent event, timed;
	CUdeviceptr p;
	start();
	p = memory(64);
	QUIET(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	CALL(cuEventCreate, &timed, CU_EVENT_BLOCKING_SYNC);
	CALL(cuMemsetD8Async, p, 1, 64, first);
	CALL(cuEventRecord, event, first);
	CALL(cuStreamWaitEvent, second, event, 0);
	CALL(cuMemsetD8Async, p, 2, 8, second);
	CALL(cuStreamSynchronize, second);
	CONTENT("bytes", p, 12);
	CALL(cuEventQuery, event);
	CALL(cuEventSynchronize, event);
	CALL(cuStreamQuery, first);
	CALL(cuEventRecordWithFlags, timed, first, 0);
	CALL(cuEventSynchronize, timed);
	CALL(cuEventRecordWithFlags, timed, first, 0x80);
	CALL(cuEventDestroy_v2, event);
	CALL(cuEventDestroy, timed);
}

CASE(timing)
{
	CUevent start_event, end, untimed, fresh;
	float ms = -7;
	start();
	QUIET(cuEventCreate, &start_event, 0);
	QUIET(cuEventCreate, &end, 0);
	QUIET(cuEventCreate, &untimed, CU_EVENT_DISABLE_TIMING);
	QUIET(cuEventCreate, &fresh, 0);
	CALL(cuEventElapsedTime, &ms, start_event, end);
	CALL(cuEventElapsedTime_v2, &ms, start_event, end);
	CALL(cuEventRecord, start_event, NULL);
	CALL(cuEventRecord, end, NULL);
	CALL(cuEventRecord, untimed, NULL);
	QUIET(cuCtxSynchronize);
	CALL(cuEventElapsedTime, &ms, start_event, end);
	YES("not negative", ms >= 0);
	ms = -7;
	CALL(cuEventElapsedTime_v2, &ms, start_event, end);
	YES("not negative", ms >= 0);
	CALL(cuEventElapsedTime, &ms, start_event, untimed);
	CALL(cuEventElapsedTime, &ms, start_event, fresh);
	CALL(cuEventElapsedTime, NULL, start_event, end);
	CALL(cuEventElapsedTime_v2, NULL, start_event, end);
	CALL(cuEventElapsedTime, &ms, NULL, end);
}

CASE(events_wrong)
{
	CUevent event = NULL;
	start();
	CALL(cuEventCreate, NULL, 0);
	CALL(cuEventCreate, &event, 0x80);
	CALL(cuEventCreate, &event, CU_EVENT_INTERPROCESS);
	CALL(cuEventQuery, NULL);
	CALL(cuEventSynchronize, NULL);
	CALL(cuEventRecord, NULL, NULL);
	CALL(cuEventDestroy_v2, NULL);
	QUIET(cuEventCreate, &event, 0);
	CALL(cuEventQuery, event);
	CALL(cuEventSynchronize, event);
}

CASE(of_a_context)
{
	CUcontext context = start(), other = NULL;
	CUevent event;
	QUIET(cuEventCreate, &event, 0);
	CALL(cuCtxRecordEvent, context, event);
	CALL(cuEventSynchronize, event);
	CALL(cuCtxWaitEvent, context, event);
	CALL(cuCtxSynchronize);
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	CALL(cuCtxRecordEvent, other, event);
	CALL(cuCtxWaitEvent, other, event);
	CALL(cuCtxRecordEvent, context, NULL);
}

static int called;
static void CUDA_CB count_call(void *data)
{
	called += *(int *)data;
}
static void CUDA_CB count_callback(CUstream stream, CUresult status, void *data)
{
	(void)stream;
	called += status ? 1000 : *(int *)data;
}

CASE(host_functions)
{
	CUstream stream;
	int one = 1, ten = 10, hundred = 100;
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuLaunchHostFunc, stream, count_call, &one);
	CALL(cuStreamAddCallback, stream, count_callback, &ten, 0);
	CALL(cuStreamSynchronize, stream);
	NUMBER("called", called);
	CALL(cuLaunchHostFunc_ptsz, NULL, count_call, &hundred);
	CALL(cuStreamAddCallback_ptsz, NULL, count_callback, &hundred, 0);
	CALL(cuStreamSynchronize_ptsz, NULL);
	NUMBER("called", called);
	CALL(cuLaunchHostFunc, stream, NULL, NULL);
	CALL(cuStreamAddCallback, stream, NULL, NULL, 0);
	CALL(cuStreamAddCallback, stream, count_callback, &ten, 1);
}

CASE(attributes)
{
	CUstream stream, other;
	CUstreamAttrValue value;
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	CALL(cuStreamCopyAttributes, other, stream);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute_ptsz, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	CALL(cuStreamSetAttribute_ptsz, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	CALL(cuStreamCopyAttributes_ptsz, other, stream);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
	NUMBER("priority", value.priority);
	memset(&value, 0xee, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
	NUMBER("bytes", (long long)value.accessPolicyWindow.num_bytes);
	CALL(cuStreamGetAttribute, stream, (CUstreamAttrID)99, &value);
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, NULL);
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, NULL);
}

static volatile int gate_open;
static void CUDA_CB at_the_gate(void *data)
{
	(void)data;
	while (!gate_open)
		usleep(1000);
}

CASE(all_of_a_context)
{
	CUstream busy, other;
	CUevent event;
	CUdeviceptr p;
	CUcontext context = start();
	p = memory(64);
	QUIET(cuStreamCreate, &busy, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	QUIET(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	QUIET(cuLaunchHostFunc, busy, at_the_gate, NULL);
	CALL(cuCtxRecordEvent, context, event);
	CALL(cuEventQuery, event);
	gate_open = 1;
	CALL(cuEventSynchronize, event);
	CALL(cuStreamQuery, busy);
	gate_open = 0;
	QUIET(cuLaunchHostFunc, busy, at_the_gate, NULL);
	QUIET(cuEventRecord, event, busy);
	CALL(cuCtxWaitEvent, context, event);
	QUIET(cuMemsetD8Async, p, 5, 16, other);
	CALL(cuStreamQuery, other);
	gate_open = 1;
	CALL(cuStreamSynchronize, other);
	CALL(cuEventQuery, event);
	CONTENT("bytes", p, 20);
}

CASE(attribute)
{
	CUstream stream, other;
	CUstreamAttrValue value;
	start();
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	memset(&value, 0, sizeof(value));
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	value.syncPolicy = CU_SYNC_POLICY_SPIN;
	CALL(cuStreamSetAttribute_ptsz, other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute_ptsz, other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	CALL(cuStreamSetAttribute_ptsz, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	memset(&value, 0, sizeof(value));
	CALL(cuStreamGetAttribute_ptsz, NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
	NUMBER("policy", value.syncPolicy);
	CALL(cuStreamGetAttribute, stream, (CUstreamAttrID)99, &value);
	CALL(cuStreamSetAttribute, stream, (CUstreamAttrID)99, &value);
	value.syncPolicy = (CUsynchronizationPolicy)99;
	CALL(cuStreamSetAttribute, stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

CASE(operations_of_a_stream)
{
	CUdeviceptr p;
	CUstream stream = NULL;
	CUstreamBatchMemOpParams ops[3];
	start();
	p = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	memset(ops, 0, sizeof(ops));
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = p;
	ops[0].writeValue.value = 7;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = p;
	ops[1].waitValue.value = 7;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ops[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[2].writeValue.address = p + 8;
	ops[2].writeValue.value64 = 0x0102030405060708;
	CALL(cuStreamBatchMemOp_v2, stream, 3, ops, 0);
	CALL(cuStreamSynchronize, stream);
	CONTENT("p", p, 24);
	ops[0].writeValue.address = p + 16;
	CALL(cuStreamBatchMemOp_v2_ptsz, NULL, 1, ops, 0);
	CONTENT("p", p, 24);
	CALL(cuStreamBatchMemOp_v2, stream, 257, ops, 0);
	ops[0].writeValue.address = p + 1;
	CALL(cuStreamBatchMemOp_v2, stream, 1, ops, 0);
	ops[0].operation = (CUstreamBatchMemOpType)99;
	CALL(cuStreamBatchMemOp_v2, stream, 1, ops, 0);
}
