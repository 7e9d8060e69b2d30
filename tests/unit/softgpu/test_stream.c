/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/stream/stream.c: streams, events, the default stream's rules, faults. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "soft_test.h"

struct gate {
	atomic_int open, entered;
};

static void CUDA_CB wait_at_gate(void *data)
{
	struct gate *gate = data;
	atomic_fetch_add(&gate->entered, 1);
	while (!atomic_load(&gate->open))
		usleep(100);
}

static void CUDA_CB append(void *data)
{
	/* data: an int list, its length first. */
	int *list = data;
	list[0]++;
	list[list[0]] = list[0];
}

static void test_order(void)
{
	test_context();
	CUstream stream;
	CUdeviceptr p;
	int list[64] = {0}, *pinned;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&p, 1 << 20));
	OK(cuMemHostAlloc((void **)&pinned, 1 << 20, 0));
	struct gate gate = {0};
	OK(cuLaunchHostFunc(stream, wait_at_gate, &gate));
	/* A real queue: nothing behind the gate has happened, and no call waits. */
	OK(cuMemsetD32Async(p, 1, 1 << 18, stream));
	OK(cuMemcpyDtoHAsync(pinned, p, 1 << 20, stream));
	for (int i = 0; i < 10; i++)
		OK(cuLaunchHostFunc(stream, append, list));
	CHECK_RESULT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	CU_ASSERT_EQUAL(list[0], 0);
	CU_ASSERT_EQUAL(pinned[7], 0);
	atomic_store(&gate.open, 1);
	OK(cuStreamSynchronize(stream));
	OK(cuStreamQuery(stream));
	CU_ASSERT_EQUAL(list[0], 10);
	CU_ASSERT_EQUAL(pinned[(1 << 18) - 1], 1);
	OK(cuStreamDestroy(stream));
	CHECK_RESULT(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(p));
}

/* A kernel that spins for what another stream does ends only if they run at the same time. */
static void test_concurrency(void)
{
	test_context();
	CUfunction wait_for = test_function("wait_for");
	CUstream first, second;
	CUdeviceptr flag, out;
	int value = 0;
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemAlloc(&out, 4));
	void *params[] = {&flag, &out};
	OK(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, first, params, NULL));
	usleep(5000);
	CHECK_RESULT(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
	OK(cuMemsetD32Async(flag, 77, 1, second));
	OK(cuStreamSynchronize(first));
	OK(cuMemcpyDtoH(&value, out, 4));
	CU_ASSERT_EQUAL(value, 77);
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
}

static void test_default_stream(void)
{
	test_context();
	CUstream blocking, non_blocking;
	int order[8] = {0};
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&non_blocking, CU_STREAM_NON_BLOCKING));
	/* The default stream waits for a blocking stream ... */
	struct gate gate = {0};
	OK(cuLaunchHostFunc(blocking, wait_at_gate, &gate));
	OK(cuLaunchHostFunc(NULL, append, order));
	OK(cuLaunchHostFunc(blocking, append, order));
	OK(cuLaunchHostFunc(non_blocking, append, order + 4));
	OK(cuStreamSynchronize(non_blocking));
	CU_ASSERT_EQUAL(order[4], 1);
	CHECK_RESULT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	usleep(5000);
	CU_ASSERT_EQUAL(order[0], 0);
	atomic_store(&gate.open, 1);
	/* ... and the blocking stream's next work for the default stream. */
	OK(cuStreamSynchronize(blocking));
	CU_ASSERT_EQUAL(order[0], 2);
	OK(cuStreamSynchronize(CU_STREAM_LEGACY));
	/* A wait for the default stream is one for the blocking streams. */
	struct gate second = {0};
	OK(cuLaunchHostFunc(blocking, wait_at_gate, &second));
	CHECK_RESULT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(non_blocking));
	atomic_store(&second.open, 1);
	OK(cuStreamSynchronize(NULL));
	CU_ASSERT_EQUAL(atomic_load(&second.entered), 1);
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(non_blocking));
}

struct thread_stream {
	CUcontext context;
	unsigned long long id;
};

static void *id_in_thread(void *data)
{
	struct thread_stream *t = data;
	cuCtxSetCurrent(t->context);
	cuStreamGetId(CU_STREAM_PER_THREAD, &t->id);
	return NULL;
}

static void test_per_thread(void)
{
	struct thread_stream other = {.context = test_context()};
	unsigned long long mine = 0, again = 0, legacy = 0;
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &again));
	OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
	pthread_t thread;
	pthread_create(&thread, NULL, id_in_thread, &other);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(mine, again);
	CU_ASSERT_NOT_EQUAL(mine, legacy);
	CU_ASSERT_NOT_EQUAL(mine, other.id);
	CU_ASSERT_NOT_EQUAL(other.id, 0);
}

