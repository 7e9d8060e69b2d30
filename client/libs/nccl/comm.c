/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators; see nccl.h. */
#include "client/libs/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"

enum { ASK_AGAIN_NS = 1000000000 };

static struct ckt_lib_opened opened;

/* Contexts whose device has NCCL's modules: the object stays as long as the context. */
static CKT_LOCK(lock);
static struct {
	uint64_t context;
} * loaded;
static size_t loaded_count;

ncclResult_t ckt_nccl_status(CUresult result)
{
	switch ((int)result) {
	case CUDA_SUCCESS:
		return ncclSuccess;
	case CUDA_ERROR_INVALID_VALUE:
	case CUDA_ERROR_INVALID_HANDLE:
		return ncclInvalidArgument;
	case CUDA_ERROR_NOT_SUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
		return ncclInvalidUsage;
	case CUDA_ERROR_OUT_OF_MEMORY:
	case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
		return ncclSystemError;
	default:
		return ncclUnhandledCudaError;
	}
}

int ckt_nccl_unsupported(const char *name, bool *once)
{
	const struct ckt_client_table *client = ckt_client();
	if (client)
		client->unsupported(name, once);
	return ncclInvalidUsage;
}

ncclResult_t ckt_nccl_enter(const struct ckt_client_table **ret_client)
{
	CUresult result = ckt_lib_open(&opened, "nccl",
		CKT_LIB_PROC(CKT_LIB_NCCL, CKT_NCCL_PROC_NCCL_OPEN), NCCL_VERSION_CODE);
	*ret_client = ckt_client();
	return ckt_nccl_status(result);
}

uint32_t ckt_nccl_version(void)
{
	return opened.version;
}

struct ckt_nccl_handle *ckt_nccl_handle(ncclComm_t comm)
{
	struct ckt_nccl_handle *handle = (struct ckt_nccl_handle *)comm;
	return handle && handle->object.magic == CKT_LIB_OBJECT_MAGIC &&
			handle->object.lib == CKT_LIB_NCCL
		? handle
		: NULL;
}

/* ---- Their life here */

static char *copy_text(const char *text)
{
	return text ? strndup(text, CKT_NCCL_NAME_MAX) : NULL;
}

static void handle_free(struct ckt_nccl_handle *handle)
{
	const struct ckt_client_table *client = ckt_client();
	handle->object.magic = 0;
	ckt_nccl_registrations_drop(handle);
	if (handle->object.id && client)
		client->object_drop(handle->object.id);
	free((char *)handle->config.net);
	free((char *)handle->config.name);
	free(handle->peers);
	free(handle);
}

/* Config: the program's, of its own NCCL's size; NULL: the parent's, or none. */
static ncclResult_t take_config(struct ckt_nccl_handle *made, const ncclConfig_t *config,
	const struct ckt_nccl_handle *parent)
{
	static const struct ckt_nccl_config none = {.magic = CKT_NCCL_CONFIG_MAGIC};
	const struct ckt_nccl_config *from = config ? (const struct ckt_nccl_config *)config
		: parent                            ? &parent->config
						    : &none;
	size_t bytes = config ? from->size : parent ? sizeof *from : 0;
	uint32_t numbers[CKT_NCCL_NUMBERS];
	if (config &&
		(bytes < offsetof(struct ckt_nccl_config, cga_cluster_size) ||
			from->magic != CKT_NCCL_CONFIG_MAGIC))
		return ncclInvalidArgument;
	ckt_nccl_config_numbers(from, bytes, numbers);
	for (unsigned i = 0; i < CKT_NCCL_NUMBERS; i++)
		memcpy((uint8_t *)&made->config + ckt_nccl_numbers[i], &numbers[i],
			sizeof numbers[i]);
	made->config.size = sizeof made->config;
	made->config.magic = CKT_NCCL_CONFIG_MAGIC;
	made->config.net = bytes >= offsetof(struct ckt_nccl_config, split_share)
		? copy_text(from->net)
		: NULL;
	made->config.name =
		bytes >= offsetof(struct ckt_nccl_config, collnet) ? copy_text(from->name) : NULL;
	const char *set = getenv("NCCL_COMM_BLOCKING");
	if (made->config.blocking != 0 && made->config.blocking != 1 &&
		made->config.blocking != CKT_NCCL_CONFIG_UNSET)
		return ncclInvalidArgument;
	/* The variable overrules the program, in NCCL too. */
	if (set && (!strcmp(set, "0") || !strcmp(set, "1")))
		made->config.blocking = set[0] - '0';
	if (made->config.blocking == CKT_NCCL_CONFIG_UNSET)
		made->config.blocking = 1;
	made->blocking = made->config.blocking != 0;
	return ncclSuccess;
}

