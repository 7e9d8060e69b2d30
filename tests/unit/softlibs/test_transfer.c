/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublas/transfer.c: vectors and matrices there and back, with steps. */
#include "softlibs.h"

static void test_vector(void)
{
	int host[12], back[12];
	CUdeviceptr p;
	lib_begin();
	OK(cuMemAlloc(&p, 256));
	OK(cuMemsetD8(p, 0xee, 256));
	int *device = (int *)(uintptr_t)p;
	for (int i = 0; i < 12; i++)
		host[i] = i, back[i] = -1;
	OK(cublasSetVector(4, 4, host, 3, device, 2));
	for (int i = 0; i < 4; i++) {
		IS(device[2 * i], 3 * i);
		IS(device[2 * i + 1], (int)0xeeeeeeee);
	}
	OK(cublasGetVector_64(4, 4, device, 2, back, 1));
	for (int i = 0; i < 4; i++)
		IS(back[i], 3 * i);
	IS(back[4], -1);
	OK(cublasSetVectorAsync(3, 4, host + 1, 1, device, 1, (cudaStream_t)lib_stream));
	OK(cublasGetVectorAsync(3, 4, device, 1, back + 5, 2, (cudaStream_t)lib_stream));
	OK(cuStreamSynchronize(lib_stream));
	IS(back[5] * 10000 + back[7] * 100 + back[9], 10203);
	IS(back[6], -1);
	OK(cublasSetVector(0, 4, NULL, 1, NULL, 1));
	IS(cublasSetVector(-1, 4, host, 1, device, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetVector(1, 0, host, 1, device, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetVector(1, 4, host, 0, device, 1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetVector(1, 4, device, 1, host, -1), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasGetVector(1, 4, NULL, 1, host, 1), CUBLAS_STATUS_INVALID_VALUE);
	OK(cuMemFree(p));
	lib_end();
}

static void test_matrix(void)
{
	short host[20], back[20];
	CUdeviceptr p;
	lib_begin();
	OK(cuMemAlloc(&p, 256));
	OK(cuMemsetD8(p, 0xee, 256));
	short *device = (short *)(uintptr_t)p;
	for (int i = 0; i < 20; i++)
		host[i] = (short)i, back[i] = -1;
	OK(cublasSetMatrix(3, 4, 2, host, 5, device, 4));
	for (int j = 0; j < 4; j++) {
		for (int i = 0; i < 3; i++)
			IS(device[i + 4 * j], i + 5 * j);
		IS(device[3 + 4 * j], (short)0xeeee);
	}
	OK(cublasGetMatrixAsync_64(2, 3, 2, device + 1, 4, back, 3, (cudaStream_t)lib_stream));
	OK(cuStreamSynchronize(lib_stream));
	for (int j = 0; j < 3; j++)
		for (int i = 0; i < 3; i++)
			IS(back[i + 3 * j], i < 2 ? i + 1 + 5 * j : -1);
	OK(cublasGetMatrix(0, 5, 2, NULL, 1, NULL, 1));
	IS(cublasSetMatrix(3, 4, 2, host, 2, device, 4), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMatrix(3, 4, 2, host, 5, device, 0), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMatrix(3, -4, 2, host, 5, device, 4), CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasSetMatrix_64(3, 4, 2, NULL, 5, device, 4), CUBLAS_STATUS_INVALID_VALUE);
	OK(cuMemFree(p));
	lib_end();
}

UNIT_SUITE(transfer, {"vectors", test_vector}, {"matrices", test_matrix})
