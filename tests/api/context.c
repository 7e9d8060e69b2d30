/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the primary one, others, the stack of a thread, limits and settings. */
#include <pthread.h>

#include "driver.h"

CASE(without)
{
	CUcontext context = (CUcontext)8;
	CUdevice device = -7;
	unsigned flags = 77, version = 77;
	unsigned long long id = 77;
	int a = -7, b = -7;
	size_t limit = 77;
	CUfunc_cache cache;
	CUsharedconfig shared;
	CALL(cuCtxGetCurrent, &context);
	YES("null", context == NULL);
	CALL(cuCtxSetCurrent, NULL);
	CALL(cuCtxPopCurrent_v2, &context);
	CALL(cuDevicePrimaryCtxRetain, &context, 0);
	QUIET(cuInit, 0);
	CALL(cuCtxGetCurrent, &context);
	YES("null", context == NULL);
	CALL(cuCtxGetCurrent, NULL);
	CALL(cuCtxGetDevice, &device);
	NUMBER("device", device);
	CALL(cuCtxGetFlags, &flags);
	CALL(cuCtxSetFlags, 0);
	CALL(cuCtxGetApiVersion, NULL, &version);
	CALL(cuCtxGetId, NULL, &id);
	CALL(cuCtxGetStreamPriorityRange, &a, &b);
	CALL(cuCtxGetLimit, &limit, CU_LIMIT_STACK_SIZE);
	CALL(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 2048);
	CALL(cuCtxGetCacheConfig, &cache);
	CALL(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_L1);
	CALL(cuCtxGetSharedMemConfig, &shared);
	CALL(cuCtxSetSharedMemConfig, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
	CALL(cuCtxResetPersistingL2Cache);
	CALL(cuCtxSynchronize);
	CALL(cuCtxPopCurrent_v2, &context);
	CALL(cuCtxPopCurrent, &context);
	CALL(cuCtxSetCurrent, NULL);
}

CASE(primary)
{
	CUcontext first = NULL, second = NULL;
	unsigned flags = 77;
	int active = -7;
	QUIET(cuInit, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("flags", flags);
	NUMBER("active", active);
	CALL(cuDevicePrimaryCtxSetFlags_v2, 0, CU_CTX_SCHED_YIELD);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("flags", flags);
	CALL(cuDevicePrimaryCtxSetFlags, 0, CU_CTX_SCHED_BLOCKING_SYNC);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("flags", flags);
	CALL(cuDevicePrimaryCtxRetain, &first, 0);
	YES("one", first != NULL);
	CALL(cuDevicePrimaryCtxRetain, &second, 0);
	YES("the same", first == second);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("flags", flags);
	NUMBER("active", active);
	CALL(cuCtxGetCurrent, &second);
	YES("null", second == NULL);
	CALL(cuDevicePrimaryCtxRelease_v2, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("active", active);
	CALL(cuDevicePrimaryCtxRelease, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("active", active);
	CALL(cuDevicePrimaryCtxRelease_v2, 0);
	CALL(cuDevicePrimaryCtxRelease, 0);
}

CASE(primary_wrong)
{
	CUcontext context = NULL;
	unsigned flags = 77;
	int active = -7;
	QUIET(cuInit, 0);
	CALL(cuDevicePrimaryCtxRetain, NULL, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, 999);
	CALL(cuDevicePrimaryCtxRetain, &context, -1);
	CALL(cuDevicePrimaryCtxRelease, 999);
	CALL(cuDevicePrimaryCtxRelease_v2, -1);
	CALL(cuDevicePrimaryCtxSetFlags, 0, 0x8000);
	CALL(cuDevicePrimaryCtxSetFlags_v2, 0, 3);
	CALL(cuDevicePrimaryCtxSetFlags_v2, 999, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, NULL, &active);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, NULL);
	CALL(cuDevicePrimaryCtxGetState, 999, &flags, &active);
	CALL(cuDevicePrimaryCtxReset, 999);
	CALL(cuDevicePrimaryCtxReset_v2, -1);
}

CASE(primary_reset)
{
	CUdeviceptr p = 0;
	CUcontext context = start(), now = NULL;
	int active = -7;
	unsigned flags = 77;
	QUIET(cuMemAlloc_v2, &p, 4096);
	CALL(cuDevicePrimaryCtxReset_v2, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("active", active);
	CALL(cuCtxGetCurrent, &now);
	YES("the same", now == context);
	CALL(cuMemAlloc_v2, &p, 4096);
	CALL(cuDevicePrimaryCtxRetain, &now, 0);
	YES("the same", now == context);
	CALL(cuCtxSetCurrent, now);
	CALL(cuMemAlloc_v2, &p, 4096);
	CALL(cuMemFree_v2, p);
	CALL(cuDevicePrimaryCtxReset, 0);
	CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	NUMBER("active", active);
}

CASE(stack)
{
	CUcontext primary = NULL, other = NULL, third = NULL, got = NULL;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &primary, 0);
	CALL(cuCtxPushCurrent_v2, primary);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxCreate_v2, &other, 0, 0);
	YES("another", other && other != primary);
	CALL(cuCtxGetCurrent, &got);
	YES("the new one", got == other);
	CALL(cuCtxCreate, &third, CU_CTX_SCHED_SPIN, 0);
	CALL(cuCtxGetCurrent, &got);
	YES("the new one", got == third);
	CALL(cuCtxPopCurrent_v2, &got);
	YES("the new one", got == third);
	CALL(cuCtxGetCurrent, &got);
	YES("the one before", got == other);
	CALL(cuCtxPushCurrent, third);
	CALL(cuCtxPushCurrent, primary);
	CALL(cuCtxPopCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxSetCurrent, NULL);
	CALL(cuCtxGetCurrent, &got);
	YES("the one before", got == other);
	CALL(cuCtxSetCurrent, primary);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxPopCurrent_v2, NULL);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxDestroy_v2, third);
	CALL(cuCtxDestroy, other);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxPopCurrent_v2, &got);
	CALL(cuCtxPopCurrent_v2, &got);
	CALL(cuCtxPushCurrent_v2, NULL);
	CALL(cuCtxPushCurrent_v2, other);
	CALL(cuCtxSetCurrent, third);
}

