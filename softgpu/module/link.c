/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PTX linker.  It collects the inputs.  cuLinkComplete links them once to find errors, and
 * returns a fat binary with all texts as one unit.  A module load links the texts again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudacommon/jit.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/module/archive.h"
#include "softgpu/module/fatbin.h"
#include "softgpu/module/jit.h"
#include "softgpu/module/module.h"
#include "softgpu/ptx/ptx.h"

struct link_state {
	struct ckt_soft_object object;
	pthread_mutex_t lock; /* protects the fields below */
	unsigned capability;
	struct ckt_soft_texts texts;
	struct ckt_cudacommon_jit jit;
	void *image; /* after cuLinkComplete */
	size_t image_size;
};

static void link_free(struct ckt_soft_object *object)
{
	struct link_state *state = (struct link_state *)object;
	ckt_soft_texts_fini(&state->texts);
	pthread_mutex_destroy(&state->lock);
	free(state->image);
	free(state);
}

CUresult CUDAAPI cuLinkCreate_v2(
	unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_cudacommon_jit jit;
	result = ckt_jit_read_linker(&jit, numOptions, options, optionValues);
	if (result != CUDA_SUCCESS)
		return result;
	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	struct link_state *state = calloc(1, sizeof(*state));
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&state->lock, NULL);
	state->jit = jit;
	/* The device could not load code for a later capability. */
	unsigned capability = context->device->arch->capability, target;
	state->capability = ckt_soft_jit_target(&jit, &target) && target && target < capability
		? target
		: capability;
	result = ckt_soft_object_init(&state->object, CKT_SOFT_LINK, link_free);
	if (result != CUDA_SUCCESS) {
		link_free(&state->object);
		return result;
	}
	*stateOut = ckt_soft_object_handle(&state->object);
	return CUDA_SUCCESS;
}

/* Precondition: state->lock is held. */
static CUresult report(struct link_state *state, CUresult result, const char *log)
{
	if (result != CUDA_SUCCESS) {
		ckt_soft_jit_finish(&state->jit, log);
		/*
		 * The device runtime is an input of every relocatable program and often has no
		 * suitable image.
		 */
		if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
			ckt_soft_debug("link: %s", log);
		else if (*log)
			ckt_soft_say_once("link: %s", log);
	}
	return result;
}

static CUresult add_input(struct link_state *state, CUjitInputType type, const void *data,
	size_t size, const char *name, char *log, size_t log_size)
{
	switch (type) {
	case CU_JIT_INPUT_PTX:
		return ckt_soft_texts_add(&state->texts, data, strnlen(data, size), NULL);
	case CU_JIT_INPUT_FATBINARY: {
		CUresult result = ckt_soft_image_texts(
			data, size, state->capability, &state->texts, log, log_size);
		if (result != CUDA_ERROR_NO_BINARY_FOR_GPU ||
			!ckt_soft_image_is_library(data, size, state->capability))
			return result;
		ckt_soft_debug(
			"link: %s: only machine code fits, as in the device runtime, ignoring it",
			name);
		*log = '\0';
		return CUDA_SUCCESS;
	}
	case CU_JIT_INPUT_LIBRARY:
	case CU_JIT_INPUT_OBJECT:
		return ckt_soft_archive_texts(
			data, size, state->capability, &state->texts, name, log, log_size);
	case CU_JIT_INPUT_CUBIN:
		/* The output of cuLinkComplete also has this type. */
		return ckt_soft_image_texts(
			data, size, state->capability, &state->texts, log, log_size);
	default:
		snprintf(log, log_size, "%s: this kind of input (%d) is not supported", name,
			(int)type);
		return CKT_SOFT_UNSUPPORTED("an input of this kind to the linker");
	}
}

static CUresult link_get(CUlinkState handle, struct link_state **ret_state)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_state = ckt_soft_object_get(handle, CKT_SOFT_LINK);
	return *ret_state ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct link_state *state;
	CUresult result = link_get(handle, &state);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_cudacommon_jit ignored;
	result = ckt_jit_read_linker(&ignored, numOptions, options, optionValues);
	if (result == CUDA_SUCCESS && (!data || !size))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		char log[CKT_SOFT_LOG_MAX] = "";
		pthread_mutex_lock(&state->lock);
		if (state->image)
			result = CUDA_ERROR_INVALID_VALUE;
		else
			result = report(state,
				add_input(state, type, data, size, name ? name : "input", log,
					sizeof(log)),
				log);
		pthread_mutex_unlock(&state->lock);
	}
	ckt_soft_object_put(&state->object);
	return result;
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	void *data;
	size_t size;
	result = ckt_soft_file_read(path, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuLinkAddData_v2(state, type, data, size, path, numOptions, options, optionValues);
	free(data);
	return result;
}

CUresult CUDAAPI cuLinkComplete(CUlinkState handle, void **cubinOut, size_t *sizeOut)
{
	struct link_state *state;
	CUresult result = link_get(handle, &state);
	if (result != CUDA_SUCCESS)
		return result;
	char log[CKT_SOFT_LOG_MAX] = "";
	pthread_mutex_lock(&state->lock);
	if (!cubinOut) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!state->image) {
		struct ckt_ptx_module *code = NULL;
		/* Without inputs, the result is an empty image. */
		static const char nothing[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
		if (state->texts.n == 0)
			result = ckt_soft_texts_add(
				&state->texts, nothing, sizeof(nothing) - 1, NULL);
		if (result == CUDA_SUCCESS)
			result = ckt_soft_code_load(
				&state->texts, state->capability, &code, log, sizeof(log));
		if (code)
			ckt_ptx_module_destroy(code);
		if (result == CUDA_SUCCESS)
			result = ckt_soft_image_pack(&state->texts, state->capability,
				&state->image, &state->image_size);
		if (result == CUDA_SUCCESS)
			ckt_soft_jit_finish(&state->jit, "");
		report(state, result, log);
	}
	if (result == CUDA_SUCCESS) {
		*cubinOut = state->image;
		if (sizeOut)
			*sizeOut = state->image_size;
	}
	pthread_mutex_unlock(&state->lock);
	ckt_soft_object_put(&state->object);
	return result;
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState handle)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct link_state *state = ckt_soft_object_get(handle, CKT_SOFT_LINK);
	if (!state)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ckt_soft_object_remove(&state->object))
		ckt_soft_object_put(&state->object);
	ckt_soft_object_put(&state->object);
	return CUDA_SUCCESS;
}
