/* SPDX-License-Identifier: Apache-2.0 */
/* Modules.  The worker loads them by content.  The client fetches functions and globals once. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cuda/module/module.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/module/fat_binary.h"
#include "client/cuda/module/function.h"
#include "client/cuda/module/module_image.h"
#include "client/cuda/stream/hostfunc.h"
#include "cudacommon/jit.h"

static struct ckt_module *find(CUmodule handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_MODULE);
}

static CUresult load_at_worker(struct ckt_module *module, struct ckt_cudacommon_jit *jit)
{
	struct ckt_reply reply;
	struct ckt_module_load_res res;
	ckt_host_settle();
	CUresult result = CKT_WAITED(module_load, MODULE_LOAD, CKT_CALL_F_NUMBERED, &reply,
		.id = module->object.id, .hash = module->hash, .hash_len = sizeof module->hash,
		.option_keys = jit->keys, .option_keys_len = jit->count,
		.option_values = jit->values, .option_values_len = jit->count,
		.info_log_max = jit->info_log_max ? jit->info_log_max + 1 : 0,
		.error_log_max = jit->error_log_max ? jit->error_log_max + 1 : 0);
	if (result)
		return result;
	if (ckt_module_load_res_get(&reply.results, &res)) {
		result = (CUresult)res.status;
		ckt_jit_finish(
			jit, res.info_log, res.info_log_len, res.error_log, res.error_log_len);
	} else {
		result = CUDA_ERROR_UNKNOWN;
	}
	ckt_call_reply_release(&reply);
	return result;
}

static void renew(struct ckt_cudacommon_object *object, void *unused)
{
	(void)unused;
	((struct ckt_module *)object)->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void forked(void)
{
	ckt_cudacommon_object_each(CKT_KIND_MODULE, renew, NULL);
}
CKT_IN_CHILD(forked);

/* Without the image's bytes first: the worker may have them, from this program or from an earlier one. */
static CUresult load_image(
	struct ckt_module *module, struct ckt_cudacommon_jit *jit, const void *data, size_t size)
{
	CUresult result = ckt_client_blob_offer(data, size, module->hash);
	if (!result && !ckt_cudacommon_object_add(&module->object, CKT_KIND_MODULE))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		free(module);
		return result;
	}
	result = load_at_worker(module, jit);
	if (result == CUDA_ERROR_NOT_FOUND) {
		result = ckt_client_blob_put(data, size, module->hash);
		if (!result)
			result = load_at_worker(module, jit);
	}
	if (result)
		ckt_cudacommon_object_remove(&module->object);
	return result;
}

/* The part of the image that the context's device can use; see fat_binary.h. */
static CUresult choose(const struct ckt_context *context, const struct ckt_cudacommon_jit *jit,
	const void *data, size_t size, void **ret_data, size_t *ret_size)
{
	*ret_data = NULL;
	/* The program names another GPU. */
	for (uint32_t i = 0; i < jit->count; i++)
		if (jit->keys[i] == CU_JIT_TARGET)
			return CUDA_SUCCESS;
	int major = ckt_client_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = ckt_client_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return ckt_client_fat_binary_choose(
		data, size, (unsigned)(major * 10 + minor), ret_data, ret_size);
}

CUresult ckt_client_module_load(const void *data, size_t size, unsigned n_options,
	CUjit_option *options, void **values, CUmodule *ret_module)
{
	struct ckt_context *context;
	struct ckt_cudacommon_jit jit;
	void *chosen;
	size_t chosen_size;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_jit_read(&jit, n_options, options, values);
	if (!result)
		result = choose(context, &jit, data, size, &chosen, &chosen_size);
	if (result)
		return result;
	struct ckt_module *module = calloc(1, sizeof *module);
	if (!module) {
		free(chosen);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_init(&module->lock, NULL);
	module->object.context = context->object.id;
	result = chosen ? load_image(module, &jit, chosen, chosen_size)
			: load_image(module, &jit, data, size);
	free(chosen);
	if (!result)
		*ret_module = (CUmodule)(uintptr_t)module->object.id;
	return result;
}

CKT_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n_options,
	CUjit_option *options, void **values)
{
	const void *data;
	size_t size;
	if (!module || !image || (n_options && !options))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_image_extent(image, &data, &size);
	return result ? result
		      : ckt_client_module_load(data, size, n_options, options, values, module);
}

CKT_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CKT_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fat_binary)
{
	return cuModuleLoadDataEx(module, fat_binary, 0, NULL, NULL);
}

CKT_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	void *data;
	size_t size;
	if (!module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_file_read(path, &data, &size);
	if (!result) {
		result = cuModuleLoadData(module, data);
		free(data);
	}
	return result;
}