CASE(created)
{
	CUcontext first = NULL, second = NULL, got = NULL;
	CUdevice device = -7;
	CUdeviceptr p = 0, q = 0;
	CUstream stream = NULL;
	CUevent event = NULL;
	unsigned flags = 77, version = 77;
	unsigned long long id = 0, other = 0;
	QUIET(cuInit, 0);
	CALL(cuCtxCreate_v3, &first, NULL, 0, CU_CTX_SCHED_BLOCKING_SYNC, 0);
	CALL(cuCtxGetFlags, &flags);
	HEX("flags", flags);
	CALL(cuCtxGetDevice, &device);
	NUMBER("device", device);
	CALL(cuCtxGetApiVersion, first, &version);
	NUMBER("version", version);
	CALL(cuCtxGetId, first, &id);
	CALL(cuMemAlloc_v2, &p, 256);
	CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuEventCreate, &event, 0);
	CALL(cuCtxCreate_v4, &second, NULL, 0, 0);
	CALL(cuCtxGetId, NULL, &other);
	YES("another", id != other);
	CALL(cuCtxGetFlags, &flags);
	HEX("flags", flags);
	CALL(cuCtxGetDevice_v2, &device, first);
	NUMBER("device", device);
	CALL(cuCtxGetApiVersion, NULL, &version);
	NUMBER("version", version);
	CALL(cuMemAlloc_v2, &q, 256);
	YES("apart", p != q);
	CALL(cuStreamGetCtx, stream, &got);
	YES("the first", got == first);
	CALL(cuMemsetD8_v2, p, 1, 256);
	CALL(cuMemcpyDtoD_v2, q, p, 256);
	CONTENT("bytes", q, 8);
	CALL(cuStreamSynchronize, stream);
	CALL(cuEventRecord, event, NULL);
	CALL(cuCtxSynchronize_v2, first);
	CALL(cuCtxDestroy_v2, first);
	CALL(cuCtxSetCurrent, first);
	CALL(cuCtxGetApiVersion, first, &version);
	CALL(cuStreamQuery, NULL);
	CALL(cuMemFree_v2, q);
	CALL(cuCtxDestroy_v2, second);
	CALL(cuCtxGetCurrent, &got);
	YES("null", got == NULL);
}

