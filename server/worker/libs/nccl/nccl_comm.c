/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and end of communicators; see nccl.h. */
#include <stdlib.h>
#include <time.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

enum { POLL_NS = 200000 };
/* Places in the arguments of nccl_comm: the log gets the resulting values there. */
enum { RANKS_AT = 16, RANK_AT = 20, KIND_AT = 24 };

struct waiter {
	struct waiter *next;
	struct ckt_wcall *call;
	uint32_t count;
	struct ckt_nccl_comm *comms[]; /* references */
};

static struct waiter *waiters;

/* ---- Objects */

CUresult ckt_worker_nccl_comm_find(
	struct ckt_worker *worker, uint64_t id, struct ckt_nccl_comm **ret_comm)
{
	struct ckt_object *object =
		ckt_library_object_find(worker, CKT_LIB_NCCL, CKT_NCCL_TYPE_COMM, id);
	if (!object || !object->real)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_comm = object->real;
	return CUDA_SUCCESS;
}

void ckt_worker_nccl_comm_unref(struct ckt_nccl_comm *comm)
{
	if (--comm->refs)
		return;
	ckt_worker_nccl_peers_remove(comm);
	ckt_budget_uncharge(comm->charged);
	free(comm->operators);
	free(comm);
}

void ckt_worker_nccl_comm_end(struct ckt_object *object)
{
	struct ckt_nccl_comm *comm = object->real;
	comm->ending = true;
	comm->gone = true;
	ckt_worker_nccl_peers_remove(comm);
	comm->closed = true;
	ckt_worker_nccl_comm_drop_gone(comm);
	ckt_worker_nccl_comm_unref(comm);
}

/* ---- Creation */

struct making {
	struct ckt_nccl_job job;
	struct ckt_nccl_comm *made, *parent; /* references; parent NULL: from unique ids */
	uint32_t kind, id_count, excluded_count;
	int color, key, flags, ranks, rank;
	bool meets; /* a restore, whose worker was told no id */
	int64_t deadline_ms;
	bool has_config;
	struct ckt_nccl_config config;
	char net[CKT_NCCL_NAME_MAX + 1], name[CKT_NCCL_NAME_MAX + 1];
	ncclUniqueId *ids;
	int *excluded;
};

static ncclConfig_t *config_of(struct making *m)
{
	m->config.net = *m->net ? m->net : NULL;
	m->config.name = *m->name ? m->name : NULL;
	return m->has_config ? (ncclConfig_t *)&m->config : NULL;
}

static ncclResult_t make_of_ids(struct making *m, ncclComm_t *made)
{
	if (m->id_count > 1)
		return ckt_nccl.ncclCommInitRankScalable
			? ckt_nccl.ncclCommInitRankScalable(
				  made, m->ranks, m->rank, (int)m->id_count, m->ids, config_of(m))
			: ncclInvalidUsage;
	if (m->has_config && ckt_nccl.ncclCommInitRankConfig)
		return ckt_nccl.ncclCommInitRankConfig(
			made, m->ranks, m->ids[0], m->rank, config_of(m));
	return ckt_nccl.ncclCommInitRank
		? ckt_nccl.ncclCommInitRank(made, m->ranks, m->ids[0], m->rank)
		: ncclInvalidUsage;
}

static ncclResult_t make_of_parent(struct making *m, ncclComm_t *made)
{
	ncclComm_t parent = m->parent->real;
	if (!parent)
		return ncclInvalidArgument;
	if (m->kind == CKT_NCCL_SPLIT)
		return ckt_nccl.ncclCommSplit
			? ckt_nccl.ncclCommSplit(parent, m->color, m->key, made, config_of(m))
			: ncclInvalidUsage;
	return ckt_nccl.ncclCommShrink
		? ckt_nccl.ncclCommShrink(
			  parent, m->excluded, (int)m->excluded_count, made, config_of(m), m->flags)
		: ncclInvalidUsage;
}

/*
 * A nonblocking communicator reports its result later; a nonblocking parent reports its child's
 * result later.
 */