static void test_events(void)
{
	test_context();
	CUevent start, end, untimed, never;
	CUstream first, second;
	float ms = -1;
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&never, 0));
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuEventQuery(never));
	OK(cuEventSynchronize(never));
	CHECK_RESULT(cuEventElapsedTime(&ms, never, never), CUDA_ERROR_INVALID_HANDLE);
	struct gate gate = {0};
	int list[4] = {0};
	OK(cuEventRecord(start, first));
	OK(cuLaunchHostFunc(first, wait_at_gate, &gate));
	OK(cuEventRecord(end, first));
	CHECK_RESULT(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	OK(cuEventSynchronize(start));
	CHECK_RESULT(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	/* The second stream waits for the first one's event. */
	OK(cuStreamWaitEvent(second, end, 0));
	OK(cuLaunchHostFunc(second, append, list));
	usleep(20000);
	CU_ASSERT_EQUAL(list[0], 0);
	atomic_store(&gate.open, 1);
	OK(cuEventSynchronize(end));
	OK(cuStreamSynchronize(second));
	CU_ASSERT_EQUAL(list[0], 1);
	OK(cuEventElapsedTime(&ms, start, end));
	/* The gate stood closed for the whole pause above, after the first event. */
	CU_ASSERT(ms >= 20);
	OK(cuEventRecord(untimed, first));
	OK(cuEventSynchronize(untimed));
	CHECK_RESULT(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	/* Destroyed while recorded work is under way: harmless. */
	struct gate again = {0};
	OK(cuLaunchHostFunc(first, wait_at_gate, &again));
	OK(cuEventRecord(never, first));
	OK(cuStreamWaitEvent(second, never, 0));
	OK(cuEventDestroy(never));
	OK(cuStreamDestroy(first));
	CHECK_RESULT(cuEventQuery(never), CUDA_ERROR_INVALID_HANDLE);
	atomic_store(&again.open, 1);
	OK(cuCtxSynchronize());
	OK(cuEventDestroy(start));
	OK(cuEventDestroy(end));
	OK(cuEventDestroy(untimed));
	CHECK_RESULT(cuEventCreate(&start, 0x100), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(second));
}

static void CUDA_CB note_status(CUstream stream, CUresult status, void *data)
{
	(void)stream;
	*(CUresult *)data = status;
}

static void test_fault(void)
{
	test_context();
	CUfunction touch = test_function("touch");
	CUdeviceptr nowhere = 0x5000, p, kept = 0;
	CUstream stream;
	CUevent event;
	OK(cuMemAlloc(&kept, 4));
	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&event, 0));
	void *params[] = {&nowhere};
	OK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	CHECK_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Sticky: every later call of the context says so, also when nothing is wrong with it. */
	CHECK_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuMemsetD32(kept, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuEventRecord(event, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_RESULT(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL),
		CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Another context is not touched, and a reset heals. */
	CUcontext other;
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuMemAlloc(&p, 4));
	OK(cuCtxDestroy(other));
	test_context();
	OK(cuMemAlloc(&p, 4));
	CHECK_RESULT(cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	touch = test_function("trap_now");
	CUresult seen = CUDA_SUCCESS;
	int list[4] = {0};
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	struct gate gate = {0};
	OK(cuLaunchHostFunc(stream, wait_at_gate, &gate));
	OK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	/* After a fault host functions are left out; a callback is called and told. */
	OK(cuLaunchHostFunc(stream, append, list));
	OK(cuStreamAddCallback(stream, note_status, &seen, 0));
	atomic_store(&gate.open, 1);
	CHECK_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
	CU_ASSERT_EQUAL(seen, CUDA_ERROR_LAUNCH_FAILED);
	CU_ASSERT_EQUAL(list[0], 0);
	test_context();
}

/* Two threads at once on shared streams. */
static void *hammer(void *data)
{
	CUstream *streams = data;
	CUcontext context;
	CUdeviceptr p;
	CUevent event;
	long wrong = 0;
	wrong += cuDevicePrimaryCtxRetain(&context, 0) != 0;
	wrong += cuCtxSetCurrent(context) != 0;
	wrong += cuEventCreate(&event, 0) != 0;
	for (int i = 0; i < 200; i++) {
		int value = 0;
		wrong += cuMemAlloc(&p, 5000) != 0;
		wrong += cuMemsetD32Async(p, (unsigned)i, 1250, streams[i % 3]) != 0;
		wrong += cuEventRecord(event, streams[i % 3]) != 0;
		wrong += cuStreamWaitEvent(streams[(i + 1) % 3], event, 0) != 0;
		wrong += cuMemcpyDtoHAsync(&value, p + 4996, 4, streams[(i + 1) % 3]) != 0;
		wrong += value != i;
		wrong += cuMemFree(p) != 0;
	}
	wrong += cuEventDestroy(event) != 0;
	cuDevicePrimaryCtxRelease(0);
	return (void *)wrong;
}

static void test_threads(void)
{
	test_context();
	CUstream streams[3] = {NULL};
	OK(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&streams[2], 0));
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, hammer, streams);
	for (int i = 0; i < 3; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		CU_ASSERT_EQUAL((long)wrong, 0);
	}
	OK(cuStreamDestroy(streams[1]));
	OK(cuStreamDestroy(streams[2]));
}

int main(void)
{
	static const struct soft_test tests[] = {
		{"order", test_order},
		{"concurrency", test_concurrency},
		{"default stream", test_default_stream},
		{"per thread", test_per_thread},
		{"events", test_events},
		{"fault", test_fault},
		{"threads", test_threads},
	};
	return RUN_TESTS("soft stream", tests);
}
