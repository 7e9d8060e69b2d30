/*
 * What libcublas.so exports and no header of NVIDIA's declares, as cuSOLVER calls it: the generator
 * reads it beside them.  cusolverDnCreate sets the mode of its handle to 1, which the genuine
 * library passes on to the handles that it makes for itself.
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
