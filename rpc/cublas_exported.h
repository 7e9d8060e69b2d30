/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that libcublas.so exports but no NVIDIA header declares; cuSOLVER calls them. The
 * generator reads this file beside the headers.  cusolverDnCreate sets the mode of its handle to 1,
 * and the genuine library passes it on to the handles that it creates for itself.
 */
#pragma once

#include <cublas_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cublasStatus_t cublasSetEnvironmentMode(cublasHandle_t handle, int mode);
cublasStatus_t cublasGetEnvironmentMode(cublasHandle_t handle, int *mode);

#ifdef __cplusplus
}
#endif
