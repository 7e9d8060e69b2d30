/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on streams, one group at a time, and the program's own operators; see nccl.h. */
#include <stdlib.h>

#include "server/worker/driver.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/worker.h"

struct operation {
	struct ckt_nccl_operation wire;
	struct ckt_nccl_comm *comm; /* a reference, except on the executor */
	cudaStream_t stream;
};

struct group {
	struct ckt_nccl_job job;
	struct ckt_wcall *call;
	bool simulate;
	float time;
	uint32_t count;
	struct operation operations[];
};

/* ---- Operators */

static struct ckt_nccl_made_operator *find_operator(struct ckt_nccl_comm *comm, uint32_t number)
{
	for (unsigned i = 0; i < comm->operator_count; i++)
		if (comm->operators[i].number == number)
			return &comm->operators[i];
	return NULL;
}

static int end_operator(struct ckt_nccl_comm *comm, uint32_t number)
{
	struct ckt_nccl_made_operator *made = find_operator(comm, number);
	if (!made)
		return ncclSuccess;
	ncclRedOp_t real = made->real;
	*made = comm->operators[--comm->operator_count];
	return ckt_nccl.ncclRedOpDestroy ? (int)ckt_nccl.ncclRedOpDestroy(real, comm->real)
					 : (int)ncclInvalidUsage;
}

static int make_operator(struct ckt_nccl_comm *comm, const struct ckt_nccl_operator_args *args)
{
	_Alignas(16) uint8_t value[16] = {0};
	uint64_t address;
	ncclRedOp_t real;
	struct ckt_nccl_made_operator *grown =
		reallocarray(comm->operators, comm->operator_count + 1, sizeof *grown);
	if (!grown)
		return ncclSystemError;
	comm->operators = grown;
	memcpy(value, args->scalar, args->scalar_len);
	memcpy(&address, value, sizeof address);
	void *scalar =
		args->residence == ncclScalarDevice ? (void *)(uintptr_t)address : (void *)value;
	if (!ckt_nccl.ncclRedOpCreatePreMulSum)
		return ncclInvalidUsage;
	ncclResult_t status = ckt_nccl.ncclRedOpCreatePreMulSum(&real, scalar,
		(ncclDataType_t)args->type, (ncclScalarResidence_t)args->residence, comm->real);
	if (!status)
		comm->operators[comm->operator_count++] =
			(struct ckt_nccl_made_operator){args->operator, real };
	return (int)status;
}

int ckt_worker_nccl_operator(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_nccl_operator_args args;
	struct ckt_nccl_comm *comm;
	if (!ckt_nccl_operator_args_get(&call->args, &args) ||
		args.residence > CKT_NCCL_OPERATOR_ENDS ||
		args.operator<CKT_NCCL_OPERATORS || args.operator>=
		CKT_NCCL_OPERATORS + CKT_NCCL_OPERATORS_MAX)
		return CKT_WCALL_GARBAGE;
	/* The library reads as many bytes as the operator's type has. */
	if (args.residence != CKT_NCCL_OPERATOR_ENDS && args.scalar_len != 8)
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_nccl_comm_find(call->worker, args.comm, &comm);
	if (!result)
		result = ckt_worker_nccl_comm_settled(call->worker, comm);
	/* Running calls read the list of operators. */
	if (!result)
		result = ckt_worker_nccl_comm_idle(comm);
	if (result)
		return (int)result;
	call->status = comm->real ? end_operator(comm, args.operator) : (int)ncclInvalidArgument;
	if (!call->status && args.residence != CKT_NCCL_OPERATOR_ENDS)
		call->status = make_operator(comm, &args);
	return ckt_library_done(call, call->status, &once);
}

/* ---- Groups */

static ncclResult_t reduction(const struct operation *o, ncclRedOp_t *ret_operator)
{
	*ret_operator = (ncclRedOp_t)o->wire.operator;
	if (o->wire.operator<CKT_NCCL_OPERATORS)
		return ncclSuccess;
	const struct ckt_nccl_made_operator *made = find_operator(o->comm, o->wire.operator);
	if (made)
		*ret_operator = made->real;
	return made ? ncclSuccess : ncclInvalidArgument;
}

