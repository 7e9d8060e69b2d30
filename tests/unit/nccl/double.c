/* SPDX-License-Identifier: Apache-2.0 */
/* See double.h. */
#include "tests/unit/nccl/double.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comm {
	int number, ranks, rank;
	bool alive;
};

enum { COMMS = 16384, ANSWERS = 16 };

struct ckt_nccl_config double_config;
_Atomic unsigned double_without_blocking;
char double_net[64], double_name[64];
_Atomic int double_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static char said[1 << 16];
static struct comm comms[COMMS];
static int comm_count, operators;
static unsigned astray, waiting;
static const char *held;
static struct {
	const char *function;
	ncclResult_t status;
} answers[ANSWERS];

/* Writes a line, waits where that is wanted, and gives the answer. */
__attribute__((format(printf, 2, 3))) static ncclResult_t say(
	const char *function, const char *format, ...)
{
	va_list list;
	ncclResult_t status = ncclSuccess;
	pthread_mutex_lock(&lock);
	size_t at = strlen(said);
	at += (size_t)snprintf(said + at, sizeof said - at, "%s ", function);
	va_start(list, format);
	at += (size_t)vsnprintf(said + at, sizeof said - at, format, list);
	va_end(list);
	snprintf(said + at, sizeof said - at, "\n");
	waiting++;
	pthread_cond_broadcast(&moved);
	while (held && !strcmp(held, function))
		pthread_cond_wait(&moved, &lock);
	waiting--;
	for (unsigned i = 0; i < ANSWERS; i++)
		if (answers[i].function && !strcmp(answers[i].function, function))
			status = answers[i].status;
	pthread_mutex_unlock(&lock);
	return status;
}

static int number(ncclComm_t comm)
{
	struct comm *c = (struct comm *)comm;
	if (!c || !c->alive)
		astray++;
	return c ? c->number : -1;
}

static ncclComm_t make(int ranks, int rank, const ncclConfig_t *config)
{
	const struct ckt_nccl_config *given = (const struct ckt_nccl_config *)config;
	pthread_mutex_lock(&lock);
	MUST(comm_count < COMMS, true);
	struct comm *c = &comms[comm_count];
	*c = (struct comm){.number = comm_count++, .ranks = ranks, .rank = rank, .alive = true};
	double_config = given ? *given : (struct ckt_nccl_config){0};
	double_without_blocking += given && !given->blocking;
	snprintf(double_net, sizeof double_net, "%s", given && given->net ? given->net : "");
	snprintf(double_name, sizeof double_name, "%s", given && given->name ? given->name : "");
	pthread_mutex_unlock(&lock);
	return (ncclComm_t)c;
}

/*
 * As the library: a communicator that does not block is there at once, and one that failed is not.
 */
static ncclResult_t given(
	ncclResult_t status, ncclComm_t *comm, int ranks, int rank, const ncclConfig_t *config)
{
	*comm = !status || status == ncclInProgress ? make(ranks, rank, config) : NULL;
	return status;
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return given(say("ncclCommInitRank", "%d %d id %d", ranks, rank, id.internal[0]), comm,
		ranks, rank, NULL);
}

static ncclResult_t init_config(
	ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	return given(say("ncclCommInitRankConfig", "%d %d id %d", ranks, rank, id.internal[0]),
		comm, ranks, rank, config);
}

static ncclResult_t init_scalable(
	ncclComm_t *comm, int ranks, int rank, int count, ncclUniqueId *ids, ncclConfig_t *config)
{
	return given(say("ncclCommInitRankScalable", "%d %d ids %d: %d ... %d", ranks, rank, count,
			     ids[0].internal[0], ids[count - 1].internal[0]),
		comm, ranks, rank, config);
}

static ncclResult_t split(
	ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config)
{
	ncclResult_t status =
		say("ncclCommSplit", "comm %d color %d key %d", number(comm), color, key);
	*made = NULL;
	return color == NCCL_SPLIT_NOCOLOR ? status : given(status, made, 2, 1, config);
}

