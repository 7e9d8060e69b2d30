/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cublas/check_vector.c: what functions of vectors refuse. */
#include "softlibs.h"

#define BAD(call) IS(call, CUBLAS_STATUS_INVALID_VALUE)
#define NOT(call) IS(call, CUBLAS_STATUS_NOT_SUPPORTED)

static void test_refused(void)
{
	static float f[8], one = 1;
	lib_begin();
	IS(cublasSaxpy_v2(NULL, 1, &one, f, 1, f, 1), CUBLAS_STATUS_NOT_INITIALIZED);
	BAD(cublasSaxpy_v2(lib_handle, 1, NULL, f, 1, f, 1));
	BAD(cublasSaxpy_v2(lib_handle, 1, &one, NULL, 1, f, 1));
	BAD(cublasScopy_v2(lib_handle, 1, f, 1, NULL, 1));
	BAD(cublasSdot_v2(lib_handle, 1, f, 1, f, 1, NULL));
	BAD(cublasSnrm2_v2(lib_handle, 1, NULL, 1, f));
	BAD(cublasSasum_v2(lib_handle, 1, f, 1, NULL));
	BAD(cublasIsamax_v2(lib_handle, 1, f, 1, NULL));
	BAD(cublasSrot_v2(lib_handle, 1, f, 1, f, 1, NULL, &one));
	BAD(cublasSrotg_v2(lib_handle, f, f, f, NULL));
	BAD(cublasSrotm_v2(lib_handle, 1, f, 1, f, 1, NULL));
	BAD(cublasSrotmg_v2(lib_handle, f, f, f, NULL, f));
	NOT(cublasAxpyEx(
		lib_handle, 1, &one, CUDA_R_32F, f, CUDA_R_16F, 1, f, CUDA_R_16F, 1, CUDA_R_64F));
	NOT(cublasScalEx(lib_handle, 1, &one, CUDA_R_32F, f, CUDA_R_8I, 1, CUDA_R_32F));
	NOT(cublasScalEx(lib_handle, 1, &one, CUDA_R_8F_E4M3, f, CUDA_R_32F, 1, CUDA_R_32F));
	NOT(cublasDotEx(
		lib_handle, 1, f, CUDA_R_32F, 1, f, CUDA_C_32F, 1, f, CUDA_R_32F, CUDA_R_32F));
	NOT(cublasNrm2Ex(lib_handle, 1, f, CUDA_R_16F, 1, f, CUDA_R_16F, CUDA_R_16F));
	NOT(cublasSnrm2_v2_64(lib_handle, 1ll << 31, f, 1, f));
	lib_end();
}

UNIT_SUITE(check_vector, {"refused", test_refused})
