/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events; compiled a second time with a default stream per thread. */
#include "check.h"

__global__ void accumulate(long long *sum, int rounds)
{
	for (int i = 0; i < rounds; i++)
		*sum = *sum * 3 + i;
}

static long long expected(long long sum, int rounds)
{
	for (int i = 0; i < rounds; i++)
		sum = (long long)((unsigned long long)sum * 3u + (unsigned)i);
	return sum;
}

static void add_five(void *data)
{
	*(int *)data += 5;
}

static void callback(cudaStream_t, cudaError_t status, void *data)
{
	if (status == cudaSuccess)
		*(int *)data += 100;
}

int main()
{
	cudaStream_t a, b, c;
	cudaEvent_t start, end, fast;
	long long *sum = NULL, host = -1;
	int least, greatest, priority = 99, device = -1, called = 0;
	unsigned flags = 99;
	unsigned long long id_a = 0, id_b = 0;
	float milliseconds = -1;
	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	OK(cudaStreamCreate(&a));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithPriority(&c, cudaStreamNonBlocking, greatest));
	RESULT(cudaStreamCreateWithFlags(&c, 0x100), cudaErrorInvalidValue);
	OK(cudaStreamGetFlags(b, &flags));
	CHECK(flags == cudaStreamNonBlocking);
	OK(cudaStreamGetPriority(c, &priority));
	CHECK(priority == greatest);
	OK(cudaStreamGetId(a, &id_a));
	OK(cudaStreamGetId(b, &id_b));
	CHECK(id_a != id_b);
	OK(cudaStreamGetDevice(a, &device));
	CHECK(device == 0);
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	OK(cudaEventCreateWithFlags(&fast, cudaEventDisableTiming));
	OK(cudaMalloc(&sum, sizeof *sum));
	OK(cudaMemsetAsync(sum, 0, sizeof *sum, a));
	OK(cudaEventRecord(start, a));
	accumulate<<<1, 1, 0, a>>>(sum, 200);
	OK(cudaEventRecord(end, a));
	OK(cudaStreamWaitEvent(b, end, 0));
	accumulate<<<1, 1, 0, b>>>(sum, 100);
	OK(cudaEventRecord(fast, b));
	OK(cudaStreamWaitEvent(c, fast, 0));
	OK(cudaMemcpyAsync(&host, sum, sizeof host, cudaMemcpyDeviceToHost, c));
	OK(cudaStreamSynchronize(c));
	CHECK(host == expected(expected(0, 200), 100));
	OK(cudaEventSynchronize(end));
	OK(cudaEventQuery(end));
	OK(cudaStreamQuery(a));
	OK(cudaEventElapsedTime(&milliseconds, start, end));
	CHECK(milliseconds >= 0 && milliseconds < 60000);
	RESULT(cudaEventElapsedTime(&milliseconds, start, fast), cudaErrorInvalidResourceHandle);
	/* The default stream, whichever it is, waits for its own work. */
	accumulate<<<1, 1>>>(sum, 50);
	OK(cudaMemcpy(&host, sum, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host == expected(expected(expected(0, 200), 100), 50));
	cudaError_t hosted = cudaLaunchHostFunc(a, add_five, &called);
	if (hosted != cudaErrorNotSupported) {
		OK(hosted);
		OK(cudaStreamAddCallback(a, callback, &called, 0));
		OK(cudaStreamSynchronize(a));
		CHECK(called == 105);
	}
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(end));
	OK(cudaEventDestroy(fast));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
	OK(cudaStreamDestroy(c));
	RESULT(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
	OK(cudaFree(sum));
	return failed;
}