static ncclResult_t handle_new(const struct ckt_client_table *client, const ncclConfig_t *config,
	const struct ckt_nccl_handle *parent, struct ckt_nccl_handle **ret_handle)
{
	struct ckt_nccl_handle *made = calloc(1, sizeof *made);
	if (!made)
		return ncclSystemError;
	made->object = (struct ckt_lib_object){
		.lib = CKT_LIB_NCCL, .context = client->context(), .id = client->object_make()};
	made->device = client->device();
	made->ranks = made->rank = -1;
	ncclResult_t status = made->object.id ? take_config(made, config, parent) : ncclSystemError;
	if (status) {
		handle_free(made);
		return status;
	}
	made->object.magic = CKT_LIB_OBJECT_MAGIC;
	*ret_handle = made;
	return ncclSuccess;
}

void ckt_nccl_forget(struct ckt_nccl_handle *handle)
{
	const struct ckt_client_table *client = ckt_client();
	struct ckt_nccl_end_args args = {.comm = handle->object.id, .how = CKT_NCCL_FORGET};
	struct ckt_nccl_end_res res;
	uint64_t before = client->context();
	client->use_context(handle->object.context);
	CKT_NCCL_WAIT(client, NCCL_END, nccl_end, &args, &res, CKT_CALL_F_NUMBERED);
	client->use_context(before);
	handle_free(handle);
}

/* ---- Making */

/* Waits once a context. */
static ncclResult_t load(const struct ckt_client_table *client)
{
	uint64_t context = client->context();
	ncclResult_t status = ncclSuccess;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < loaded_count; i++)
		if (loaded[i].context == context)
			goto out;
	struct ckt_nccl_load_args args = {.id = client->object_make()};
	struct ckt_nccl_load_res res = {0};
	status = ncclSystemError;
	void *grown = args.id ? reallocarray(loaded, loaded_count + 1, sizeof *loaded) : NULL;
	if (!grown)
		goto out;
	loaded = grown;
	CUresult result =
		CKT_NCCL_WAIT(client, NCCL_LOAD, nccl_load, &args, &res, CKT_CALL_F_NUMBERED);
	status = ckt_nccl_answer(result, res.status);
	if (status)
		client->object_drop(args.id);
	else
		loaded[loaded_count++].context = context;
out:
	pthread_mutex_unlock(&lock);
	return status;
}

/* Sends what is to be made, whose ids and kind args have. */
static ncclResult_t send_comm(const struct ckt_client_table *client, struct ckt_nccl_handle *made,
	struct ckt_nccl_comm_args *args)
{
	uint32_t numbers[CKT_NCCL_NUMBERS];
	struct ckt_call call;
	int status = 0;
	ckt_nccl_config_numbers(&made->config, sizeof made->config, numbers);
	args->id = made->object.id;
	args->identity = made->identity;
	args->identity_len = CKT_NCCL_ID_BYTES;
	args->config = numbers;
	args->config_len = CKT_NCCL_NUMBERS;
	args->net = made->config.net ? made->config.net : "";
	args->net_len = (uint32_t)strlen(args->net);
	args->name = made->config.name ? made->config.name : "";
	args->name_len = (uint32_t)strlen(args->name);
	CUresult result =
		CKT_NCCL_BEGIN(client, &call, NCCL_COMM, nccl_comm, args, CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_nccl_comm_args_put(call.p, args);
		result = client->queue_status(&call, &status);
	}
	return ckt_nccl_answer(result, status);
}

/* The communicator is on its way: for now, or for the group's end. */
static ncclResult_t on_its_way(struct ckt_nccl_handle *made, ncclComm_t *place)
{
	*place = (ncclComm_t)made;
	if (ckt_nccl_collects())
		return ckt_nccl_collect_comm(made, place);
	if (!made->blocking)
		return ncclInProgress;
	return ckt_nccl_settle(&made, &place, 1);
}

