/* SPDX-License-Identifier: Apache-2.0 */
/* Groups, and the operations in them; see nccl.h. */
#include <stdlib.h>
#include <string.h>

#include "client/libs/nccl/nccl.h"

/* Of one thread. */
struct group {
	unsigned depth;
	ncclResult_t error; /* the first of a call in it */
	size_t count, room;
	struct ckt_nccl_operation *operations;
	struct ckt_nccl_handle **comms; /* whose operations they are */
	size_t made_count, made_room;
	struct ckt_nccl_handle **made; /* communicators that are on their way */
	ncclComm_t **places;
};

static __thread struct group group;

bool ckt_nccl_collects(void)
{
	return group.depth > 0;
}

ncclResult_t ckt_nccl_note(ncclResult_t status)
{
	if (group.depth && status && status != ncclInProgress && !group.error)
		group.error = status;
	return status;
}

ncclResult_t ckt_nccl_collect_comm(struct ckt_nccl_handle *made, ncclComm_t *place)
{
	if (group.made_count == group.made_room) {
		size_t room = group.made_room ? 2 * group.made_room : 8;
		struct ckt_nccl_handle **handles = reallocarray(group.made, room, sizeof *handles);
		if (handles)
			group.made = handles;
		ncclComm_t **places =
			handles ? reallocarray(group.places, room, sizeof *places) : NULL;
		if (!places) {
			*place = NULL;
			ckt_nccl_forget(made);
			return ncclSystemError;
		}
		group.places = places;
		group.made_room = room;
	}
	group.made[group.made_count] = made;
	group.places[group.made_count++] = place;
	return ncclSuccess;
}

/* ---- Sending */

static bool add(const struct ckt_nccl_operation *operation, struct ckt_nccl_handle *comm)
{
	if (group.count == group.room) {
		size_t room = group.room ? 2 * group.room : 16;
		struct ckt_nccl_operation *operations =
			reallocarray(group.operations, room, sizeof *operations);
		if (operations)
			group.operations = operations;
		struct ckt_nccl_handle **comms =
			operations ? reallocarray(group.comms, room, sizeof *comms) : NULL;
		if (!comms)
			return false;
		group.comms = comms;
		group.room = room;
	}
	group.operations[group.count] = *operation;
	group.comms[group.count++] = comm;
	return true;
}

static bool is_to_one(uint32_t function)
{
	return function == CKT_NCCL_SEND || function == CKT_NCCL_RECEIVE;
}

/*
 * Whether NCCL may have to connect for it.  All ranks call it together, so all of them connect when
 * the first does.
 */
static bool is_first(const struct ckt_nccl_operation *o, const struct ckt_nccl_handle *comm)
{
	if (is_to_one(o->function))
		return !(comm->peers[o->root] &
			(o->function == CKT_NCCL_SEND ? CKT_NCCL_SENT_TO : CKT_NCCL_RECEIVED_FROM));
	return !(comm->met & 1u << o->function);
}

/* What had met before the session was restored is not connected any more. */
static void look_for_restore(const struct ckt_client_table *client, struct ckt_nccl_handle *comm)
{
	uint64_t generation = client->generation(comm->object.context);
	if (__builtin_expect(generation == comm->generation, 1))
		return;
	comm->generation = generation;
	comm->met = 0;
	memset(comm->peers, 0, (size_t)comm->ranks);
}

static void have_met(void)
{
	for (size_t i = 0; i < group.count; i++) {
		const struct ckt_nccl_operation *o = &group.operations[i];
		struct ckt_nccl_handle *comm = group.comms[i];
		if (is_to_one(o->function))
			comm->peers[o->root] |= o->function == CKT_NCCL_SEND
				? CKT_NCCL_SENT_TO
				: CKT_NCCL_RECEIVED_FROM;
		else
			comm->met |= 1u << o->function;
	}
}

/*
 * Before anything is sent: memory that host and device share is brought to the device, and captures
 * are seen.
 */
static CUresult prepare(const struct ckt_client_table *client, bool *ret_captures)
{
	*ret_captures = false;
	for (size_t i = 0; i < group.count; i++) {
		struct ckt_nccl_operation *o = &group.operations[i];
		uint64_t addresses[] = {o->send, o->receive};
		client->use_context(group.comms[i]->object.context);
		CUresult result = client->before_work(o->stream, addresses, 2);
		if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
			*ret_captures = true;
			continue;
		}
		if (result)
			return result;
		o->send = addresses[0];
		o->receive = addresses[1];
	}
	return CUDA_SUCCESS;
}