static ncclResult_t shrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made,
	ncclConfig_t *config, int flags)
{
	return given(say("ncclCommShrink", "comm %d without %d: %d flags %d", number(comm), count,
			     excluded[0], flags),
		made, 3, 2, config);
}

static ncclResult_t finalize(ncclComm_t comm)
{
	return say("ncclCommFinalize", "comm %d", number(comm));
}

static ncclResult_t end(const char *function, ncclComm_t comm)
{
	ncclResult_t status = say(function, "comm %d", number(comm));
	((struct comm *)comm)->alive = false;
	return status;
}

static ncclResult_t destroy(ncclComm_t comm)
{
	return end("ncclCommDestroy", comm);
}

/* What waits on the communicator comes back. */
static ncclResult_t abort_comm(ncclComm_t comm)
{
	double_hold(NULL);
	return end("ncclCommAbort", comm);
}

static ncclResult_t revoke_comm(ncclComm_t comm, int flags)
{
	return say("ncclCommRevoke", "comm %d flags %d", number(comm), flags);
}

static ncclResult_t unique_id(ncclUniqueId *id)
{
	static char next = 40;
	memset(id, 0, sizeof *id);
	id->internal[0] = next++;
	id->internal[127] = 7;
	return say("ncclGetUniqueId", "%s", "");
}

static ncclResult_t get_version(int *version)
{
	*version = 22809;
	return ncclSuccess;
}

static const char *error_string(ncclResult_t status)
{
	return status == ncclSystemError ? "the system" : "something";
}

static const char *last_error(ncclComm_t comm)
{
	return "what was wrong last";
}

static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error)
{
	number(comm);
	*error = (ncclResult_t)double_state;
	return ncclSuccess;
}

static ncclResult_t count_of(const ncclComm_t comm, int *count)
{
	*count = ((struct comm *)comm)->ranks;
	return ncclSuccess;
}

static ncclResult_t rank_of(const ncclComm_t comm, int *rank)
{
	*rank = ((struct comm *)comm)->rank;
	return ncclSuccess;
}

static ncclResult_t operator_make(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
	ncclScalarResidence_t residence, ncclComm_t comm)
{
	*op = (ncclRedOp_t)(1000 + operators++);
	if (residence == ncclScalarDevice)
		return say("ncclRedOpCreatePreMulSum", "%d at %p type %d comm %d", *op, scalar,
			type, number(comm));
	return say("ncclRedOpCreatePreMulSum", "%d of %02x%02x type %d comm %d", *op,
		((uint8_t *)scalar)[0], ((uint8_t *)scalar)[1], type, number(comm));
}

static ncclResult_t operator_end(ncclRedOp_t op, ncclComm_t comm)
{
	return say("ncclRedOpDestroy", "%d comm %d", op, number(comm));
}

#define REDUCED(name, function)                                                                 \
	static ncclResult_t name(const void *s, void *r, size_t count, ncclDataType_t type,     \
		ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)                           \
	{                                                                                       \
		return say(#function, "%p %p %zu type %d op %d comm %d stream %p", s, r, count, \
			type, op, number(comm), (void *)stream);                                \
	}
#define MOVED(name, function)                                                                   \
	static ncclResult_t name(const void *s, void *r, size_t count, ncclDataType_t type,     \
		ncclComm_t comm, cudaStream_t stream)                                           \
	{                                                                                       \
		return say(#function, "%p %p %zu type %d comm %d stream %p", s, r, count, type, \
			number(comm), (void *)stream);                                          \
	}
#define ROOTED(name, function)                                                                    \
	static ncclResult_t name(const void *s, void *r, size_t count, ncclDataType_t type,       \
		int root, ncclComm_t comm, cudaStream_t stream)                                   \
	{                                                                                         \
		return say(#function, "%p %p %zu type %d root %d comm %d stream %p", s, r, count, \
			type, root, number(comm), (void *)stream);                                \
	}