static ncclResult_t make_of_ids(ncclComm_t *place, int ranks, int rank, int id_count,
	const ncclUniqueId *ids, const ncclConfig_t *config)
{
	const struct ckt_client_table *client;
	struct ckt_nccl_handle *made;
	if (!place || ranks < 1 || rank < 0 || rank >= ranks || !ids || id_count < 1 ||
		id_count > ranks || id_count > CKT_NCCL_IDS_MAX)
		return ncclInvalidArgument;
	*place = NULL;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (!status)
		status = load(client);
	if (!status)
		status = handle_new(client, config, NULL, &made);
	if (status)
		return status;
	made->ranks = ranks;
	made->rank = rank;
	memcpy(made->identity, ids, CKT_NCCL_ID_BYTES);
	struct ckt_nccl_comm_args args = {.ranks = ranks,
		.rank = rank,
		.kind = CKT_NCCL_INIT,
		.ids = (const uint8_t *)ids,
		.ids_len = (uint32_t)id_count * CKT_NCCL_ID_BYTES};
	status = send_comm(client, made, &args);
	if (status) {
		handle_free(made);
		return status;
	}
	return on_its_way(made, place);
}

/* What came of one that was waited for. */
static ncclResult_t settled(struct ckt_nccl_handle *made, ncclComm_t *place, const uint8_t *words)
{
	ncclResult_t status = (ncclResult_t)ckt_xdr_u32(words, 0);
	int ranks = (int)ckt_xdr_u32(words, 1), rank = (int)ckt_xdr_u32(words, 2);
	/*
	 * What the program asked for is what it gets; of a split or a shrink only the server knows.
	 */
	bool sound = ranks >= 1 && ranks <= CKT_NCCL_RANKS_MAX && rank >= 0 && rank < ranks &&
		(made->ranks < 1 || (ranks == made->ranks && rank == made->rank));
	bool none = ranks == -1 && made->ranks < 1;
	if (!status && !sound && !none)
		status = ncclInternalError;
	made->ranks = sound ? ranks : -1;
	made->rank = sound ? rank : -1;
	if (!status && made->ranks > 0) {
		made->peers = calloc((size_t)made->ranks, 1);
		status = made->peers ? ncclSuccess : ncclSystemError;
	}
	made->state = status || made->ranks < 1 ? CKT_NCCL_FAILED : CKT_NCCL_READY;
	if (made->state == CKT_NCCL_FAILED && place) {
		/* Of a split: without a colour there is none. */
		*place = NULL;
		ckt_nccl_forget(made);
	}
	return status;
}

/* What is not known to be made is not. */
static ncclResult_t none_settled(struct ckt_nccl_handle *const *made, ncclComm_t *const *places,
	uint32_t count, ncclResult_t status)
{
	uint8_t words[4 * CKT_NCCL_SETTLE_WORDS];
	ckt_put_u32(ckt_put_u32(ckt_put_u32(ckt_put_u32(words, (uint32_t)status), (uint32_t)-1),
			    (uint32_t)-1),
		0);
	for (uint32_t i = 0; i < count; i++)
		settled(made[i], places ? places[i] : NULL, words);
	return status;
}

/* Asks about those of one context, as many as a message holds. */
static ncclResult_t settle_some(const struct ckt_client_table *client,
	struct ckt_nccl_handle *const *made, ncclComm_t *const *places, uint32_t count)
{
	uint64_t ids[CKT_NCCL_SETTLE_MAX];
	struct ckt_nccl_settle_args args = {.comms = ids, .comms_len = count};
	struct ckt_call call;
	struct ckt_reply reply;
	struct ckt_nccl_settle_res res;
	ncclResult_t first = ncclSuccess;
	for (uint32_t i = 0; i < count; i++)
		ids[i] = made[i]->object.id;
	CUresult result = CKT_NCCL_BEGIN(client, &call, NCCL_SETTLE, nccl_settle, &args, 0);
	if (!result) {
		call.p = ckt_nccl_settle_args_put(call.p, &args);
		result = client->wait(&call, &reply);
	}
	if (result)
		return none_settled(made, places, count, ckt_nccl_status(result));
	bool whole = ckt_nccl_settle_res_get(&reply.results, &res) &&
		res.states_len == count * CKT_NCCL_SETTLE_WORDS;
	/* The words lie in the reply, and forgetting asks again. */
	uint8_t *words = whole ? malloc(4 * (size_t)res.states_len + 1) : NULL;
	if (words)
		memcpy(words, res.states_xdr, 4 * (size_t)res.states_len);
	client->release(&reply);
	for (uint32_t i = 0; words && i < count; i++) {
		ncclResult_t status = settled(made[i], places ? places[i] : NULL,
			words + 4 * (size_t)CKT_NCCL_SETTLE_WORDS * i);
		if (!first)
			first = status;
	}
	if (!words)
		return none_settled(made, places, count, ncclInternalError);
	free(words);
	return first;
}

