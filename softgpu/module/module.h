/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: code in a context. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/context/object.h"
#include "softgpu/cuda_api.h"

struct ckt_ptx_module;
struct ckt_soft_context;
struct ckt_soft_function;
struct ckt_soft_texts;

struct ckt_soft_module {
	struct ckt_soft_object object;
	struct ckt_soft_context *context;     /* referenced */
	struct ckt_soft_module *next, **link; /* in context->modules */
	struct ckt_ptx_module *code;
	struct ckt_soft_function **functions;
	size_t n_functions;
	uint64_t globals_base; /* 0: none */
	bool from_library;
};

/* Parses the texts; on failure writes one line to log and returns a CUDA error. */
CUresult ckt_soft_code_load(const struct ckt_soft_texts *texts, unsigned capability,
	struct ckt_ptx_module **ret_code, char *log, size_t log_size_bytes);
/* Takes over code, also on failure. */
CUresult ckt_soft_module_create(struct ckt_soft_context *context, struct ckt_ptx_module *code,
	bool from_library, struct ckt_soft_module **ret_module);
void ckt_soft_module_close(struct ckt_soft_module *module);
/* Whether a managed variable of the context's modules contains the address. */
bool ckt_soft_module_managed_at(struct ckt_soft_context *context, uint64_t address);
/* True for CUDA_MODULE_LOADING=EAGER. */
bool ckt_soft_is_eager(void);
/* Called before the function is used: a lazy driver loads it now. */
CUresult ckt_soft_function_load(struct ckt_soft_function *function);
CUresult ckt_soft_module_global(struct ckt_soft_module *module, const char *name, bool managed_only,
	CUdeviceptr *ret_address, size_t *ret_size);
struct ckt_soft_function *ckt_soft_module_function(
	struct ckt_soft_module *module, const char *name);