CUresult ckt_client_file_read(const char *path, void **ret_data, size_t *ret_size)
{
	struct stat status;
	int saved_errno = errno;
	CUresult result = CUDA_ERROR_FILE_NOT_FOUND;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		/* A text image in a file may lack the final NUL. */
		char *data = malloc((size_t)status.st_size + 64);
		size_t have = 0;
		ssize_t n = 1;
		while (data && n > 0 && have < (size_t)status.st_size)
			if ((n = read(fd, data + have, (size_t)status.st_size - have)) > 0)
				have += (size_t)n;
		if (data) {
			memset(data + have, 0, (size_t)status.st_size + 64 - have);
			*ret_data = data;
			*ret_size = have;
			result = CUDA_SUCCESS;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (fd >= 0)
		close(fd);
	errno = saved_errno;
	return result;
}

static void forget(struct ckt_module *module)
{
	ckt_managed_forget_owner(module->object.id);
	ckt_range_remove_owner(module->object.id);
	for (struct ckt_function *f = module->functions; f;) {
		struct ckt_function *next = f->next;
		ckt_cudacommon_object_remove(&f->object);
		f = next;
	}
	module->functions = NULL;
	ckt_cudacommon_object_remove(&module->object);
}

static void forget_object(struct ckt_cudacommon_object *object)
{
	forget((struct ckt_module *)object);
}

void ckt_client_module_forget_context(uint64_t context)
{
	ckt_cudacommon_object_each_of_context(CKT_KIND_MODULE, context, forget_object);
}

CUresult ckt_client_module_unload(struct ckt_module *module)
{
	CKT_ROUTE_CONTEXT(module->object.context);
	ckt_host_settle();
	CUresult result = CKT_WAITED(
		module_unload, MODULE_UNLOAD, CKT_CALL_F_NUMBERED, NULL, .id = module->object.id);
	if (!result)
		forget(module);
	return result;
}

CKT_EXPORT CUresult cuModuleUnload(CUmodule handle)
{
	struct ckt_module *module = find(handle);
	return module ? ckt_client_module_unload(module) : CUDA_ERROR_INVALID_HANDLE;
}

CKT_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
	struct ckt_function *found;
	struct ckt_module *module = find(handle);
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = ckt_client_module_function(module, name, &found);
	if (!result)
		*function = (CUfunction)(uintptr_t)found->object.id;
	return result;
}

CUresult ckt_client_module_variable(
	CUmodule handle, const char *name, CUdeviceptr *address, size_t *size, bool *ret_managed)
{
	struct ckt_module *module = find(handle);
	struct ckt_reply reply;
	struct ckt_module_get_variable_res res;
	struct ckt_client_range known;
	if (!name || strlen(name) > 65536)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	CKT_ROUTE_CONTEXT(module->object.context);
	if (ckt_range_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CKT_WAITED(module_get_variable, MODULE_GET_VARIABLE, CKT_CALL_F_NUMBERED,
		&reply, .module = module->object.id, .name = name,
		.name_len = (uint32_t)strlen(name));
	if (result)
		return result;
	bool good = ckt_module_get_variable_res_get(&reply.results, &res);
	ckt_call_reply_release(&reply);
	if (!good)
		return CUDA_ERROR_UNKNOWN;
	/* At another server, the same address belongs to a different variable. */
	if (res.size &&
		!(ckt_range_find(res.address, &known) && known.base == res.address &&
			ckt_client_context_conn(known.context) == ckt_call_conn)) {
		struct ckt_context *context =
			ckt_cudacommon_object_find(module->object.context, CKT_KIND_CONTEXT);
		if (res.managed)
			result = ckt_managed_variable(
				res.address, res.size, module->object.context, module->object.id);
		if (result)
			return result;
		ckt_range_add(&(struct ckt_client_range){.base = res.address,
			.size = res.size,
			.kind = CKT_RANGE_GLOBAL,
			.owner = module->object.id,
			.flags = res.managed,
			.context = module->object.context,
			.device = context ? context->device : 0});
	}
	if (address)
		*address = res.address;
	if (size)
		*size = res.size;
	*ret_managed = res.managed;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *address, size_t *size, CUmodule handle, const char *name)
{
	bool managed;
	return ckt_client_module_variable(handle, name, address, size, &managed);
}

/* ---- Lists of functions: the worker sends the names in pages of whole NUL-terminated strings. */

static CUresult list_page(struct ckt_module *module, uint32_t first, struct ckt_reply *reply,
	struct ckt_module_list_functions_res *ret_res)
{
	CKT_ROUTE_CONTEXT(module->object.context);
	CUresult result = CKT_WAITED(module_list_functions, MODULE_LIST_FUNCTIONS, 0, reply,
		.module = module->object.id, .first = first);
	if (!result && !ckt_module_list_functions_res_get(&reply->results, ret_res)) {
		ckt_call_reply_release(reply);
		result = CUDA_ERROR_UNKNOWN;
	}
	return result;
}

CKT_EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
	struct ckt_module *module = find(handle);
	struct ckt_reply reply;
	struct ckt_module_list_functions_res res;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = list_page(module, 0, &reply, &res);
	if (result)
		return result;
	*count = res.total;
	ckt_call_reply_release(&reply);
	return CUDA_SUCCESS;
}

CUresult ckt_client_module_each_function(struct ckt_module *module, unsigned max,
	CUresult (*visit)(void *data, const char *name), void *data)
{
	uint32_t seen = 0, total = 1;
	CUresult result = CUDA_SUCCESS;
	while (!result && seen < total && seen < max) {
		struct ckt_reply reply;
		struct ckt_module_list_functions_res res;
		result = list_page(module, seen, &reply, &res);
		if (result)
			return result;
		total = res.total;
		uint32_t before = seen;
		for (uint32_t at = 0; at < res.names_len && seen < max && !result;) {
			size_t length = strnlen(res.names + at, res.names_len - at);
			char *name = strndup(res.names + at, length);
			result = name ? visit(data, name) : CUDA_ERROR_OUT_OF_MEMORY;
			free(name);
			at += (uint32_t)length + 1;
			seen++;
		}
		ckt_call_reply_release(&reply);
		if (seen == before)
			break;
	}
	return result;
}

struct function_list {
	struct ckt_module *module;
	CUfunction *functions;
	unsigned count;
};

static CUresult collect(void *data, const char *name)
{
	struct function_list *list = data;
	struct ckt_function *function;
	CUresult result = ckt_client_module_function(list->module, name, &function);
	if (!result)
		list->functions[list->count++] = (CUfunction)(uintptr_t)function->object.id;
	return result;
}

CKT_EXPORT CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int n, CUmodule handle)
{
	struct ckt_module *module = find(handle);
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	struct function_list list = {.module = module, .functions = functions};
	return ckt_client_module_each_function(module, n, collect, &list);
}
