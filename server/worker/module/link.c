/* SPDX-License-Identifier: Apache-2.0 */
/* The linker: many inputs and one output, which becomes a blob. */
#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "base/log.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "server/worker/module/jit.h"
#include "server/worker/module/module_check.h"
#include "server/worker/worker.h"

/*
 * The inputs of one link.  In the message, input_names holds a name with its NUL for every input.
 */
struct link {
	struct ckt_long_call_job job;
	struct ckt_wcall *call;
	struct ckt_jit jit;
	struct ckt_jit_logs *logs;
	uint64_t unpacked_max;
	uint32_t count;
	struct {
		CUjitInputType type;
		const struct ckt_blob *blob; /* owned by the session's blobs */
		const char *name;            /* points into names */
	} * inputs;
	char *names;
	uint8_t *cubin; /* a copy */
	size_t size;
	CUresult result;
};

/* The linker reads a whole input for any GPU, so the check is not limited to one GPU. */
static CUresult link_check(const struct link *link)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < link->count && !result; i++) {
		struct ckt_module_check check = {.unpacked_max = link->unpacked_max};
		const struct ckt_blob *blob = link->inputs[i].blob;
		result = ckt_module_check_input(
			link->inputs[i].type, blob->data, blob->size, &check);
		if (result) {
			ckt_warning("cannot link %.64s: %s", link->inputs[i].name, check.why);
			ckt_worker_jit_say(link->logs, check.why);
		}
	}
	return result;
}

static CUresult link_inputs(const struct link *link, CUlinkState state)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < link->count && !result; i++) {
		const struct ckt_blob *blob = link->inputs[i].blob;
		CUjitInputType type = link->inputs[i].type;
		/* The size of PTX includes its NUL. */
		size_t size = blob->size;
		if (type == CU_JIT_INPUT_PTX && size && blob->data[size - 1])
			size++;
		result = ckt_driver.cuLinkAddData_v2(
			state, type, blob->data, size, link->inputs[i].name, 0, NULL, NULL);
	}
	return result;
}

static void link_run(struct ckt_long_call_job *job)
{
	struct link *link = (struct link *)job;
	CUlinkState state;
	link->result = link_check(link);
	if (link->result)
		return;
	link->result = ckt_driver.cuLinkCreate_v2(
		link->jit.count, link->jit.keys, link->jit.values, &state);
	if (link->result)
		return;
	void *cubin = NULL;
	link->result = link_inputs(link, state);
	if (!link->result)
		link->result = ckt_driver.cuLinkComplete(state, &cubin, &link->size);
	if (!link->result) {
		link->cubin = malloc(link->size + 1);
		if (link->cubin)
			memcpy(link->cubin, cubin, link->size);
		else
			link->result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	ckt_driver.cuLinkDestroy(state);
}

static void link_finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct link *link = (struct link *)job;
	const struct ckt_jit_logs *logs = link->logs;
	if (!logs) {
		ckt_wcall_finish(link->call, CUDA_ERROR_OUT_OF_MEMORY);
		free(link);
		return;
	}
	uint8_t hash[CKT_HASH_SIZE] = {0};
	if (!link->result && ckt_blobs_add(&worker->blobs, link->cubin, link->size, hash))
		link->result = CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_link_res res = {.status = link->result,
		.hash = hash,
		.hash_len = CKT_HASH_SIZE,
		.size = link->size,
		.info_log = logs->info,
		.info_log_len = (uint32_t)strnlen(logs->info, logs->info_size),
		.error_log = logs->error,
		.error_log_len = (uint32_t)strnlen(logs->error, logs->error_size)};
	ckt_link_res_put(ckt_wcall_results(link->call, ckt_link_res_size(&res)), &res);
	ckt_wcall_finish(link->call, CUDA_SUCCESS);
	free(link->logs);
	free(link->inputs);
	free(link->names);
	free(link->cubin);
	free(link);
}

/* Copies the arguments, because the message ends before the link runs. */
static CUresult link_prepare(
	struct ckt_worker *worker, struct link *link, const struct ckt_link_args *args)
{
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!link->logs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < args->option_keys_len; i++) {
		CUresult result =
			ckt_worker_jit_option(&link->jit, ckt_xdr_u32(args->option_keys_xdr, i),
				ckt_xdr_u64(args->option_values_xdr, i));
		if (result)
			return result;
	}
	ckt_worker_jit_add_logs(&link->jit, link->logs);
	link->inputs = calloc((size_t)args->input_types_len + 1, sizeof *link->inputs);
	link->names = malloc((size_t)args->input_names_len + 1);
	if (!link->inputs || !link->names)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(link->names, args->input_names, args->input_names_len);
	const char *name = link->names, *names_end = name + args->input_names_len;
	for (uint32_t i = 0; i < args->input_types_len; i++) {
		const struct ckt_blob *blob = ckt_blobs_find(
			&worker->blobs, args->input_hashes + (size_t)i * CKT_HASH_SIZE);
		if (!blob)
			return CUDA_ERROR_NOT_FOUND;
		const char *end = memchr(name, 0, (size_t)(names_end - name));
		link->inputs[i].type = (CUjitInputType)ckt_xdr_u32(args->input_types_xdr, i);
		link->inputs[i].blob = blob;
		link->inputs[i].name = end ? name : "input";
		if (end)
			name = end + 1;
	}
	link->count = args->input_types_len;
	link->unpacked_max = ckt_budget_left() < CKT_MODULE_UNPACKED_MAX ? ckt_budget_left()
									 : CKT_MODULE_UNPACKED_MAX;
	return CUDA_SUCCESS;
}

int ckt_worker_link(struct ckt_wcall *call)
{
	struct ckt_link_args args;
	if (!ckt_link_args_get(&call->args, &args) ||
		args.option_keys_len != args.option_values_len ||
		args.option_keys_len > CKT_JIT_OPTIONS_MAX ||
		args.input_hashes_len != (uint64_t)args.input_types_len * CKT_HASH_SIZE)
		return CKT_WCALL_GARBAGE;
	struct link *link = calloc(1, sizeof *link);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*link = (struct link){.job = {.run = link_run, .finish = link_finish},
		.call = call,
		.logs = ckt_worker_jit_logs_new(args.info_log_max, args.error_log_max)};
	link->result = link_prepare(call->worker, link, &args);
	if (link->result)
		link_finish(call->worker, &link->job);
	else
		ckt_long_call_submit(call->worker, &link->job);
	return CKT_WCALL_LATER;
}
