/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's error semantics: which errors stay in cudaGetLastError, which do not, and that the next call works. */
#include "phase.h"

__global__ void nothing(void)
{
}

static void not_a_kernel(void)
{
}

int main(void)
{
	void *p = NULL;
	int count, device = -1, value;
	cudaEvent_t event;
	size_t free_bytes, total_bytes;

	EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
	EXPECT_ERROR(cudaPeekAtLastError(), cudaSuccess);
	CHECK(cudaGetDeviceCount(&count));
	EXPECT(count >= 1);
	EXPECT_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
	EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
	EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 0);

	nothing<<<0, 1>>>();
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	nothing<<<1, 1025>>>();
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	nothing<<<1, dim3(1, 1, 65)>>>();
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	nothing<<<dim3(1, 65536), 1>>>();
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	nothing<<<1, 1, 1 << 20>>>();
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaLaunchKernel((const void *)not_a_kernel, dim3(1), dim3(1), NULL, 0, 0), cudaErrorInvalidResourceHandle);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	nothing<<<1, 1>>>();
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	phase();

	EXPECT_ERROR(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
	CHECK(cudaMalloc(&p, 0));
	EXPECT(p == NULL);
	CHECK(cudaFree(NULL));
	CHECK(cudaFreeHost(NULL));
	EXPECT_ERROR(cudaFree((void *)0x1234), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK(cudaMalloc(&p, 256));
	CHECK(cudaFree(p));
	EXPECT_ERROR(cudaFree(p), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaMemset((void *)0x1234, 0, 4), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaMemcpy(&value, &device, sizeof(value), (cudaMemcpyKind)99), cudaErrorInvalidMemcpyDirection);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
	CHECK(cudaMemcpy(&value, &device, sizeof(value), cudaMemcpyHostToHost));
	EXPECT(value == device);
	EXPECT_ERROR(cudaEventQuery(NULL), cudaErrorInvalidResourceHandle);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventCreate(&event));
	/* Not ready is an answer, not an error that stays. */
	EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
	CHECK(cudaEventDestroy(event));
	EXPECT_ERROR(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)99999, 0), cudaErrorInvalidValue);
	cudaGetLastError();
	EXPECT_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 77), cudaErrorInvalidDevice);
	cudaGetLastError();
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	EXPECT(free_bytes > 0 && free_bytes <= total_bytes);
	for (int e = 0; e < 1000; e++) {
		const char *name = cudaGetErrorName((cudaError_t)e);

		if (strcmp(name, "unrecognized error code") != 0)
			printf("%d %s: %s\n", e, name, cudaGetErrorString((cudaError_t)e));
	}
	CHECK(cudaDeviceReset());
	CHECK(cudaMalloc(&p, 16));
	CHECK(cudaFree(p));
	return finish();
}
