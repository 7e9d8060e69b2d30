/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker.  The client collects the inputs, sends them by content, and the worker links them in
 * one call.  The worker keeps the result.  The client fetches the bytes too, because the program
 * may use them.  Loading them later sends only their hash.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/module/module.h"
#include "client/cuda/module/module_image.h"
#include "cudacommon/jit.h"

enum { INPUTS_MAX = 256, NAMES_MAX = 65536 };

struct link {
	struct ckt_cudacommon_object object;
	struct ckt_cudacommon_jit jit;
	uint32_t count;
	uint32_t types[INPUTS_MAX];
	uint8_t hashes[INPUTS_MAX * 32];
	char names[NAMES_MAX]; /* NUL-terminated, one after another */
	uint32_t names_size;
	void *cubin;
	size_t cubin_size;
};

static struct link *find(CUlinkState state)
{
	return ckt_cudacommon_object_find(ckt_handle_id(state), CKT_KIND_LINK);
}

CKT_EXPORT CUresult cuLinkCreate_v2(
	unsigned int n_options, CUjit_option *options, void **values, CUlinkState *state)
{
	struct ckt_context *context;
	if (!state || (n_options && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	struct link *link = calloc(1, sizeof *link);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->object.context = context->object.id;
	result = ckt_jit_read_linker(&link->jit, n_options, options, values);
	if (result) {
		free(link);
		return result;
	}
	if (!ckt_cudacommon_object_add(&link->object, CKT_KIND_LINK)) {
		free(link);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*state = (CUlinkState)(uintptr_t)link->object.id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data,
	size_t size, const char *name, unsigned int n_options, CUjit_option *options, void **values)
{
	struct link *link = find(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	struct ckt_cudacommon_jit of_input;
	if (!data || !size || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES ||
		ckt_jit_read_linker(&of_input, n_options, options, values))
		return CUDA_ERROR_INVALID_VALUE;
	if (!name)
		name = "";
	size_t name_size = strlen(name) + 1;
	if (link->count == INPUTS_MAX || link->names_size + name_size > NAMES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_client_blob_send(data, size, link->hashes + link->count * 32);
	if (result)
		return result;
	link->types[link->count++] = type;
	memcpy(link->names + link->names_size, name, name_size);
	link->names_size += (uint32_t)name_size;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int n_options, CUjit_option *options, void **values)
{
	void *data;
	size_t size;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_file_read(path, &data, &size);
	if (result)
		return result;
	/* A text input includes its NUL. */
	result = cuLinkAddData_v2(state, type, data, type == CU_JIT_INPUT_PTX ? size + 1 : size,
		path, n_options, options, values);
	free(data);
	return result;
}

static CUresult read_result(struct link *link, const uint8_t *hash, uint64_t size)
{
	uint8_t *cubin = malloc(size ? size : 1);
	if (!cubin)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t offset = 0; offset < size && !result;) {
		struct ckt_reply reply;
		struct ckt_blob_read_res res;
		uint32_t part =
			size - offset < CKT_DATA_MAX ? (uint32_t)(size - offset) : CKT_DATA_MAX;
		result = CKT_WAITED(blob_read, BLOB_READ, 0, &reply, .hash = hash, .hash_len = 32,
			.offset = offset, .size = part);
		if (result)
			break;
		if (ckt_blob_read_res_get(&reply.results, &res) && res.data_len == part)
			memcpy(cubin + offset, res.data, part);
		else
			result = CUDA_ERROR_UNKNOWN;
		offset += part;
		ckt_call_reply_release(&reply);
	}
	if (result) {
		free(cubin);
		return result;
	}
	free(link->cubin);
	link->cubin = cubin;
	link->cubin_size = size;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
	struct ckt_reply reply;
	struct ckt_link_res res;
	struct link *link = find(state);
	uint8_t hash[32];
	uint64_t result_size = 0;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	CKT_ROUTE_CONTEXT(link->object.context);
	CUresult result = CKT_WAITED(link, LINK, CKT_CALL_F_NUMBERED, &reply,
		.option_keys = link->jit.keys, .option_keys_len = link->jit.count,
		.option_values = link->jit.values, .option_values_len = link->jit.count,
		.input_types = link->types, .input_types_len = link->count,
		.input_hashes = link->hashes, .input_hashes_len = link->count * 32,
		.input_names = link->names, .input_names_len = link->names_size,
		.info_log_max = link->jit.info_log_max ? link->jit.info_log_max + 1 : 0,
		.error_log_max = link->jit.error_log_max ? link->jit.error_log_max + 1 : 0);
	if (result)
		return result;
	if (ckt_link_res_get(&reply.results, &res)) {
		result = (CUresult)res.status;
		ckt_jit_finish(&link->jit, res.info_log, res.info_log_len, res.error_log,
			res.error_log_len);
		if (!result && res.hash_len != sizeof hash)
			result = CUDA_ERROR_UNKNOWN;
		if (!result) {
			memcpy(hash, res.hash, sizeof hash);
			result_size = res.size;
		}
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	if (!result)
		result = read_result(link, hash, result_size);
	if (!result) {
		if (cubin)
			*cubin = link->cubin;
		if (size)
			*size = link->cubin_size;
	}
	return result;
}

CKT_EXPORT CUresult cuLinkDestroy(CUlinkState state)
{
	struct link *link = find(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	free(link->cubin);
	link->cubin = NULL;
	ckt_cudacommon_object_remove(&link->object);
	return CUDA_SUCCESS;
}
