/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: how to load them, and their contents. */
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudacommon/object.h"

struct ckt_function;

struct ckt_module {
	struct ckt_cudacommon_object object;
	pthread_mutex_t lock;
	struct ckt_function *functions;
	uint8_t hash[32];
};

CUresult ckt_client_module_load(const void *data, size_t size, unsigned n_options,
	CUjit_option *options, void **values, CUmodule *ret_module);
CUresult ckt_client_module_unload(struct ckt_module *module);
/* Forgets the modules of a context that was destroyed or reset; their handles become invalid. */
void ckt_client_module_forget_context(uint64_t context);
/*
 * Finds a variable: its address, its size, and whether it is __managed__.  The program can access a
 * managed variable from then on.
 */
CUresult ckt_client_module_variable(
	CUmodule handle, const char *name, CUdeviceptr *address, size_t *size, bool *ret_managed);
/*
 * Calls visit for the names of at most max functions, in the module's order.  Stops at the first
 * error.
 */
CUresult ckt_client_module_each_function(struct ckt_module *module, unsigned max,
	CUresult (*visit)(void *data, const char *name), void *data);
/*
 * Reads a file into malloc'd memory, with at least one NUL behind its bytes.  The caller frees it.
 */
CUresult ckt_client_file_read(const char *path, void **ret_data, size_t *ret_size);