static ncclResult_t poll_until_made(struct making *m, ncclComm_t asked)
{
	ncclResult_t state = ncclInProgress;
	while (state == ncclInProgress && !m->made->ending) {
		if (ckt_nccl.ncclCommGetAsyncError(asked, &state))
			return ncclInternalError;
		if (state == ncclInProgress)
			nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	return state;
}

static void making_run(struct ckt_nccl_job *job)
{
	struct making *m = (struct making *)job;
	ncclComm_t made = NULL;
	if (m->meets)
		ckt_fault(CKT_FAULT_RANKS_RETURN);
	ncclResult_t status = m->meets
		? ckt_worker_nccl_meet(m->made->identity, m->rank, m->deadline_ms, &m->ids[0])
		: ncclSuccess;
	if (!status)
		status = m->parent ? make_of_parent(m, &made) : make_of_ids(m, &made);
	/* A nonblocking parent may return its child only when it reports success. */
	if (status == ncclInProgress && m->parent)
		status = poll_until_made(m, m->parent->real);
	if ((!status || status == ncclInProgress) && made && !m->made->blocking) {
		m->made->real = made;
		status = poll_until_made(m, made);
	}
	if (!status && made) {
		if (ckt_nccl.ncclCommCount)
			ckt_nccl.ncclCommCount(made, &m->ranks);
		if (ckt_nccl.ncclCommUserRank)
			ckt_nccl.ncclCommUserRank(made, &m->rank);
	}
	m->made->real = made;
	job->status = (int)status;
	if (m->meets && !m->rank)
		ckt_worker_nccl_met(m->made->identity);
}

/* Writes what the communicator now is into the log, in place of how it was created. */
static void remember(struct ckt_worker *worker, const struct ckt_nccl_comm *comm)
{
	struct ckt_object *object =
		ckt_library_object_find(worker, CKT_LIB_NCCL, CKT_NCCL_TYPE_COMM, comm->id);
	struct ckt_lib_step *step = object && object->real == comm && object->library->recipe
		? object->library->recipe->create
		: NULL;
	if (!step || step->args_bytes < KIND_AT + 4)
		return;
	ckt_put_u32(step->args + RANKS_AT, (uint32_t)comm->ranks);
	ckt_put_u32(step->args + RANK_AT, (uint32_t)comm->rank);
	if (comm->status || !comm->real)
		ckt_put_u32(step->args + KIND_AT, CKT_NCCL_NONE);
}

static void look_for_waiters(void);

static void making_finish(struct ckt_worker *worker, struct ckt_nccl_job *job)
{
	struct making *m = (struct making *)job;
	struct ckt_nccl_comm *made = m->made;
	made->pending = false;
	made->status = job->status;
	made->ranks = m->ranks;
	made->rank = m->rank;
	if (made->status)
		ckt_warning("cannot make a communicator of NCCL: %s",
			ckt_nccl.ncclGetErrorString
				? ckt_nccl.ncclGetErrorString((ncclResult_t)made->status)
				: "unknown error");
	if (!made->gone)
		remember(worker, made);
	if (!made->gone && made->real)
		ckt_worker_nccl_peers_add(made);
	ckt_worker_nccl_comm_drop_gone(made);
	look_for_waiters();
	if (m->parent)
		ckt_worker_nccl_comm_unref(m->parent);
	ckt_worker_nccl_comm_unref(made);
	free(m->ids);
	free(m->excluded);
	free(m);
}

static bool is_text(const char *text, uint32_t length)
{
	return !memchr(text, 0, length);
}

static bool is_sound(const struct ckt_nccl_comm_args *args)
{
	bool of_ids = args->kind == CKT_NCCL_INIT;
	if (args->kind >= CKT_NCCL_KINDS || args->identity_len != CKT_NCCL_ID_BYTES ||
		args->ids_len % CKT_NCCL_ID_BYTES)
		return false;
	if (!is_text(args->net, args->net_len) || !is_text(args->name, args->name_len))
		return false;
	if (of_ids &&
		(!args->ids_len || args->ranks < 1 || args->ranks > CKT_NCCL_RANKS_MAX ||
			args->rank < 0 || args->rank >= args->ranks))
		return false;
	return of_ids ? !args->parent : args->kind == CKT_NCCL_NONE || args->parent != 0;
}

static struct making *making_new(const struct ckt_nccl_comm_args *args)
{
	struct making *m = calloc(1, sizeof *m);
	ncclUniqueId *ids = calloc(args->ids_len / CKT_NCCL_ID_BYTES + 1, sizeof *ids);
	int *excluded = calloc(args->excluded_len + 1, sizeof *excluded);
	if (!m || !ids || !excluded) {
		free(m);
		free(ids);
		free(excluded);
		return NULL;
	}
	m->job.run = making_run;
	m->job.finish = making_finish;
	m->job.makes = true;
	m->kind = args->kind;
	m->color = args->color;
	m->key = args->key;
	m->flags = args->flags;
	m->ranks = args->ranks;
	m->rank = args->rank;
	m->id_count = args->ids_len / CKT_NCCL_ID_BYTES;
	m->ids = ids;
	if (args->ids_len)
		memcpy(ids, args->ids, args->ids_len);
	m->excluded = excluded;
	m->excluded_count = args->excluded_len;
	for (uint32_t i = 0; i < args->excluded_len; i++)
		excluded[i] = (int)ckt_xdr_u32(args->excluded_xdr, i);
	m->has_config = args->config_len > 0;
	ckt_nccl_config_make(args->config_xdr, args->config_len,
		ckt_library_loaded(CKT_LIB_NCCL)->version, &m->config);
	memcpy(m->net, args->net, args->net_len);
	memcpy(m->name, args->name, args->name_len);
	return m;
}

static void making_free(struct making *m)
{
	free(m->ids);
	free(m->excluded);
	free(m);
}

/* A restore makes the communicator from its logged ranks and rank. */
static CUresult make_anew(struct ckt_worker *worker, struct making *m, const uint8_t *identity)
{
	if (m->ranks < 1 || m->ranks > CKT_NCCL_RANKS_MAX || m->rank < 0 || m->rank >= m->ranks)
		return CUDA_ERROR_INVALID_VALUE;
	m->kind = CKT_NCCL_INIT;
	m->id_count = 1;
	m->meets = !ckt_worker_nccl_new_id(worker, identity, &m->ids[0], &m->deadline_ms);
	return CUDA_SUCCESS;
}

/* ---- Handlers */

/*
 * The library's own host memory for a communicator and for each of its ranks, here and where the
 * ranks meet.  The charge lasts as long as a call that creates the communicator, even if its object
 * has ended.
 */
enum { COMM_BYTES = 4 << 20, RANK_BYTES = 1 << 10 };

static struct ckt_nccl_comm *comm_new(struct ckt_worker *worker,
	const struct ckt_nccl_comm_args *args, const struct making *m,
	const struct ckt_nccl_comm *parent)
{
	int ranks = parent ? parent->ranks : args->ranks;
	uint64_t bytes = sizeof(struct ckt_nccl_comm) + COMM_BYTES +
		(ranks > 0 ? (uint64_t)ranks * RANK_BYTES : 0);
	if (args->kind == CKT_NCCL_NONE)
		bytes = sizeof(struct ckt_nccl_comm);
	struct ckt_nccl_comm *comm =
		ckt_budget_charge(bytes, "communicators") ? calloc(1, sizeof *comm) : NULL;
	if (!comm)
		return NULL;
	comm->charged = bytes;
	comm->refs = 1;
	comm->id = args->id;
	comm->context = worker->current->real;
	comm->pending = args->kind != CKT_NCCL_NONE;
	comm->blocking = !m->has_config || m->config.blocking != 0;
	comm->ranks = args->ranks;
	comm->rank = args->rank;
	memcpy(comm->identity, args->identity, CKT_NCCL_ID_BYTES);
	return comm;
}

static CUresult begin(
	struct ckt_wcall *call, const struct ckt_nccl_comm_args *args, struct making *m)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_nccl_comm *parent = NULL, *comm;
	struct ckt_object *object;
	CUresult result = CUDA_SUCCESS;
	if (!worker->go && args->kind != CKT_NCCL_NONE)
		result = make_anew(worker, m, args->identity);
	else if (worker->go && args->kind == CKT_NCCL_NONE)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (args->parent && worker->go)
		result = ckt_worker_nccl_comm_find(worker, args->parent, &parent);
	if (!result && parent && parent->closed)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result)
		return result;
	comm = comm_new(worker, args, m, parent);
	if (!comm)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = ckt_library_object_add(
		worker, &ckt_library_nccl, CKT_NCCL_TYPE_COMM, args->id, comm, NULL, &object);
	if (result) {
		ckt_worker_nccl_comm_unref(comm);
		return result;
	}
	if (!comm->pending) {
		making_free(m);
		return CUDA_SUCCESS;
	}
	comm->refs++;
	m->made = comm;
	if (parent)
		parent->refs++;
	m->parent = parent;
	m->job.base.context = worker->current->real;
	ckt_worker_nccl_job_submit(worker, parent ? parent : comm, &m->job);
	return CUDA_SUCCESS;
}

