/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives over the sockets of a mesh.
 *
 * A header before the first piece to a peer names the collective, so ranks that make different
 * calls get an error.  Reductions work in slices.  Each rank reduces its part of a slice in the
 * order of the ranks, so a sum does not depend on the ranks' speed.
 */
#include "softgpu/libs/nccl/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/common/driver.h"

/* The size of a buffer for each rank, in addition to the program's own buffers. */
enum { SLICE_BYTES = 4 << 20 };

struct header {
	uint64_t sequence; /* number of a collective; 0: a message */
	uint64_t count;    /* for a message: its bytes */
	uint32_t kind, type, op, root;
};

/* The transfers of one step, with the headers in both directions. */
struct step {
	struct ckt_mesh *mesh;
	struct header mine;
	struct header *theirs; /* by peer */
	bool said;             /* the headers are sent */
	struct ckt_transfer *transfers;
	size_t count, room;
};

static int piece(struct step *step, int peer, bool send, const void *data, size_t bytes,
	const void *expected)
{
	if (step->count == step->room) {
		size_t room = step->room ? 2 * step->room : 32;
		struct ckt_transfer *grown = reallocarray(step->transfers, room, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		step->transfers = grown;
		step->room = room;
	}
	step->transfers[step->count++] = (struct ckt_transfer){.peer = peer,
		.send = send,
		.data = (void *)data,
		.bytes = bytes,
		.expected = expected};
	return 0;
}

/* Adds a piece of a collective, with a header before the first one. */
static int move(struct step *step, int peer, bool send, const void *data, size_t bytes)
{
	int error = 0;
	if (!step->said)
		error = send ? piece(step, peer, true, &step->mine, sizeof step->mine, NULL)
			     : piece(step, peer, false, &step->theirs[peer], sizeof step->mine,
				       &step->mine);
	return error ? error : piece(step, peer, send, data, bytes, NULL);
}

static int exchange(struct step *step)
{
	int error = ckt_soft_nccl_mesh_exchange(
		step->mesh, CKT_PLANE_DATA, step->transfers, step->count);
	step->count = 0;
	step->said = true;
	return error;
}

static void copy(void *to, const void *from, size_t bytes)
{
	if (to != from && bytes)
		memmove(to, from, bytes);
}

/* ---- Reductions */

/*
 * The memory of a reduction: a slice of each peer, and of this rank if its numbers are multiplied
 * first.
 */
struct reducer {
	const struct ckt_op *op;
	size_t size;     /* bytes of a number */
	size_t slice;    /* numbers in each of the buffers */
	char *buffers;   /* by rank */
	const void **in; /* by rank */
};

static int reducer_init(struct reducer *r, const struct step *step, const struct ckt_op *op)
{
	size_t ranks = (size_t)step->mesh->size;
	*r = (struct reducer){.op = op, .size = ckt_soft_nccl_type_size(op->type)};
	r->slice = SLICE_BYTES / r->size;
	if (r->slice > op->count)
		r->slice = op->count;
	r->buffers = malloc(ranks * r->slice * r->size + 1);
	r->in = calloc(ranks, sizeof *r->in);
	return r->buffers && r->in ? 0 : -ENOMEM;
}

static void reducer_fini(struct reducer *r)
{
	free(r->buffers);
	free(r->in);
}

static char *buffer(const struct reducer *r, int rank)
{
	return r->buffers + (size_t)rank * r->slice * r->size;
}

/*
 * Returns `count` numbers of this rank.  If the operation multiplies them first, they are in
 * `multiplied`.
 */
static const void *own(const struct reducer *r, const void *from, size_t count, void *multiplied)
{
	const struct ckt_reduction *how = &r->op->reduction;
	if (!how->premultiply)
		return from;
	ckt_soft_nccl_multiply(
		multiplied, from, how->scalar ? how->scalar : how->immediate, count, r->op->type);
	return multiplied;
}

static void reduce(const struct reducer *r, int ranks, void *out, size_t count)
{
	ckt_soft_nccl_reduce(out, r->in, ranks, count, r->op->type, r->op->reduction.op);
}

/* A slice of an all-reduce: each rank reduces a part of it and sends the result to all ranks. */
static int all_reduce_slice(
	struct step *step, struct reducer *r, const char *from, char *to, size_t count)
{
	int ranks = step->mesh->size, me = step->mesh->rank, error = 0;
	size_t n = (size_t)ranks, size = r->size;
#define PART(rank) \
	(count / n * (size_t)(rank) + (count % n < (size_t)(rank) ? count % n : (size_t)(rank)))
#define PART_COUNT(rank) (PART((rank) + 1) - PART(rank))
	/* Multiplied numbers use this rank's buffer, which holds a whole slice. */
	const char *mine = own(r, from, count, buffer(r, me));
	for (int p = 0; p < ranks && !error; p++) {
		r->in[p] = p == me ? mine + PART(me) * size : buffer(r, p);
		if (p == me)
			continue;
		error = move(step, p, true, mine + PART(p) * size, PART_COUNT(p) * size);
		if (!error)
			error = move(step, p, false, buffer(r, p), PART_COUNT(me) * size);
	}
	if (!error)
		error = exchange(step);
	if (error)
		return error;
	reduce(r, ranks, to + PART(me) * size, PART_COUNT(me));
	for (int p = 0; p < ranks && !error; p++) {
		if (p == me)
			continue;
		error = move(step, p, true, to + PART(me) * size, PART_COUNT(me) * size);
		if (!error)
			error = move(step, p, false, to + PART(p) * size, PART_COUNT(p) * size);
	}
#undef PART
#undef PART_COUNT
	return error ? error : exchange(step);
}

static int reduce_slice(
	struct step *step, struct reducer *r, const char *from, char *to, size_t count)
{
	int ranks = step->mesh->size, me = step->mesh->rank, root = r->op->peer, error = 0;
	r->in[me] = own(r, from, count, buffer(r, me));
	if (me != root)
		error = move(step, root, true, r->in[me], count * r->size);
	for (int p = 0; p < ranks && me == root && !error; p++) {
		if (p == me)
			continue;
		r->in[p] = buffer(r, p);
		error = move(step, p, false, buffer(r, p), count * r->size);
	}
	if (!error)
		error = exchange(step);
	if (!error && me == root)
		reduce(r, ranks, to, count);
	return error;
}

/* `from` is the position of the slice in the first rank's block. */
static int reduce_scatter_slice(
	struct step *step, struct reducer *r, const char *from, char *to, size_t count)
{
	int ranks = step->mesh->size, me = step->mesh->rank, error = 0;
	size_t block = r->op->count * r->size, bytes = count * r->size;
	/* The multiplied numbers for all ranks, if the operation multiplies. */
	char *multiplied = r->op->reduction.premultiply ? malloc((size_t)ranks * bytes + 1) : NULL;
	if (r->op->reduction.premultiply && !multiplied)
		return -ENOMEM;
	for (int p = 0; p < ranks && !error; p++) {
		const void *mine = own(r, from + (size_t)p * block, count,
			multiplied ? multiplied + (size_t)p * bytes : NULL);
		r->in[p] = p == me ? mine : buffer(r, p);
		if (p == me)
			continue;
		error = move(step, p, true, mine, bytes);
		if (!error)
			error = move(step, p, false, buffer(r, p), bytes);
	}
	if (!error)
		error = exchange(step);
	if (!error)
		reduce(r, ranks, to, count);
	free(multiplied);
	return error;
}

static int run_reduction(struct step *step, const struct ckt_op *op)
{
	struct reducer r;
	int error = reducer_init(&r, step, op);
	for (size_t at = 0; at < op->count && !error; at += r.slice) {
		size_t count = op->count - at < r.slice ? op->count - at : r.slice;
		const char *from = (const char *)op->from + at * r.size;
		char *to = op->to ? (char *)op->to + at * r.size : NULL;
		if (op->kind == CKT_OP_ALL_REDUCE)
			error = all_reduce_slice(step, &r, from, to, count);
		else if (op->kind == CKT_OP_REDUCE)
			error = reduce_slice(step, &r, from, to, count);
		else
			error = reduce_scatter_slice(step, &r, from, to, count);
	}
	reducer_fini(&r);
	return error;
}

/* ---- Collectives that only move data */

static int run_movement(struct step *step, const struct ckt_op *op)
{
	int ranks = step->mesh->size, me = step->mesh->rank, root = op->peer, error = 0;
	size_t bytes = op->count * ckt_soft_nccl_type_size(op->type);
	const char *from = op->from;
	char *to = op->to;
	/* Each rank sends to each, or only the root sends or receives. */
	bool sends = op->kind == CKT_OP_ALL_GATHER || op->kind == CKT_OP_ALL_TO_ALL ||
		(op->kind == CKT_OP_GATHER ? me != root : me == root);
	bool receives = op->kind == CKT_OP_ALL_GATHER || op->kind == CKT_OP_ALL_TO_ALL ||
		(op->kind == CKT_OP_GATHER ? me == root : me != root);
	bool many_from = op->kind == CKT_OP_ALL_TO_ALL || op->kind == CKT_OP_SCATTER;
	bool many_to = op->kind == CKT_OP_ALL_TO_ALL || op->kind == CKT_OP_ALL_GATHER ||
		op->kind == CKT_OP_GATHER;
	bool to_root = op->kind == CKT_OP_GATHER,
	     of_root = op->kind == CKT_OP_BROADCAST || op->kind == CKT_OP_SCATTER;
	for (int p = 0; p < ranks && !error; p++) {
		if (p == me)
			continue;
		if (sends && (!to_root || p == root))
			error = move(
				step, p, true, from + (many_from ? (size_t)p * bytes : 0), bytes);
		if (!error && receives && (!of_root || p == root))
			error = move(step, p, false, to + (many_to ? (size_t)p * bytes : 0), bytes);
	}
	if (!error)
		error = exchange(step);
	/* Copies this rank's own block; in place, it is there already. */
	if (!error && (me == root || (!of_root && !to_root)))
		copy(to + (many_to ? (size_t)me * bytes : 0),
			from + (many_from ? (size_t)me * bytes : 0), bytes);
	return error;
}

static int run_collective(struct ckt_mesh *mesh, uint64_t *sequence, const struct ckt_op *op)
{
	bool reduces = op->kind == CKT_OP_ALL_REDUCE || op->kind == CKT_OP_REDUCE ||
		op->kind == CKT_OP_REDUCE_SCATTER;
	bool rooted = op->kind == CKT_OP_REDUCE || op->kind == CKT_OP_BROADCAST ||
		op->kind == CKT_OP_GATHER || op->kind == CKT_OP_SCATTER;
	struct step step = {.mesh = mesh};
	step.mine = (struct header){
		.sequence = ++*sequence,
		.count = op->count,
		.kind = op->kind,
		.type = op->type,
		.op = reduces ? op->reduction.op : 0,
		.root = rooted ? (uint32_t)op->peer : 0,
	};
	step.theirs = calloc((size_t)mesh->size, sizeof *step.theirs);
	int error = !step.theirs ? -ENOMEM
		: !op->count     ? 0
		: reduces        ? run_reduction(&step, op)
				 : run_movement(&step, op);
	free(step.theirs);
	free(step.transfers);
	return error;
}

/* ---- Messages */

/* Copies this rank's messages to itself, in order.  The group was refused if they do not match. */
static void copy_own(const struct ckt_mesh *mesh, const struct ckt_op *ops, size_t count)
{
	size_t r = 0;
	for (size_t s = 0; s < count; s++) {
		if (ops[s].kind != CKT_OP_SEND || ops[s].peer != mesh->rank)
			continue;
		while (r < count && (ops[r].kind != CKT_OP_RECEIVE || ops[r].peer != mesh->rank))
			r++;
		if (r < count)
			copy(ops[r].to, ops[s].from,
				ops[r].count * ckt_soft_nccl_type_size(ops[r].type));
		r++;
	}
}

static int run_messages(struct ckt_mesh *mesh, const struct ckt_op *ops, size_t count)
{
	struct step step = {.mesh = mesh, .said = true};
	struct header *headers = calloc(2 * count + 1, sizeof *headers);
	int error = headers ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !error; i++) {
		const struct ckt_op *op = &ops[i];
		bool send = op->kind == CKT_OP_SEND;
		if ((!send && op->kind != CKT_OP_RECEIVE) || op->peer == mesh->rank)
			continue;
		size_t bytes = op->count * ckt_soft_nccl_type_size(op->type);
		struct header *own = &headers[2 * i], *theirs = own + 1;
		*own = (struct header){.count = bytes, .kind = CKT_OP_SEND};
		error = send ? piece(&step, op->peer, true, own, sizeof *own, NULL)
			     : piece(&step, op->peer, false, theirs, sizeof *theirs, own);
		if (!error)
			error = piece(&step, op->peer, send, send ? op->from : op->to, bytes, NULL);
	}
	if (!error)
		error = exchange(&step);
	if (!error)
		copy_own(mesh, ops, count);
	free(headers);
	free(step.transfers);
	return error;
}

