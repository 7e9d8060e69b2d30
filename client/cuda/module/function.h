/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of modules.  The worker describes a function when the program first asks for it. */
#pragma once

#include <cuda.h>

#include <stdint.h>

#include "cudacommon/object.h"

struct ckt_module;

struct ckt_function {
	struct ckt_cudacommon_object object;
	uint64_t module;
	struct ckt_function *next; /* function of the same module */
	char *name;
	unsigned param_count;
	uint32_t param_bytes;
	uint32_t *param_offsets, *param_sizes;
	int32_t attributes[32];   /* index = CUfunction_attribute */
	uint32_t attribute_valid; /* bit per attribute */
};

/* Drops the cached occupancies of a function whose setting changes (occupancy.c). */
void ckt_client_occupancy_forget(uint64_t function);

CUresult ckt_client_module_function(
	struct ckt_module *module, const char *name, struct ckt_function **ret_function);
/* Finds the function of a CUfunction, or of a CUkernel cast to one, in the current context. */
CUresult ckt_client_function_resolve(CUfunction handle, struct ckt_function **ret_function);
