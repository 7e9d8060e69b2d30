/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by what a program passes for them. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/*
 * From what a program passes as `func`; cudaErrorInvalidDeviceFunction for what was never
 * registered.  Enters.
 */
cudaError_t ckt_rt_function(const void *func, CUfunction *ret_function);