CASE(created_wrong)
{
	CUcontext context = NULL;
	QUIET(cuInit, 0);
	CALL(cuCtxCreate_v2, NULL, 0, 0);
	CALL(cuCtxCreate_v2, &context, 0, 999);
	CALL(cuCtxCreate_v2, &context, 0x8000, 0);
	CALL(cuCtxCreate_v2, &context, 3, 0);
	CALL(cuCtxCreate_v3, NULL, NULL, 0, 0, 0);
	CALL(cuCtxCreate_v4, NULL, NULL, 0, 0);
	CALL(cuCtxCreate_v4, &context, NULL, 0, -1);
	CALL(cuCtxDestroy_v2, NULL);
	QUIET(cuDevicePrimaryCtxRetain, &context, 0);
	CALL(cuCtxDestroy_v2, context);
}

CASE(destroy_current)
{
	CUcontext context = NULL, primary = start(), got = NULL;
	CUdeviceptr p = 0;
	QUIET(cuCtxCreate_v2, &context, 0, 0);
	QUIET(cuMemAlloc_v2, &p, 4096);
	CALL(cuCtxDestroy_v2, context);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuMemFree_v2, p);
}

static CUcontext shared_context;
static CUcontext seen;
static void *other_thread(void *arg)
{
	(void)arg;
	FUNCTION(cuCtxGetCurrent)(&seen);
	FUNCTION(cuCtxSetCurrent)(shared_context);
	return NULL;
}

CASE(threads)
{
	pthread_t thread;
	CUcontext got = NULL;
	shared_context = start();
	seen = (CUcontext)8;
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	CALL(cuCtxGetCurrent, &got);
	YES("of the other thread null", seen == NULL);
	YES("ours the same", got == shared_context);
}

/* A context that goes while another thread has it on its stack. */
static int after_destroy[4];
static CUcontext after_current;
static pthread_barrier_t barrier;
static void *keeps_current(void *arg)
{
	CUdevice device;
	(void)arg;
	FUNCTION(cuCtxSetCurrent)(shared_context);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	after_destroy[0] = FUNCTION(cuCtxGetCurrent)(&after_current);
	after_destroy[1] = FUNCTION(cuCtxGetDevice)(&device);
	after_destroy[2] = FUNCTION(cuCtxSynchronize)();
	after_destroy[3] = FUNCTION(cuCtxPopCurrent_v2)(NULL);
	return NULL;
}

CASE(destroyed_elsewhere)
{
	pthread_t thread;
	QUIET(cuInit, 0);
	QUIET(cuCtxCreate_v2, &shared_context, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, keeps_current, NULL);
	pthread_barrier_wait(&barrier);
	CALL(cuCtxDestroy_v2, shared_context);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	REMARK("get current %d, the old one %d, get device %d, synchronize %d, pop %d",
		after_destroy[0], after_current == shared_context, after_destroy[1],
		after_destroy[2], after_destroy[3]);
}

CASE(limits)
{
	static const struct {
		CUlimit limit;
		const char *name;
		size_t value;
	} all[] = {
		{CU_LIMIT_STACK_SIZE, "stack", 4096},
		{CU_LIMIT_PRINTF_FIFO_SIZE, "printf", 2 << 20},
		{CU_LIMIT_MALLOC_HEAP_SIZE, "heap", 16 << 20},
		{CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, "pending launches", 4096},
		{CU_LIMIT_MAX_L2_FETCH_GRANULARITY, "fetch", 32},
		{CU_LIMIT_PERSISTING_L2_CACHE_SIZE, "persisting", 0},
	};
	size_t value;
	start();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		value = 77;
		CALL(cuCtxGetLimit, &value, all[i].limit);
		NUMBER(all[i].name, (long long)value);
		CALL(cuCtxSetLimit, all[i].limit, all[i].value);
		value = 77;
		CALL(cuCtxGetLimit, &value, all[i].limit);
		NUMBER(all[i].name, (long long)value);
	}
}

CASE(limits_wrong)
{
	size_t value = 77;
	start();
	CALL(cuCtxGetLimit, NULL, CU_LIMIT_STACK_SIZE);
	CALL(cuCtxGetLimit, &value, (CUlimit)99);
	NUMBER("value", (long long)value);
	CALL(cuCtxSetLimit, (CUlimit)99, 1);
	CALL(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, (size_t)1 << 40);
	CALL(cuCtxSetLimit, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 1000);
}

