/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs, modules and functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/memory/kernel_heap.h"
#include "server/worker/memory/lease.h"
#include "server/worker/module/blob_cache.h"
#include "server/worker/module/jit.h"
#include "server/worker/module/module.h"
#include "server/worker/module/module_check.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/module/module_size.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/waiting_call.h"
#include "server/worker/worker.h"

enum { PARAMS_MAX = 4096 };

/* ---- Blobs */

int ckt_worker_blob_have(struct ckt_wcall *call)
{
	struct ckt_blob_have_args args;
	if (!ckt_blob_have_args_get(&call->args, &args) || args.hash_len != CKT_HASH_SIZE)
		return CKT_WCALL_GARBAGE;
	struct ckt_blob_have_res res = {
		.have = ckt_blob_cache_find(&call->worker->blobs, args.hash) != NULL};
	ckt_blob_have_res_put(ckt_wcall_results(call, ckt_blob_have_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_blob_data(struct ckt_wcall *call)
{
	struct ckt_blob_data_args args;
	if (!ckt_blob_data_args_get(&call->args, &args) || args.hash_len != CKT_HASH_SIZE)
		return CKT_WCALL_GARBAGE;
	struct ckt_blobs *blobs = &call->worker->blobs;
	bool had = ckt_blobs_find(blobs, args.hash) != NULL;
	switch (ckt_blobs_piece(
		blobs, args.hash, args.total, args.offset, args.data, args.data_len)) {
	case 0:
		if (!had)
			ckt_blob_cache_keep(blobs, args.hash);
		return CUDA_SUCCESS;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CKT_WCALL_GARBAGE;
	}
}

int ckt_worker_blob_read(struct ckt_wcall *call)
{
	struct ckt_blob_read_args args;
	if (!ckt_blob_read_args_get(&call->args, &args) || args.hash_len != CKT_HASH_SIZE)
		return CKT_WCALL_GARBAGE;
	const struct ckt_blob *blob = ckt_blobs_find(&call->worker->blobs, args.hash);
	if (!blob)
		return CUDA_ERROR_NOT_FOUND;
	if (args.size > CKT_DATA_MAX || args.offset > blob->size ||
		args.size > blob->size - args.offset)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_blob_read_res res = {.data = blob->data + args.offset, .data_len = args.size};
	ckt_blob_read_res_put(ckt_wcall_results(call, ckt_blob_read_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* ---- Modules */

/* The loading of one module. */
struct load {
	struct ckt_long_call_job job;
	struct ckt_wcall *call; /* NULL in a restore */
	uint64_t id, context;
	uint8_t hash[CKT_HASH_SIZE];
	uint32_t keys[CKT_JIT_OPTIONS_MAX], count;
	uint64_t values[CKT_JIT_OPTIONS_MAX];
	struct ckt_jit jit;
	struct ckt_jit_logs *logs;
	const struct ckt_blob *blob; /* owned by the session's blobs */
	unsigned capability;         /* of the module's GPU */
	unsigned device;
	uint64_t unpacked_max, unpacked;
	struct ckt_memory *memory;
	uint64_t device_bytes;
	bool charged;                  /* with these */
	bool again;                    /* the second attempt, after pools released what they keep */
	struct ckt_lease_wait refused; /* memory that can be waited for; 0 bytes: none */
	struct ckt_waiting_call *waiting; /* NULL: it cannot wait */
	CUmodule module;
	CUresult result;
};

static CUresult load_prepare(struct ckt_worker *worker, struct load *load)
{
	/* An image has all of its blobs; only the client may expect one in the cache. */
	const struct ckt_blob *blob = load->call ? ckt_blob_cache_find(&worker->blobs, load->hash)
						 : ckt_blobs_find(&worker->blobs, load->hash);
	if (!blob)
		return CUDA_ERROR_NOT_FOUND;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	for (uint32_t i = 0; i < load->count; i++) {
		CUresult result = ckt_worker_jit_option(&load->jit, load->keys[i], load->values[i]);
		if (result)
			return result;
	}
	ckt_worker_jit_add_logs(&load->jit, load->logs);
	load->blob = blob;
	const struct ckt_worker_device *device = &worker->devices[worker->current->ctx.device];
	load->device = worker->current->ctx.device;
	load->memory = &worker->devices[load->device].memory;
	load->capability = (unsigned)(device->major * 10 + device->minor);
	load->unpacked_max = ckt_budget_left() < CKT_MODULE_UNPACKED_MAX ? ckt_budget_left()
									 : CKT_MODULE_UNPACKED_MAX;
	load->context = worker->current->id;
	return CUDA_SUCCESS;
}

/* False: load->result says why not. */
static bool load_charge(struct load *load)
{
	/* Of an earlier call on this thread. */
	ckt_lease_refused(&load->refused);
	load->device_bytes =
		ckt_module_device_bytes(load->blob->data, load->blob->size, load->capability);
	load->result = ckt_memory_charge(load->memory, load->device_bytes);
	load->charged = !load->result;
	ckt_lease_refused(&load->refused);
	if (load->result)
		ckt_worker_jit_say(load->logs,
			"the module's code and variables exceed what the session may "
			"have (--session-memory)");
	return load->charged;
}

static void load_uncharge(struct load *load)
{
	if (load->charged)
		ckt_memory_uncharge(load->memory, load->device_bytes);
	load->charged = false;
}

static void load_run(struct ckt_long_call_job *job)
{
	struct load *load = (struct load *)job;
	struct ckt_module_check check = {
		.capability = load->capability, .unpacked_max = load->unpacked_max};
	load->result = ckt_module_check(load->blob->data, load->blob->size, &check);
	if (load->result) {
		ckt_warning(
			"cannot load module 0x%llx: %s", (unsigned long long)load->id, check.why);
		ckt_worker_jit_say(load->logs, check.why);
		load_uncharge(load);
		return;
	}
	load->unpacked = check.unpacked;
	if (check.prints)
		ckt_printed_expect(&ckt_worker.printed);
	if (!load->charged && !load_charge(load))
		return;
	load->result = ckt_driver.cuModuleLoadDataEx(
		&load->module, load->blob->data, load->jit.count, load->jit.keys, load->jit.values);
	if (!load->result && (load->result = ckt_loading_whole(load->module)))
		ckt_driver.cuModuleUnload(load->module);
	if (load->result)
		load_uncharge(load);
}

/* Precondition: the load has run and succeeded. */
static CUresult load_enter(
	struct ckt_worker *worker, const struct load *load, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	uint64_t id = load->id;
	uint32_t count = load->count;
	CUresult result = ckt_budget_charge(load->unpacked, "a module, unpacked")
		? CUDA_SUCCESS
		: CUDA_ERROR_OUT_OF_MEMORY;
	if (!result &&
		(result = ckt_objects_add(&worker->objects, id, CKT_KIND_MODULE, false, &object)))
		ckt_budget_uncharge(load->unpacked);
	if (result) {
		ckt_driver.cuModuleUnload(load->module);
		ckt_memory_uncharge(load->memory, load->device_bytes);
		return result;
	}
	object->module.device_bytes = load->device_bytes;
	object->module.host_bytes = load->unpacked;
	object->real = load->module;
	object->context = load->context;
	memcpy(object->module.hash, load->hash, CKT_HASH_SIZE);
	object->module.option_count = count;
	object->module.option_keys = malloc((count + 1) * sizeof *load->keys);
	object->module.option_values = malloc((count + 1) * sizeof *load->values);
	if (!object->module.option_keys || !object->module.option_values) {
		ckt_driver.cuModuleUnload(load->module);
		ckt_objects_remove(&worker->objects, object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(object->module.option_keys, load->keys, count * sizeof *load->keys);
	memcpy(object->module.option_values, load->values, count * sizeof *load->values);
	struct ckt_journal_entry entry = {
		.kind = CKT_JOURNAL_MODULE_LOAD, .id = id, .context = object->context};
	memcpy(entry.hash, load->hash, CKT_HASH_SIZE);
	ckt_limits_grown(worker, ckt_objects_find(&worker->objects, object->context));
	ckt_journal_add(&worker->checkpoint.journal, entry);
	*ret_object = object;
	return CUDA_SUCCESS;
}

CUresult ckt_module_load(struct ckt_worker *worker, uint64_t id, const uint8_t hash[32],
	const uint32_t *keys, const uint64_t *values, uint32_t count,
	struct ckt_object **ret_object)
{
	if (count > CKT_JIT_OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	struct load load = {.id = id, .count = count, .logs = ckt_worker_jit_logs_new(0, 0)};
	memcpy(load.hash, hash, CKT_HASH_SIZE);
	if (count) {
		memcpy(load.keys, keys, count * sizeof *keys);
		memcpy(load.values, values, count * sizeof *values);
	}
	CUresult result = load.logs ? load_prepare(worker, &load) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		load_run(&load.job);
		result = load.result;
	}
	free(load.logs);
	return result ? result : load_enter(worker, &load, ret_object);
}

static void load_answer(struct load *load)
{
	const struct ckt_jit_logs *logs = load->logs;
	free(load->waiting);
	if (!logs) {
		ckt_wcall_finish(load->call, CUDA_ERROR_OUT_OF_MEMORY);
		free(load);
		return;
	}
	struct ckt_module_load_res res = {.status = load->result,
		.info_log = logs->info,
		.info_log_len = (uint32_t)strnlen(logs->info, logs->info_size),
		.error_log = logs->error,
		.error_log_len = (uint32_t)strnlen(logs->error, logs->error_size)};
	ckt_module_load_res_put(
		ckt_wcall_results(load->call, ckt_module_load_res_size(&res)), &res);
	ckt_wcall_finish(load->call, CUDA_SUCCESS);
	free(load->logs);
	free(load);
}

static void load_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct load *load = (struct load *)job;
	struct ckt_object *object;
	if (load->result == CUDA_ERROR_OUT_OF_MEMORY && !load->again &&
		ckt_worker_pools_release(worker, load->device, true)) {
		load->again = true;
		ckt_long_call_submit(worker, job);
		return;
	}
	if (load->result == CUDA_ERROR_OUT_OF_MEMORY) {
		struct ckt_waiting_call *waiting = load->waiting;
		load->waiting = NULL;
		if (ckt_waiting_call_keep_later(load->call, waiting, &load->refused)) {
			free(load->logs);
			free(load);
			return;
		}
	}
	if (!load->result)
		load->result = load_enter(worker, load, &object);
	load_answer(load);
}

int ckt_worker_module_load(struct ckt_wcall *call)
{
	struct ckt_module_load_args args;
	const struct ckt_cursor whole = call->args;
	if (!ckt_module_load_args_get(&call->args, &args) || args.hash_len != CKT_HASH_SIZE ||
		args.option_keys_len != args.option_values_len)
		return CKT_WCALL_GARBAGE;
	struct load *load = calloc(1, sizeof *load);
	if (!load)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*load = (struct load){.job = {.run = load_run, .finish = load_finish},
		.call = call,
		.id = args.id,
		.count = args.option_keys_len,
		.logs = ckt_worker_jit_logs_new(args.info_log_max, args.error_log_max)};
	memcpy(load->hash, args.hash, CKT_HASH_SIZE);
	for (uint32_t i = 0; i < args.option_keys_len; i++) {
		load->keys[i] = ckt_xdr_u32(args.option_keys_xdr, i);
		load->values[i] = ckt_xdr_u64(args.option_values_xdr, i);
	}
	load->result = load->logs ? load_prepare(call->worker, load) : CUDA_ERROR_OUT_OF_MEMORY;
	if (load->result) {
		load_answer(load);
		return CKT_WCALL_LATER;
	}
	load->waiting = ckt_waiting_call_prepare(&whole);
	/* It has waited.  What was granted is this thread's. */
	if (ckt_lease_uses_reserved())
		load_charge(load);
	ckt_long_call_submit(call->worker, &load->job);
	return CKT_WCALL_LATER;
}

static void remove_functions(struct ckt_worker *worker, const struct ckt_object *module)
{
	struct ckt_object *object;
	ckt_heap_look(worker, module);
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));)
		if (object->parent == module->id)
			ckt_objects_remove(&worker->objects, object);
}

static void uncharge_module(struct ckt_worker *worker, uint64_t context_id, uint64_t bytes)
{
	const struct ckt_object *context = ckt_objects_find(&worker->objects, context_id);
	if (context)
		ckt_memory_uncharge(&worker->devices[context->ctx.device].memory, bytes);
}

void ckt_module_unload(struct ckt_worker *worker, struct ckt_object *module)
{
	remove_functions(worker, module);
	ckt_long_call_drain(worker, -1);
	ckt_driver.cuModuleUnload(module->real);
	uncharge_module(worker, module->context, module->module.device_bytes);
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_MODULE_UNLOAD, .id = module->id});
	ckt_objects_remove(&worker->objects, module);
}

/* The unloading of one module that no look-up finds any more. */
struct unload {
	struct ckt_long_call_job job;
	struct ckt_wcall *call;
	uint64_t id, context, device_bytes;
	CUmodule module;
};

static void unload_run(struct ckt_long_call_job *job)
{
	ckt_driver.cuModuleUnload(((struct unload *)job)->module);
}

static void unload_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct unload *unload = (struct unload *)job;
	uncharge_module(worker, unload->context, unload->device_bytes);
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_MODULE_UNLOAD, .id = unload->id});
	ckt_wcall_finish(unload->call, CUDA_SUCCESS);
	free(unload);
}

