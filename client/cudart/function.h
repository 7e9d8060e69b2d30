/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, found by the address that a program passes. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/*
 * The function of the address `func`. cudaErrorInvalidDeviceFunction for an address that was never
 * registered.  Enters.
 */
cudaError_t ckt_rt_function(const void *func, CUfunction *ret_function);