/* Each context has its own. */
CASE(limits_apart)
{
	CUcontext primary = start(), other = NULL;
	size_t value = 77;
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	CALL(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 8192);
	CALL(cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
	NUMBER("stack", (long long)value);
	QUIET(cuCtxSetCurrent, primary);
	CALL(cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
	NUMBER("stack", (long long)value);
}

CASE(settings)
{
	CUfunc_cache cache = (CUfunc_cache)77;
	CUsharedconfig shared = (CUsharedconfig)77;
	unsigned flags = 77;
	int least = -7, greatest = 7;
	start();
	CALL(cuCtxGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_SHARED);
	CALL(cuCtxGetCacheConfig, &cache);
	NUMBER("cache", cache);
	CALL(cuCtxSetCacheConfig, (CUfunc_cache)99);
	CALL(cuCtxGetCacheConfig, NULL);
	CALL(cuCtxGetSharedMemConfig, &shared);
	NUMBER("shared", shared);
	CALL(cuCtxSetSharedMemConfig, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
	CALL(cuCtxGetSharedMemConfig, &shared);
	NUMBER("shared", shared);
	CALL(cuCtxSetSharedMemConfig, (CUsharedconfig)99);
	CALL(cuCtxGetSharedMemConfig, NULL);
	CALL(cuCtxGetFlags, &flags);
	HEX("flags", flags);
	CALL(cuCtxSetFlags, CU_CTX_SCHED_BLOCKING_SYNC);
	CALL(cuCtxGetFlags, &flags);
	HEX("flags", flags);
	CALL(cuCtxSetFlags, 0x8000);
	CALL(cuCtxGetFlags, NULL);
	CALL(cuCtxGetStreamPriorityRange, &least, &greatest);
	NUMBER("least", least);
	YES("greatest below", greatest < least);
	CALL(cuCtxGetStreamPriorityRange, NULL, NULL);
	CALL(cuCtxResetPersistingL2Cache);
	CALL(cuCtxSynchronize);
}

CASE(ids)
{
	CUcontext primary = start(), other = NULL;
	unsigned long long a = 0, b = 0, c = 0;
	unsigned version = 77;
	CUdevice device = -7;
	CALL(cuCtxGetId, primary, &a);
	CALL(cuCtxGetId, NULL, &b);
	YES("the same", a == b);
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	CALL(cuCtxGetId, other, &c);
	YES("another", a != c);
	CALL(cuCtxGetId, NULL, NULL);
	CALL(cuCtxGetApiVersion, primary, &version);
	NUMBER("version", version);
	CALL(cuCtxGetApiVersion, primary, NULL);
	CALL(cuCtxGetDevice, NULL);
	CALL(cuCtxGetDevice_v2, &device, NULL);
	NUMBER("device", device);
	CALL(cuCtxGetDevice_v2, NULL, other);
}

CASE(attach)
{
	CUcontext context = NULL, got = NULL;
	QUIET(cuInit, 0);
	CALL(cuCtxAttach, &context, 0);
	QUIET(cuCtxCreate_v2, &context, 0, 0);
	CALL(cuCtxAttach, &got, 0);
	YES("the current one", got == context);
	CALL(cuCtxAttach, &got, 1);
	CALL(cuCtxAttach, NULL, 0);
	CALL(cuCtxDetach, context);
	CALL(cuCtxGetCurrent, &got);
	YES("the same", got == context);
	CALL(cuCtxDetach, context);
	CALL(cuCtxGetCurrent, &got);
	YES("null", got == NULL);
	CALL(cuCtxDetach, context);
	CALL(cuCtxDetach, NULL);
}

CASE(peers)
{
	CUcontext context = start(), other = NULL;
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	CALL(cuCtxEnablePeerAccess, context, 0);
	CALL(cuCtxEnablePeerAccess, other, 0);
	CALL(cuCtxEnablePeerAccess, context, 1);
	CALL(cuCtxEnablePeerAccess, NULL, 0);
	CALL(cuCtxDisablePeerAccess, context);
	CALL(cuCtxDisablePeerAccess, NULL);
}

CASE(affinity)
{
	CUexecAffinityParam param;
	int can = -7;
	start();
	memset(&param, 0xee, sizeof(param));
	CALL(cuDeviceGetExecAffinitySupport, &can, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0);
	NUMBER("can", can);
	CALL(cuDeviceGetExecAffinitySupport, &can, (CUexecAffinityType)99, 0);
	CALL(cuDeviceGetExecAffinitySupport, NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0);
	CALL(cuDeviceGetExecAffinitySupport, &can, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 999);
	CALL(cuCtxGetExecAffinity, &param, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
	CALL(cuCtxGetExecAffinity, NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
}

/* By the first versions of the functions, but for making one. */
CASE(stack_first)
{
	CUcontext primary = NULL, other = NULL, got = NULL;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &primary, 0);
	CALL(cuCtxPushCurrent_v2, primary);
	CALL(cuCtxCreate_v2, &other, CU_CTX_SCHED_YIELD, 0);
	YES("another", other && other != primary);
	CALL(cuCtxPopCurrent, &got);
	YES("the new one", got == other);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxPushCurrent, other);
	CALL(cuCtxPushCurrent_v2, other);
	CALL(cuCtxGetCurrent, &got);
	YES("the new one", got == other);
	CALL(cuCtxDestroy, other);
	CALL(cuCtxGetCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxPopCurrent, &got);
	YES("the primary one", got == primary);
	CALL(cuCtxPopCurrent, &got);
}

CASE(create_first)
{
	CUcontext context = NULL, got = (CUcontext)8;
	QUIET(cuInit, 0);
	CALL(cuCtxCreate, &context, 0, 0);
	CALL(cuCtxGetCurrent, &got);
	YES("null", got == NULL);
	CALL(cuCtxCreate, &context, 0, 999);
	CALL(cuCtxCreate, &context, 3, 0);
	CALL(cuCtxCreate, NULL, 0, 0);
}

/* A context that is destroyed can still be made current. */
CASE(destroyed)
{
	CUcontext primary = NULL, other = NULL, got = NULL;
	CUdeviceptr p = 0;
	CUdevice device = -7;
	CUstream stream = NULL;
	CUevent event = NULL;
	unsigned flags = 77;
	unsigned long long id = 77;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &primary, 0);
	QUIET(cuCtxPushCurrent_v2, primary);
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	CALL(cuCtxDestroy_v2, other);
	CALL(cuCtxPushCurrent_v2, other);
	CALL(cuCtxGetCurrent, &got);
	YES("it", got == other);
	CALL(cuCtxGetDevice, &device);
	CALL(cuCtxGetFlags, &flags);
	CALL(cuCtxGetId, NULL, &id);
	CALL(cuCtxSynchronize);
	CALL(cuMemAlloc_v2, &p, 64);
	CALL(cuMemFree_v2, 0);
	CALL(cuStreamCreate, &stream, 0);
	CALL(cuStreamQuery, NULL);
	CALL(cuStreamSynchronize, NULL);
	CALL(cuEventCreate, &event, 0);
	CALL(cuCtxSetCurrent, other);
	CALL(cuCtxPopCurrent_v2, &got);
	YES("it", got == other);
	CALL(cuCtxSynchronize);
	CALL(cuCtxGetId, other, &id);
	CALL(cuCtxDestroy_v2, other);
}

CASE(create_first_twice)
{
	CUcontext first = NULL, second = NULL, third = NULL;
	QUIET(cuInit, 0);
	CALL(cuCtxCreate, &first, CU_CTX_SCHED_SPIN, 0);
	CALL(cuCtxCreate, &second, 0, 0);
	CALL(cuCtxCreate_v2, &third, 0, 0);
	CALL(cuCtxPushCurrent, first);
	CALL(cuCtxSynchronize);
}

CASE(create_first_beside)
{
	CUcontext primary = NULL, first = NULL;
	QUIET(cuInit, 0);
	QUIET(cuDevicePrimaryCtxRetain, &primary, 0);
	CALL(cuCtxCreate, &first, 0, 0);
	CALL(cuCtxPushCurrent, primary);
	CALL(cuCtxPushCurrent, primary);
	CALL(cuCtxCreate, &first, 0, 0);
	CALL(cuCtxPushCurrent, NULL);
}
