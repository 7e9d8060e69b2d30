/* SPDX-License-Identifier: Apache-2.0 */
/* Events: order, queries, elapsed time that is plausible, reuse, and the errors of events without timing. */
#include "phase.h"

__global__ void spin(long long iterations, long long *out)
{
	long long v = 1;

	for (long long i = 0; i < iterations; i++)
		v = v * 3 + i;
	*out = v;
}

int main(void)
{
	cudaEvent_t start, middle, stop, untimed;
	float first, second, whole;
	long long *out;
	cudaStream_t stream;
	struct timespec t0, t1;
	double host_ms;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&out, sizeof(*out)));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreateWithFlags(&middle, cudaEventBlockingSync));
	CHECK(cudaEventCreate(&stop));
	CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	spin<<<1, 1, 0, stream>>>(10, out);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventQuery(start));	/* an event never recorded counts as done */
	EXPECT_ERROR(cudaEventElapsedTime(&whole, start, stop), cudaErrorInvalidResourceHandle);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	CHECK(cudaEventRecord(start, stream));
	spin<<<1, 1, 0, stream>>>(20000, out);
	CHECK(cudaEventRecord(middle, stream));
	spin<<<1, 1, 0, stream>>>(200000, out);
	CHECK(cudaEventRecord(stop, stream));
	CHECK(cudaEventRecord(untimed, stream));
	CHECK(cudaEventSynchronize(stop));
	clock_gettime(CLOCK_MONOTONIC, &t1);
	host_ms = (t1.tv_sec - t0.tv_sec) * 1e3 + (t1.tv_nsec - t0.tv_nsec) * 1e-6;
	CHECK(cudaEventElapsedTime(&first, start, middle));
	CHECK(cudaEventElapsedTime(&second, middle, stop));
	CHECK(cudaEventElapsedTime(&whole, start, stop));
	/* Ten times the work, but a busy machine may stop either for a while. */
	EXPECT(first > 0);
	EXPECT(second > 0);
	EXPECT(whole >= second && whole <= host_ms + 1);
	EXPECT(whole - first - second < 0.01f && first + second - whole < 0.01f);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaEventQuery(untimed));
	EXPECT_ERROR(cudaEventElapsedTime(&whole, untimed, stop), cudaErrorInvalidResourceHandle);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	phase();
	/* Recorded again, an event forgets its first time. */
	CHECK(cudaEventRecord(start, stream));
	CHECK(cudaEventRecord(stop, 0));
	CHECK(cudaEventSynchronize(stop));
	CHECK(cudaEventElapsedTime(&whole, start, stop));
	EXPECT(whole >= 0 && whole < 10000);
	CHECK(cudaEventDestroy(start));
	CHECK(cudaEventDestroy(middle));
	CHECK(cudaEventDestroy(stop));
	CHECK(cudaEventDestroy(untimed));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(out));
	return finish();
}
