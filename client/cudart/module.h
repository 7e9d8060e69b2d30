/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the modules that the program registered.  Precondition of all functions: entered.  No
 * function records its error.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "client/cudart/init.h"
#include "client/cudart/registration.h"

_Atomic uint64_t *ckt_rt_slot(ckt_rt_slots *slots, int device); /* NULL if there is no memory */
cudaError_t ckt_rt_kernel_function_slow(struct ckt_rt_kernel *kernel, CUfunction *ret_function);
cudaError_t ckt_rt_kernel_handle(struct ckt_rt_kernel *kernel, CUkernel *ret_kernel);
cudaError_t ckt_rt_variable_address(
	struct ckt_rt_variable *variable, CUdeviceptr *ret_address, size_t *ret_size);
cudaError_t ckt_rt_module_managed(struct ckt_rt_module *module);
void ckt_rt_module_unload(struct ckt_rt_module *module);

static inline cudaError_t ckt_rt_kernel_function(
	struct ckt_rt_kernel *kernel, CUfunction *ret_function)
{
	_Atomic uint64_t *slots = atomic_load_explicit(&kernel->functions, memory_order_acquire);
	if (__builtin_expect(slots != NULL && ckt_rt_thread.primary, 1)) {
		uint64_t function =
			atomic_load_explicit(&slots[ckt_rt_thread.device], memory_order_acquire);
		if (__builtin_expect(function != 0, 1)) {
			*ret_function = (CUfunction)(uintptr_t)function;
			return cudaSuccess;
		}
	}
	return ckt_rt_kernel_function_slow(kernel, ret_function);
}