int ckt_soft_nccl_run(
	struct ckt_mesh *mesh, uint64_t *sequence, const struct ckt_op *ops, size_t count)
{
	bool messages = false;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind == CKT_OP_SEND || ops[i].kind == CKT_OP_RECEIVE) {
			messages = true;
			continue;
		}
		int error = run_collective(mesh, sequence, &ops[i]);
		if (error)
			return error;
	}
	return messages ? run_messages(mesh, ops, count) : 0;
}

/* ---- On a stream */

static void report(struct ncclComm *comm, int error)
{
	if (error == -ECANCELED)
		return;
	if (error == -EPROTO)
		ckt_soft_nccl_comm_say(
			"rank %d of %d: a peer called another operation, or with another count, type or root",
			comm->rank, comm->size);
	else if (error == -EPIPE)
		ckt_soft_nccl_comm_say("rank %d of %d: a peer is gone", comm->rank, comm->size);
	else
		ckt_soft_nccl_comm_say(
			"rank %d of %d: %s", comm->rank, comm->size, strerror(-error));
	ckt_soft_nccl_comm_fail(comm,
		error == -EPROTO          ? ncclInvalidUsage
			: error == -EPIPE ? ncclRemoteError
					  : ncclSystemError);
	/* Other ranks may wait for this one, so end the plane. */
	ckt_soft_nccl_mesh_shut(&comm->mesh, CKT_PLANE_DATA);
}

void ckt_soft_nccl_run_work(const void *data)
{
	const struct ckt_work *work = data;
	struct ncclComm *comm = ckt_soft_nccl_comm_find(work->comm);
	if (!comm)
		return;
	pthread_mutex_lock(&comm->running);
	pthread_mutex_lock(&comm->lock);
	bool fit = comm->error == ncclSuccess;
	pthread_mutex_unlock(&comm->lock);
	if (fit) {
		int error = ckt_soft_nccl_run(&comm->mesh, &comm->sequence, work->ops, work->count);
		if (error)
			report(comm, error);
	}
	pthread_mutex_unlock(&comm->running);
	if (!work->captured) {
		pthread_mutex_lock(&comm->lock);
		comm->pending--;
		pthread_cond_broadcast(&comm->changed);
		pthread_mutex_unlock(&comm->lock);
	}
	ckt_soft_nccl_comm_put(comm);
}