/* For a function that an older library lacks. */
#define CALL(function, ...) (ckt_nccl.function ? ckt_nccl.function(__VA_ARGS__) : ncclInvalidUsage)

static ncclResult_t put(const struct operation *o)
{
	const struct ckt_nccl_operation *w = &o->wire;
	const void *send = (const void *)(uintptr_t)w->send;
	void *receive = (void *)(uintptr_t)w->receive;
	ncclDataType_t type = (ncclDataType_t)w->type;
	ncclComm_t comm = o->comm->real;
	ncclRedOp_t operator;
	if (!comm || reduction(o, &operator))
		return ncclInvalidArgument;
	switch ((enum ckt_nccl_function)w->function) {
	case CKT_NCCL_ALL_REDUCE:
		return CALL(
			ncclAllReduce, send, receive, w->count, type, operator, comm, o->stream);
	case CKT_NCCL_REDUCE:
		return CALL(ncclReduce, send, receive, w->count, type, operator, w->root, comm,
			o->stream);
	case CKT_NCCL_BROADCAST:
		return CALL(ncclBroadcast, send, receive, w->count, type, w->root, comm, o->stream);
	case CKT_NCCL_REDUCE_SCATTER:
		return CALL(ncclReduceScatter, send, receive, w->count, type, operator, comm,
			o->stream);
	case CKT_NCCL_ALL_GATHER:
		return CALL(ncclAllGather, send, receive, w->count, type, comm, o->stream);
	case CKT_NCCL_ALL_TO_ALL:
		return CALL(ncclAlltoAll, send, receive, w->count, type, comm, o->stream);
	case CKT_NCCL_GATHER:
		return CALL(ncclGather, send, receive, w->count, type, w->root, comm, o->stream);
	case CKT_NCCL_SCATTER:
		return CALL(ncclScatter, send, receive, w->count, type, w->root, comm, o->stream);
	case CKT_NCCL_SEND:
		return CALL(ncclSend, send, w->count, type, w->root, comm, o->stream);
	case CKT_NCCL_RECEIVE:
		return CALL(ncclRecv, receive, w->count, type, w->root, comm, o->stream);
	default:
		return ncclInvalidArgument;
	}
}

static ncclResult_t end(struct group *group)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	if (!group->simulate)
		return CALL(ncclGroupEnd);
	ncclResult_t status = CALL(ncclGroupSimulateEnd, &info);
	group->time = info.estimatedTime;
	return status;
}

/* Runs all operations as one group of the library; the end of the group returns any error. */
static void run(struct group *group)
{
	ncclResult_t first = CALL(ncclGroupStart);
	if (first) {
		group->job.status = (int)first;
		return;
	}
	for (uint32_t i = 0; i < group->count && !first; i++)
		first = put(&group->operations[i]);
	ncclResult_t last = end(group);
	group->job.status = first && first != ncclInProgress ? (int)first : (int)last;
	if (!group->job.status && !group->simulate)
		ckt_worker_nccl_count(group->count);
	for (uint32_t i = 0;
		i < group->count && group->job.status && group->job.status != ncclInProgress; i++) {
		int none = 0;
		atomic_compare_exchange_strong(
			&group->operations[i].comm->failed, &none, group->job.status);
	}
}

/* here: the operation runs now, on the executor. */
static CUresult take(
	struct ckt_worker *worker, const uint8_t *bytes, bool here, struct operation *ret)
{
	CUstream stream;
	ckt_nccl_operation_get(bytes, &ret->wire);
	CUresult result = ret->wire.function < CKT_NCCL_FUNCTIONS
		? ckt_worker_nccl_comm_find(worker, ret->wire.comm, &ret->comm)
		: CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = ckt_worker_nccl_comm_settled(worker, ret->comm);
	if (!result && (here || ret->comm->closed))
		result = ckt_worker_nccl_comm_idle(ret->comm);
	if (!result)
		result = ckt_object_stream(worker, ret->wire.stream, &stream);
	if (!result)
		ret->stream = (cudaStream_t)stream;
	return result;
}