ncclResult_t ckt_nccl_settle(
	struct ckt_nccl_handle *const *made, ncclComm_t *const *places, size_t count)
{
	const struct ckt_client_table *client = ckt_client();
	uint64_t before = client->context();
	ncclResult_t first = ncclSuccess;
	for (size_t i = 0, some; i < count; i += some) {
		/* Those that one server has are asked for together. */
		unsigned node = client->node(made[i]->object.context);
		for (some = 1; i + some < count && some < CKT_NCCL_SETTLE_MAX &&
			client->node(made[i + some]->object.context) == node;)
			some++;
		client->use_context(made[i]->object.context);
		ncclResult_t status =
			settle_some(client, made + i, places ? places + i : NULL, (uint32_t)some);
		if (!first)
			first = status;
	}
	client->use_context(before);
	return first;
}

CKT_LIB_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config)
{
	return ckt_nccl_note(make_of_ids(newcomm, nranks, myrank, nId, commIds, config));
}

CKT_LIB_EXPORT ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	return ckt_nccl_note(make_of_ids(comm, nranks, rank, 1, &commId, config));
}

CKT_LIB_EXPORT ncclResult_t ncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	return ckt_nccl_note(make_of_ids(comm, nranks, rank, 1, &commId, NULL));
}

/* A device once only, and one that there is. */
static ncclResult_t contexts_of(const struct ckt_client_table *client, int count,
	const int *devices, uint64_t *ret_contexts)
{
	for (int i = 0; i < count; i++) {
		if (client->device_context(devices ? devices[i] : i, &ret_contexts[i]))
			return ncclUnhandledCudaError;
		for (int k = 0; k < i; k++)
			if (ret_contexts[k] == ret_contexts[i])
				return ncclInvalidUsage;
	}
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	const struct ckt_client_table *client;
	ncclUniqueId id;
	if (!comm || ndev < 1)
		return ckt_nccl_note(ncclInvalidArgument);
	ncclResult_t status = ckt_nccl_enter(&client);
	uint64_t *contexts = status ? NULL : calloc((size_t)ndev, sizeof *contexts);
	if (!contexts)
		return ckt_nccl_note(status ? status : ncclSystemError);
	uint64_t before = client->context();
	status = contexts_of(client, ndev, devlist, contexts);
	if (!status)
		status = ncclGetUniqueId(&id);
	if (!status) {
		ncclGroupStart();
		for (int i = 0; i < ndev; i++) {
			client->use_context(contexts[i]);
			ncclCommInitRank(&comm[i], ndev, id, i);
		}
		client->use_context(before);
		status = ncclGroupEnd();
	}
	free(contexts);
	return ckt_nccl_note(status);
}

static ncclResult_t make_of_parent(ncclComm_t comm, ncclComm_t *place, const ncclConfig_t *config,
	struct ckt_nccl_comm_args *args, const void *key, size_t key_bytes)
{
	const struct ckt_client_table *client;
	struct ckt_nccl_handle *parent, *made;
	if (!place)
		return ncclInvalidArgument;
	*place = NULL;
	ncclResult_t status = ckt_nccl_ready(comm, &parent);
	if (!status)
		status = ckt_nccl_enter(&client);
	if (status)
		return status;
	uint64_t before = client->context();
	client->use_context(parent->object.context);
	status = handle_new(client, config, parent, &made);
	if (!status) {
		ckt_nccl_identity_derive(parent->identity, parent->children++, args->kind, key,
			key_bytes, made->identity);
		args->parent = parent->object.id;
		args->ranks = args->rank = -1;
		status = send_comm(client, made, args);
		if (status)
			handle_free(made);
	}
	client->use_context(before);
	return status ? status : on_its_way(made, place);
}

CKT_LIB_EXPORT ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct ckt_nccl_comm_args args = {.kind = CKT_NCCL_SPLIT, .color = color, .key = key};
	/*
	 * Any colour but NCCL_SPLIT_NOCOLOR is one, negative ones too, as on an H200 with NCCL
	 * 2.28.
	 */
	return ckt_nccl_note(make_of_parent(comm, newcomm, config, &args, &color, sizeof color));
}

