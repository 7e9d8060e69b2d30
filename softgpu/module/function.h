/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a module in a context. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "softgpu/context/object.h"
#include "softgpu/cuda_api.h"

struct ckt_ptx_function;
struct ckt_ptx_function_info;
struct ckt_soft_context;
struct ckt_soft_device;
struct ckt_soft_module;

struct ckt_soft_function {
	struct ckt_soft_object object;
	struct ckt_soft_module *module; /* lives as long as its functions have handles */
	const struct ckt_ptx_function *code;
	const struct ckt_ptx_function_info *info;
	unsigned capability; /* of the device */
	atomic_int max_dynamic_shared, carveout, non_portable_cluster, cluster_policy;
	atomic_int cluster_set[3];
	atomic_bool refusal_said, loaded, waited;
	uint64_t code_base; /* the code that a lazy driver has loaded; 0: none */
};

/*
 * Returns the function with a reference, for a CUfunction or for a CUkernel in the given context.
 */
CUresult ckt_soft_function_get(CUfunction handle, struct ckt_soft_context *context,
	struct ckt_soft_function **ret_function);
/*
 * CUDA_ERROR_INVALID_PTX for a kernel with an instruction that the interpreter does not support,
 * logged once.  Lookups and launches call it.
 */
CUresult ckt_soft_function_usable(const struct ckt_ptx_function_info *info, atomic_bool *said);
CUresult ckt_soft_function_attribute(
	const struct ckt_soft_function *function, CUfunction_attribute attribute, int *ret_value);
CUresult ckt_soft_function_set_attribute(struct ckt_soft_function *function,
	const struct ckt_soft_device *device, CUfunction_attribute attribute, int value);
/* Sets the defaults that a loaded function has. */
void ckt_soft_function_defaults(
	struct ckt_soft_function *function, const struct ckt_soft_device *device);
void ckt_soft_function_copy_settings(
	struct ckt_soft_function *to, const struct ckt_soft_function *from);