/* Returns a handler's result if it is not CUDA_SUCCESS. */
static int group_new(struct ckt_worker *worker, const uint8_t *operations, uint32_t bytes,
	bool here, struct group **ret_group)
{
	uint32_t count = bytes / CKT_NCCL_OPERATION_BYTES;
	if (!count || bytes % CKT_NCCL_OPERATION_BYTES)
		return CKT_WCALL_GARBAGE;
	struct group *group = calloc(1, sizeof *group + count * sizeof *group->operations);
	if (!group)
		return CUDA_ERROR_OUT_OF_MEMORY;
	group->count = count;
	for (uint32_t i = 0; i < count; i++) {
		CUresult result = take(worker, operations + (size_t)i * CKT_NCCL_OPERATION_BYTES,
			here, &group->operations[i]);
		if (result) {
			free(group);
			return (int)result;
		}
	}
	*ret_group = group;
	return CUDA_SUCCESS;
}

int ckt_worker_nccl_group(struct ckt_wcall *call)
{
	static bool once;
	struct ckt_nccl_group_args args;
	struct group *group;
	if (!ckt_nccl_group_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	int result = group_new(call->worker, args.operations, args.operations_len, true, &group);
	if (result)
		return result;
	run(group);
	/* The library has changed the current context to those of its communicators. */
	if (call->worker->current)
		ckt_driver.cuCtxSetCurrent(call->worker->current->real);
	call->status = group->job.status;
	free(group);
	/* Before its client is told. */
	if (call->status)
		ckt_worker_nccl_await_return(call->worker);
	return ckt_library_done(call, call->status, &once);
}

static void meet_run(struct ckt_nccl_job *job)
{
	run((struct group *)job);
}

static void meet_finish(struct ckt_worker *worker, struct ckt_nccl_job *job)
{
	struct group *group = (struct group *)job;
	struct ckt_nccl_group_meet_res res = {.status = group->job.status, .time = group->time};
	(void)worker;
	for (uint32_t i = 0; i < group->count; i++)
		ckt_worker_nccl_comm_unref(group->operations[i].comm);
	ckt_nccl_group_meet_res_put(
		ckt_wcall_results(group->call, ckt_nccl_group_meet_res_size(&res)), &res);
	ckt_wcall_finish(group->call, CUDA_SUCCESS);
	free(group);
}

/* Lists the communicators besides the first one, each once. */
static bool list_others(struct group *group)
{
	static unsigned mark;
	struct ckt_nccl_comm *first = group->operations[0].comm;
	group->job.others = malloc(group->count * sizeof *group->job.others);
	if (!group->job.others)
		return false;
	first->mark = ++mark;
	for (uint32_t i = 0; i < group->count; i++) {
		struct ckt_nccl_comm *comm = group->operations[i].comm;
		if (comm->mark != mark)
			group->job.others[group->job.other_count++] = comm;
		comm->mark = mark;
	}
	return true;
}

int ckt_worker_nccl_group_meet(struct ckt_wcall *call)
{
	struct ckt_nccl_group_meet_args args;
	struct group *group;
	if (!ckt_nccl_group_meet_args_get(&call->args, &args) || args.simulate > 1)
		return CKT_WCALL_GARBAGE;
	int result = group_new(call->worker, args.operations, args.operations_len, false, &group);
	if (result)
		return result;
	if (!list_others(group)) {
		free(group);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	group->call = call;
	group->simulate = args.simulate;
	group->job.run = meet_run;
	group->job.finish = meet_finish;
	for (uint32_t i = 0; i < group->count; i++)
		group->operations[i].comm->refs++;
	ckt_worker_nccl_job_submit(call->worker, group->operations[0].comm, &group->job);
	return CKT_WCALL_LATER;
}