CKT_LIB_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	if (!excludeRanksList || excludeRanksCount < 1 || excludeRanksCount > CKT_NCCL_EXCLUDED_MAX)
		return ckt_nccl_note(ncclInvalidArgument);
	struct ckt_nccl_comm_args args = {.kind = CKT_NCCL_SHRINK,
		.flags = shrinkFlags,
		.excluded = (const uint32_t *)excludeRanksList,
		.excluded_len = (uint32_t)excludeRanksCount};
	return ckt_nccl_note(make_of_parent(comm, newcomm, config, &args, excludeRanksList,
		sizeof(int) * (size_t)excludeRanksCount));
}

/* ---- Their ends */

static ncclResult_t end(ncclComm_t comm, enum ckt_nccl_how how, int flags)
{
	const struct ckt_client_table *client;
	struct ckt_nccl_handle *handle = ckt_nccl_handle(comm);
	struct ckt_nccl_end_res res = {0};
	/* As the genuine library does. */
	if (!comm)
		return ncclSuccess;
	if (!handle)
		return ncclInvalidArgument;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (status)
		return status;
	uint64_t before = client->context();
	client->use_context(handle->object.context);
	struct ckt_nccl_end_args args = {
		.comm = handle->object.id, .how = (uint32_t)how, .flags = flags};
	CUresult result =
		CKT_NCCL_WAIT(client, NCCL_END, nccl_end, &args, &res, CKT_CALL_F_NUMBERED);
	client->use_context(before);
	status = ckt_nccl_answer(result, res.status);
	if (how == CKT_NCCL_DESTROY || how == CKT_NCCL_ABORT)
		handle_free(handle);
	return status;
}

CKT_LIB_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return end(comm, CKT_NCCL_FINALIZE, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	return end(comm, CKT_NCCL_DESTROY, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return end(comm, CKT_NCCL_ABORT, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	return comm ? end(comm, CKT_NCCL_REVOKE, revokeFlags) : ncclInvalidArgument;
}

/* ---- What is known of them */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/*
 * A watchdog asks ten times a second and more: one that waits at the server once a second hears of
 * an error as well.
 */
static ncclResult_t ask(struct ckt_nccl_handle *handle, ncclResult_t *ret_error)
{
	const struct ckt_client_table *client;
	struct ckt_ncclCommGetAsyncError_args args = {.comm = handle->object.id};
	struct ckt_ncclCommGetAsyncError_res res = {0};
	*ret_error = ncclSuccess;
	int64_t now = now_ns();
	if (handle->blocking && handle->state == CKT_NCCL_READY && handle->asked_ns &&
		now - handle->asked_ns < ASK_AGAIN_NS)
		return ncclSuccess;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (status)
		return status;
	uint64_t before = client->context();
	client->use_context(handle->object.context);
	CUresult result =
		CKT_NCCL_WAIT(client, NCCLCOMMGETASYNCERROR, ncclCommGetAsyncError, &args, &res, 0);
	client->use_context(before);
	status = ckt_nccl_answer(result, res.status);
	if (status)
		return status;
	*ret_error = (ncclResult_t)res.error;
	handle->asked_ns = res.error ? 0 : now;
	if (res.error != ncclInProgress && handle->state == CKT_NCCL_PENDING) {
		status = ckt_nccl_settle(&handle, NULL, 1);
		/* It has ended as what it says. */
		*ret_error = status;
	}
	return ncclSuccess;
}

ncclResult_t ckt_nccl_ready(ncclComm_t comm, struct ckt_nccl_handle **ret_handle)
{
	struct ckt_nccl_handle *handle = ckt_nccl_handle(comm);
	ncclResult_t error;
	if (!handle)
		return ncclInvalidArgument;
	if (handle->state == CKT_NCCL_PENDING && !ask(handle, &error) && error == ncclInProgress)
		return ncclInvalidArgument;
	if (handle->state != CKT_NCCL_READY)
		return ncclInvalidArgument;
	*ret_handle = handle;
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	struct ckt_nccl_handle *handle = ckt_nccl_handle(comm);
	if (!handle || !asyncError)
		return ncclInvalidArgument;
	return ask(handle, asyncError);
}

#define KNOWN(name, field)                                                                         \
	CKT_LIB_EXPORT ncclResult_t name(const ncclComm_t comm, int *value)                        \
	{                                                                                          \
		struct ckt_nccl_handle *handle;                                                    \
		ncclResult_t status = value ? ckt_nccl_ready(comm, &handle) : ncclInvalidArgument; \
		if (!status)                                                                       \
			*value = handle->field;                                                    \
		return status;                                                                     \
	}

KNOWN(ncclCommCount, ranks)
KNOWN(ncclCommUserRank, rank)
KNOWN(ncclCommCuDevice, device)