REDUCED(all_reduce, ncclAllReduce)
REDUCED(reduce_scatter, ncclReduceScatter)
MOVED(all_gather, ncclAllGather)
MOVED(all_to_all, ncclAlltoAll)
ROOTED(broadcast, ncclBroadcast)
ROOTED(gather, ncclGather)
ROOTED(scatter, ncclScatter)

static ncclResult_t reduce(const void *s, void *r, size_t count, ncclDataType_t type,
	ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return say("ncclReduce", "%p %p %zu type %d op %d root %d comm %d stream %p", s, r, count,
		type, op, root, number(comm), (void *)stream);
}

static ncclResult_t send_one(const void *s, size_t count, ncclDataType_t type, int peer,
	ncclComm_t comm, cudaStream_t stream)
{
	return say("ncclSend", "%p %zu type %d peer %d comm %d stream %p", s, count, type, peer,
		number(comm), (void *)stream);
}

static ncclResult_t receive_one(
	void *r, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	return say("ncclRecv", "%p %zu type %d peer %d comm %d stream %p", r, count, type, peer,
		number(comm), (void *)stream);
}

static ncclResult_t group_start(void)
{
	return say("ncclGroupStart", "%s", "");
}

static ncclResult_t group_end(void)
{
	return say("ncclGroupEnd", "%s", "");
}

static ncclResult_t simulate_end(ncclSimInfo_t *info)
{
	info->estimatedTime = 12.5f;
	return say("ncclGroupSimulateEnd", "%s", "");
}

void double_begin(void)
{
	ckt_nccl = (struct ckt_nccl_functions){.ncclCommInitRank = init_rank,
		.ncclCommInitRankConfig = init_config,
		.ncclCommInitRankScalable = init_scalable,
		.ncclCommSplit = split,
		.ncclCommShrink = shrink,
		.ncclCommFinalize = finalize,
		.ncclCommDestroy = destroy,
		.ncclCommAbort = abort_comm,
		.ncclCommRevoke = revoke_comm,
		.ncclGetUniqueId = unique_id,
		.ncclGetVersion = get_version,
		.ncclGetErrorString = error_string,
		.ncclGetLastError = last_error,
		.ncclCommGetAsyncError = async_error,
		.ncclCommCount = count_of,
		.ncclCommUserRank = rank_of,
		.ncclRedOpCreatePreMulSum = operator_make,
		.ncclRedOpDestroy = operator_end,
		.ncclAllReduce = all_reduce,
		.ncclReduceScatter = reduce_scatter,
		.ncclAllGather = all_gather,
		.ncclAlltoAll = all_to_all,
		.ncclBroadcast = broadcast,
		.ncclGather = gather,
		.ncclScatter = scatter,
		.ncclReduce = reduce,
		.ncclSend = send_one,
		.ncclRecv = receive_one,
		.ncclGroupStart = group_start,
		.ncclGroupEnd = group_end,
		.ncclGroupSimulateEnd = simulate_end};
	memset(answers, 0, sizeof answers);
	double_state = ncclSuccess;
	operators = 0;
	double_hold(NULL);
	double_said();
}

const char *double_said(void)
{
	static char copy[sizeof said];
	pthread_mutex_lock(&lock);
	memcpy(copy, said, sizeof said);
	said[0] = 0;
	pthread_mutex_unlock(&lock);
	return copy;
}

void double_answer(const char *function, ncclResult_t status)
{
	for (unsigned i = 0; i < ANSWERS; i++)
		if (!answers[i].function || !strcmp(answers[i].function, function)) {
			answers[i].function = function;
			answers[i].status = status;
			return;
		}
}

void double_hold(const char *function)
{
	pthread_mutex_lock(&lock);
	held = function;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

void double_await(unsigned count)
{
	pthread_mutex_lock(&lock);
	while (waiting < count)
		pthread_cond_wait(&moved, &lock);
	pthread_mutex_unlock(&lock);
}

unsigned double_living(void)
{
	unsigned living = 0;
	for (int i = 0; i < comm_count; i++)
		living += comms[i].alive;
	return living;
}

unsigned double_astray(void)
{
	return astray;
}