/*
 * The driver waits for the GPU first.  The GPU may wait for a reply of the client that comes after
 * this command, so the unload runs beside the executor.
 */
int ckt_worker_module_unload(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_module_unload_args args;
	if (!ckt_module_unload_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *module =
		ckt_objects_find_kind(&worker->objects, args.id, CKT_KIND_MODULE);
	CUcontext context;
	if (!module || ckt_object_context(worker, module->context, &context))
		return CUDA_ERROR_INVALID_HANDLE;
	struct unload *unload = malloc(sizeof *unload);
	if (!unload)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*unload = (struct unload){
		.job = {.run = unload_run, .finish = unload_finish, .context = context},
		.call = call,
		.id = args.id,
		.module = module->real,
		.context = module->context,
		.device_bytes = module->module.device_bytes};
	remove_functions(worker, module);
	ckt_objects_remove(&worker->objects, module);
	ckt_long_call_submit(worker, &unload->job);
	return CKT_WCALL_LATER;
}

/* ---- Functions */

CUresult ckt_function_get(struct ckt_worker *worker, struct ckt_object *module, uint64_t id,
	const char *name, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	CUfunction function;
	CUresult result = ckt_driver.cuModuleGetFunction(&function, module->real, name);
	if (!result)
		result = ckt_objects_add(&worker->objects, id, CKT_KIND_FUNCTION, false, &object);
	if (result)
		return result;
	object->real = function;
	object->context = module->context;
	object->parent = module->id;
	int local = 0;
	if (ckt_driver.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function) ==
			CUDA_SUCCESS &&
		local > 0)
		object->function.local_bytes = (uint32_t)local;
	ckt_budget_add(strlen(name));
	object->function.name = strdup(name);
	if (!object->function.name) {
		ckt_objects_remove(&worker->objects, object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_object = object;
	return CUDA_SUCCESS;
}

/* Copies a name; NULL if it contains a NUL. */
static char *take_name(const char *name, uint32_t size)
{
	return memchr(name, 0, size) ? NULL : strndup(name, size);
}

static void describe_function(struct ckt_wcall *call, CUfunction function)
{
	static uint32_t offsets[PARAMS_MAX], sizes[PARAMS_MAX]; /* used only by the executor */
	uint32_t results[CU_FUNC_ATTRIBUTE_MAX], values[CU_FUNC_ATTRIBUTE_MAX], count = 0;
	size_t offset, size;
	while (count < PARAMS_MAX && ckt_driver.cuFuncGetParamInfo &&
		ckt_driver.cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_SUCCESS) {
		offsets[count] = (uint32_t)offset;
		sizes[count++] = (uint32_t)size;
	}
	for (int a = 0; a < CU_FUNC_ATTRIBUTE_MAX; a++) {
		int value = 0;
		results[a] = (uint32_t)ckt_driver.cuFuncGetAttribute(
			&value, (CUfunction_attribute)a, function);
		values[a] = (uint32_t)value;
	}
	struct ckt_module_get_function_res res = {.param_offsets = offsets,
		.param_offsets_len = count,
		.param_sizes = sizes,
		.param_sizes_len = count,
		.attribute_results = results,
		.attribute_results_len = CU_FUNC_ATTRIBUTE_MAX,
		.attribute_values = values,
		.attribute_values_len = CU_FUNC_ATTRIBUTE_MAX};
	ckt_module_get_function_res_put(
		ckt_wcall_results(call, ckt_module_get_function_res_size(&res)), &res);
}

int ckt_worker_module_get_function(struct ckt_wcall *call)
{
	struct ckt_module_get_function_args args;
	char *name;
	if (!ckt_module_get_function_args_get(&call->args, &args) ||
		!(name = take_name(args.name, args.name_len)))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *module = ckt_objects_find_kind(
				  &call->worker->objects, args.module, CKT_KIND_MODULE),
			  *object;
	CUresult result = module ? ckt_function_get(call->worker, module, args.id, name, &object)
				 : CUDA_ERROR_INVALID_HANDLE;
	free(name);
	if (!result)
		describe_function(call, object->real);
	return result;
}

int ckt_module_note_seen(struct ckt_object *module, const char *name)
{
	uint32_t count = module->module.seen_count;
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(module->module.seen[i], name))
			return 0;
	/* The array doubles when its count is a power of two. */
	if (!(count & (count - 1))) {
		char **larger = reallocarray(
			module->module.seen, count ? 2 * (size_t)count : 1, sizeof *larger);
		if (!larger)
			return -ENOMEM;
		module->module.seen = larger;
	}
	module->module.seen[count] = strdup(name);
	if (!module->module.seen[count])
		return -ENOMEM;
	module->module.seen_count++;
	return 0;
}

/* Takes over the name. */
static CUresult find_variable(struct ckt_worker *worker, uint64_t id, char *name,
	CUdeviceptr *ret_address, size_t *ret_size)
{
	struct ckt_object *module = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_MODULE);
	CUresult result = module
		? ckt_driver.cuModuleGetGlobal_v2(ret_address, ret_size, module->real, name)
		: CUDA_ERROR_INVALID_HANDLE;
	if (!result && ckt_module_note_seen(module, name))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	free(name);
	return result;
}