int ckt_worker_nccl_comm(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_nccl_comm_args args;
	if (!ckt_nccl_comm_args_get(&call->args, &args) || !is_sound(&args))
		return CKT_WCALL_GARBAGE;
	if (!call->worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct making *m = making_new(&args);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = begin(call, &args, m);
	if (result) {
		making_free(m);
		return (int)result;
	}
	return ckt_library_done(call, 0, &once);
}

static bool is_ready(const struct waiter *waiter)
{
	for (uint32_t i = 0; i < waiter->count; i++)
		if (waiter->comms[i]->pending)
			return false;
	return true;
}

static void waiter_free(struct waiter *waiter)
{
	for (uint32_t i = 0; i < waiter->count; i++)
		ckt_worker_nccl_comm_unref(waiter->comms[i]);
	free(waiter);
}

static void settle_answer(struct waiter *waiter)
{
	uint32_t words[CKT_NCCL_SETTLE_MAX * CKT_NCCL_SETTLE_WORDS];
	for (uint32_t i = 0; i < waiter->count; i++) {
		const struct ckt_nccl_comm *comm = waiter->comms[i];
		bool there = comm->real != NULL;
		words[CKT_NCCL_SETTLE_WORDS * i] = (uint32_t)comm->status;
		words[CKT_NCCL_SETTLE_WORDS * i + 1] = (uint32_t)(there ? comm->ranks : -1);
		words[CKT_NCCL_SETTLE_WORDS * i + 2] = (uint32_t)(there ? comm->rank : -1);
		words[CKT_NCCL_SETTLE_WORDS * i + 3] = 0;
	}
	struct ckt_nccl_settle_res res = {
		.states = words, .states_len = CKT_NCCL_SETTLE_WORDS * waiter->count};
	ckt_nccl_settle_res_put(
		ckt_wcall_results(waiter->call, ckt_nccl_settle_res_size(&res)), &res);
}

static void look_for_waiters(void)
{
	for (struct waiter **link = &waiters; *link;) {
		struct waiter *waiter = *link;
		if (!is_ready(waiter)) {
			link = &waiter->next;
			continue;
		}
		*link = waiter->next;
		settle_answer(waiter);
		ckt_wcall_finish(waiter->call, CUDA_SUCCESS);
		waiter_free(waiter);
	}
}

int ckt_worker_nccl_settle(struct ckt_wcall *call)
{
	struct ckt_nccl_settle_args args;
	if (!ckt_nccl_settle_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct waiter *waiter = calloc(1, sizeof *waiter + args.comms_len * sizeof *waiter->comms);
	if (!waiter)
		return CUDA_ERROR_OUT_OF_MEMORY;
	waiter->call = call;
	for (uint32_t i = 0; i < args.comms_len; i++) {
		CUresult result = ckt_worker_nccl_comm_find(
			call->worker, ckt_xdr_u64(args.comms_xdr, i), &waiter->comms[i]);
		if (result) {
			waiter_free(waiter);
			return (int)result;
		}
		waiter->comms[i]->refs++;
		waiter->count++;
	}
	if (is_ready(waiter)) {
		settle_answer(waiter);
		waiter_free(waiter);
		return CUDA_SUCCESS;
	}
	waiter->next = waiters;
	waiters = waiter;
	return CKT_WCALL_LATER;
}

/* ---- Ends */

struct ending {
	struct ckt_nccl_job job;
	struct ckt_wcall *call;
	uint32_t how;
	int flags;
};

static void ending_run(struct ckt_nccl_job *job)
{
	struct ending *e = (struct ending *)job;
	ncclComm_t real = job->comm->real;
	ncclResult_t (*simple)(ncclComm_t) = e->how == CKT_NCCL_FINALIZE ? ckt_nccl.ncclCommFinalize
		: e->how == CKT_NCCL_DESTROY                             ? ckt_nccl.ncclCommDestroy
									 : ckt_nccl.ncclCommAbort;
	/* NULL afterwards, so that it ends once. */
	if (e->how == CKT_NCCL_DESTROY || e->how == CKT_NCCL_ABORT)
		real = atomic_exchange(&job->comm->real, NULL);
	if (!real)
		job->status = ncclInvalidArgument;
	else if (e->how == CKT_NCCL_REVOKE)
		job->status = ckt_nccl.ncclCommRevoke ? (int)ckt_nccl.ncclCommRevoke(real, e->flags)
						      : (int)ncclInvalidUsage;
	else
		job->status = simple ? (int)simple(real) : (int)ncclInvalidUsage;
}

static void ending_finish(struct ckt_worker *worker, struct ckt_nccl_job *job)
{
	struct ending *e = (struct ending *)job;
	struct ckt_nccl_comm *comm = job->comm;
	struct ckt_nccl_end_res res = {.status = job->status};
	if (!comm->gone && (e->how == CKT_NCCL_DESTROY || e->how == CKT_NCCL_ABORT)) {
		struct ckt_object *object =
			ckt_objects_find_kind(&worker->objects, comm->id, CKT_KIND_LIB_OBJECT);
		if (object && object->real == comm)
			ckt_object_destroy(worker, object);
	}
	ckt_nccl_end_res_put(ckt_wcall_results(e->call, ckt_nccl_end_res_size(&res)), &res);
	ckt_wcall_finish(e->call, CUDA_SUCCESS);
	free(e);
}

/* Replies without asking the library. */
static int answer_end(struct ckt_wcall *call, int status)
{
	struct ckt_nccl_end_res res = {.status = status};
	ckt_nccl_end_res_put(ckt_wcall_results(call, ckt_nccl_end_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_nccl_end(struct ckt_wcall *call)
{
	struct ckt_nccl_end_args args;
	struct ckt_nccl_comm *comm;
	if (!ckt_nccl_end_args_get(&call->args, &args) || args.how >= CKT_NCCL_HOWS)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_nccl_comm_find(call->worker, args.comm, &comm);
	if (result)
		return (int)result;
	if (args.how == CKT_NCCL_FORGET) {
		struct ckt_object *object = ckt_objects_find_kind(
			&call->worker->objects, comm->id, CKT_KIND_LIB_OBJECT);
		if (object)
			ckt_object_destroy(call->worker, object);
		return answer_end(call, ncclSuccess);
	}
	if (comm->freed && args.how != CKT_NCCL_ABORT)
		return answer_end(call, ncclInvalidArgument);
	struct ending *e = calloc(1, sizeof *e);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bool abort = args.how == CKT_NCCL_ABORT || args.how == CKT_NCCL_REVOKE;
	*e = (struct ending){.job = {.run = ending_run,
				     .finish = ending_finish,
				     .alone = abort && !comm->pending},
		.call = call,
		.how = args.how,
		.flags = args.flags};
	if (args.how == CKT_NCCL_ABORT)
		comm->ending = true;
	ckt_worker_nccl_peers_close(comm, args.how != CKT_NCCL_REVOKE,
		args.how == CKT_NCCL_DESTROY || args.how == CKT_NCCL_ABORT);
	ckt_worker_nccl_job_submit(call->worker, comm, &e->job);
	return CKT_WCALL_LATER;
}