/* A captured group is one node, so it has one stream. */
static ncclResult_t capture(
	const struct ckt_client_table *client, const struct ckt_nccl_group_args *args)
{
	static bool once;
	bool captured = false;
	for (size_t i = 1; i < group.count; i++)
		if (group.operations[i].stream != group.operations[0].stream ||
			group.comms[i]->object.context != group.comms[0]->object.context)
			return (ncclResult_t)ckt_nccl_unsupported(
				"a group on several streams, one of which captures", &once);
	size_t bytes = ckt_nccl_group_args_size(args);
	uint8_t *message = malloc(bytes + 1);
	if (!message)
		return ncclSystemError;
	ckt_nccl_group_args_put(message, args);
	CUresult result = client->capture(group.operations[0].stream,
		CKT_LIB_PROC(CKT_LIB_NCCL, CKT_NCCL_PROC_NCCL_GROUP), message, bytes, 0, &captured);
	free(message);
	return result ? ckt_nccl_status(result) : captured ? ncclSuccess : ncclInternalError;
}

static ncclResult_t queue(
	const struct ckt_client_table *client, const struct ckt_nccl_group_args *args)
{
	struct ckt_call call;
	int status = 0;
	CUresult result =
		CKT_NCCL_BEGIN(client, &call, NCCL_GROUP, nccl_group, args, CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_nccl_group_args_put(call.p, args);
		result = client->queue_status(&call, &status);
	}
	return ckt_nccl_answer(result, status);
}

static ncclResult_t meet(const struct ckt_client_table *client,
	const struct ckt_nccl_group_args *args, bool simulate, float *ret_time)
{
	struct ckt_nccl_group_meet_args meet = {.simulate = simulate,
		.operations = args->operations,
		.operations_len = args->operations_len};
	struct ckt_nccl_group_meet_res res = {0};
	CUresult result = CKT_NCCL_WAIT(
		client, NCCL_GROUP_MEET, nccl_group_meet, &meet, &res, CKT_CALL_F_NUMBERED);
	ncclResult_t status = ckt_nccl_answer(result, res.status);
	if (!status && !simulate)
		have_met();
	*ret_time = res.time;
	return status;
}

static ncclResult_t send_message(
	const struct ckt_client_table *client, bool captures, bool simulate, float *ret_time)
{
	size_t bytes = group.count * CKT_NCCL_OPERATION_BYTES;
	uint8_t *message = malloc(bytes), *p = message;
	bool first = simulate;
	if (!message)
		return ncclSystemError;
	for (size_t i = 0; i < group.count; i++) {
		p = ckt_nccl_operation_put(p, &group.operations[i]);
		look_for_restore(client, group.comms[i]);
		first |=
			is_first(&group.operations[i], group.comms[i]) || !group.comms[i]->blocking;
	}
	struct ckt_nccl_group_args args = {
		.operations = message, .operations_len = (uint32_t)bytes};
	client->use_context(group.comms[0]->object.context);
	ncclResult_t status = captures ? capture(client, &args)
		: first                ? meet(client, &args, simulate, ret_time)
				       : queue(client, &args);
	free(message);
	return status;
}

static ncclResult_t send_operations(bool simulate, float *ret_time)
{
	static bool once;
	const struct ckt_client_table *client;
	bool captures;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (status)
		return status;
	for (size_t i = 1; i < group.count; i++)
		if (client->node(group.comms[i]->object.context) !=
			client->node(group.comms[0]->object.context))
			return (ncclResult_t)ckt_nccl_unsupported(
				"a group over devices of several servers", &once);
	if (group.count > CKT_NCCL_OPERATIONS_MAX)
		return ncclInvalidUsage;
	uint64_t before = client->context();
	CUresult result = prepare(client, &captures);
	status = result ? ckt_nccl_status(result)
			: send_message(client, captures, simulate, ret_time);
	client->use_context(before);
	return status;
}

/* ---- Its end */

static ncclResult_t settle_made(void)
{
	ncclResult_t first = ncclSuccess;
	bool later = false;
	size_t count = 0;
	for (size_t i = 0; i < group.made_count; i++) {
		if (!group.made[i]->blocking) {
			later = true;
			continue;
		}
		group.made[count] = group.made[i];
		group.places[count++] = group.places[i];
	}
	if (count)
		first = ckt_nccl_settle(group.made, group.places, count);
	return first ? first : later ? ncclInProgress : ncclSuccess;
}

static void drop_made(void)
{
	for (size_t i = 0; i < group.made_count; i++) {
		*group.places[i] = NULL;
		ckt_nccl_forget(group.made[i]);
	}
}