int ckt_worker_module_get_global(struct ckt_wcall *call)
{
	struct ckt_module_get_global_args args;
	char *name;
	if (!ckt_module_get_global_args_get(&call->args, &args) ||
		!(name = take_name(args.name, args.name_len)))
		return CKT_WCALL_GARBAGE;
	CUdeviceptr address;
	size_t size;
	CUresult result = find_variable(call->worker, args.module, name, &address, &size);
	if (result)
		return result;
	struct ckt_module_get_global_res res = {.address = address, .size = size};
	ckt_module_get_global_res_put(
		ckt_wcall_results(call, ckt_module_get_global_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_module_get_variable(struct ckt_wcall *call)
{
	struct ckt_module_get_variable_args args;
	char *name;
	if (!ckt_module_get_variable_args_get(&call->args, &args) ||
		!(name = take_name(args.name, args.name_len)))
		return CKT_WCALL_GARBAGE;
	CUdeviceptr address;
	size_t size;
	CUresult result = find_variable(call->worker, args.module, name, &address, &size);
	if (result)
		return result;
	unsigned managed = 0;
	if (ckt_driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address))
		managed = 0;
	struct ckt_module_get_variable_res res = {
		.address = address, .size = size, .managed = managed != 0};
	ckt_module_get_variable_res_put(
		ckt_wcall_results(call, ckt_module_get_variable_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* Replies with names from index `first` on, each with its NUL, as many as fit into one reply. */
int ckt_worker_module_list_functions(struct ckt_wcall *call)
{
	struct ckt_module_list_functions_args args;
	if (!ckt_module_list_functions_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUmodule module;
	unsigned count = 0;
	CUresult result = ckt_object_module(call->worker, args.module, &module);
	if (!result)
		result = ckt_driver.cuModuleGetFunctionCount
			? ckt_driver.cuModuleGetFunctionCount(&count, module)
			: CKT_WORKER_UNSUPPORTED(
				  "cuModuleGetFunctionCount with the server's driver");
	if (result)
		return result;
	CUfunction *functions = calloc(count + 1, sizeof *functions);
	char *names = malloc(CKT_DATA_MAX);
	result = functions && names
		? ckt_driver.cuModuleEnumerateFunctions(functions, count, module)
		: CUDA_ERROR_OUT_OF_MEMORY;
	uint32_t size = 0;
	for (unsigned i = args.first; i < count && !result; i++) {
		const char *name;
		result = ckt_driver.cuFuncGetName(&name, functions[i]);
		if (result)
			break;
		size_t length = strlen(name) + 1;
		if (length > CKT_DATA_MAX - size)
			break;
		memcpy(names + size, name, length);
		size += (uint32_t)length;
	}
	if (!result) {
		struct ckt_module_list_functions_res res = {
			.total = count, .names = names, .names_len = size};
		ckt_module_list_functions_res_put(
			ckt_wcall_results(call, ckt_module_list_functions_res_size(&res)), &res);
	}
	free(functions);
	free(names);
	return result;
}

CUresult ckt_function_set(struct ckt_object *object, uint32_t attribute, int32_t value)
{
	CUresult result =
		ckt_driver.cuFuncSetAttribute(object->real, (CUfunction_attribute)attribute, value);
	if (result)
		return result;
	for (uint32_t i = 0; i < object->function.set_count; i++)
		if (object->function.sets[i].attribute == attribute) {
			object->function.sets[i].value = value;
			return CUDA_SUCCESS;
		}
	struct ckt_function_set *larger =
		reallocarray(object->function.sets, object->function.set_count + 1, sizeof *larger);
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->function.sets = larger;
	object->function.sets[object->function.set_count++] =
		(struct ckt_function_set){.attribute = attribute, .value = value};
	return CUDA_SUCCESS;
}

int ckt_worker_function_set_attribute(struct ckt_wcall *call)
{
	struct ckt_function_set_attribute_args args;
	if (!ckt_function_set_attribute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.function, CKT_KIND_FUNCTION);
	return object ? ckt_function_set(object, args.attribute, args.value)
		      : CUDA_ERROR_INVALID_HANDLE;
}

int ckt_worker_function_get_attribute(struct ckt_wcall *call)
{
	struct ckt_function_get_attribute_args args;
	struct ckt_function_get_attribute_res res = {0};
	CUfunction function;
	if (!ckt_function_get_attribute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_function(call->worker, args.function, &function);
	if (!result)
		result = ckt_driver.cuFuncGetAttribute(
			&res.value, (CUfunction_attribute)args.attribute, function);
	if (result)
		return result;
	ckt_function_get_attribute_res_put(
		ckt_wcall_results(call, ckt_function_get_attribute_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_function_set_cache_config(struct ckt_wcall *call)
{
	struct ckt_function_set_cache_config_args args;
	if (!ckt_function_set_cache_config_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.function, CKT_KIND_FUNCTION);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = ckt_driver.cuFuncSetCacheConfig(object->real, (CUfunc_cache)args.config);
	if (!result) {
		object->function.cache_config_set = true;
		object->function.cache_config = args.config;
	}
	return result;
}