/* What was collected is gone afterwards, whatever came of it. */
static ncclResult_t finish(bool simulate, float *ret_time)
{
	ncclResult_t status = group.error;
	if (status)
		drop_made();
	else
		status = settle_made();
	if (group.count && (!status || status == ncclInProgress)) {
		ncclResult_t sent = send_operations(simulate, ret_time);
		if (sent)
			status = sent;
	}
	group.error = ncclSuccess;
	group.count = group.made_count = 0;
	/* One that was large once need not be kept. */
	if (group.room > 4096) {
		free(group.operations);
		free(group.comms);
		group.operations = NULL;
		group.comms = NULL;
		group.room = 0;
	}
	return status;
}

CKT_LIB_EXPORT ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclGroupEnd(void)
{
	float time = 0;
	if (!group.depth)
		return ncclInvalidUsage;
	if (--group.depth)
		return ncclSuccess;
	return finish(false, &time);
}

CKT_LIB_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	float time = NCCL_UNDEF_FLOAT;
	if (!group.depth)
		return ncclInvalidUsage;
	if (--group.depth)
		return ncclSuccess;
	ncclResult_t status = finish(true, &time);
	if (!status && simInfo)
		simInfo->estimatedTime = time;
	return status;
}

/* ---- Operations */

static bool reduces(uint32_t function)
{
	return function == CKT_NCCL_ALL_REDUCE || function == CKT_NCCL_REDUCE ||
		function == CKT_NCCL_REDUCE_SCATTER;
}

static bool has_root(uint32_t function)
{
	return function == CKT_NCCL_REDUCE || function == CKT_NCCL_BROADCAST ||
		function == CKT_NCCL_GATHER || function == CKT_NCCL_SCATTER || is_to_one(function);
}

static bool has_operator(const struct ckt_nccl_handle *comm, uint32_t number)
{
	if (number < CKT_NCCL_OPERATORS)
		return true;
	number -= CKT_NCCL_OPERATORS;
	return number < CKT_NCCL_OPERATORS_MAX &&
		comm->operators[number / 64] & 1ull << number % 64;
}

/* What the library would refuse at once: nobody waits for the rest. */
static ncclResult_t check(const struct ckt_nccl_operation *o, const struct ckt_nccl_handle *comm)
{
	if (o->type >= ncclNumTypes)
		return ncclInvalidArgument;
	if (reduces(o->function) && !has_operator(comm, o->operator))
		return ncclInvalidArgument;
	if (has_root(o->function) && (o->root < 0 || o->root >= comm->ranks))
		return ncclInvalidArgument;
	return ncclSuccess;
}

static ncclResult_t operate(
	struct ckt_nccl_operation operation, ncclComm_t comm, cudaStream_t stream)
{
	const struct ckt_client_table *client;
	struct ckt_nccl_handle *handle;
	float time = 0;
	ncclResult_t status = ckt_nccl_ready(comm, &handle);
	if (!status)
		status = check(&operation, handle);
	if (!status)
		status = ckt_nccl_enter(&client);
	if (!status)
		status = ckt_nccl_status(client->stream((CUstream)stream, &operation.stream));
	if (status)
		return ckt_nccl_note(status);
	operation.comm = handle->object.id;
	if (!add(&operation, handle))
		return ckt_nccl_note(ncclSystemError);
	return group.depth ? ncclSuccess : finish(false, &time);
}

#define OPERATION(function_, send_, receive_, count_, type_, operator_, root_) \
	operate((struct ckt_nccl_operation){.function = function_,             \
			.type = (uint32_t)(type_),                             \
			.operator=(uint32_t)(operator_),                       \
			.root = root_,                                         \
			.send = (uintptr_t)(send_),                            \
			.receive = (uintptr_t)(receive_),                      \
			.count = count_},                                      \
		comm, stream)

CKT_LIB_EXPORT ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_ALL_REDUCE, sendbuff, recvbuff, count, datatype, op, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_REDUCE, sendbuff, recvbuff, count, datatype, op, root);
}

CKT_LIB_EXPORT ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_BROADCAST, sendbuff, recvbuff, count, datatype, 0, root);
}

CKT_LIB_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_BROADCAST, buff, buff, count, datatype, 0, root);
}

CKT_LIB_EXPORT ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_REDUCE_SCATTER, sendbuff, recvbuff, recvcount, datatype, op, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_ALL_GATHER, sendbuff, recvbuff, sendcount, datatype, 0, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_ALL_TO_ALL, sendbuff, recvbuff, count, datatype, 0, 0);
}

CKT_LIB_EXPORT ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_GATHER, sendbuff, recvbuff, count, datatype, 0, root);
}

CKT_LIB_EXPORT ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_SCATTER, sendbuff, recvbuff, count, datatype, 0, root);
}

CKT_LIB_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_SEND, sendbuff, NULL, count, datatype, 0, peer);
}

CKT_LIB_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	return OPERATION(CKT_NCCL_RECEIVE, NULL, recvbuff, count, datatype, 0, peer);
}
