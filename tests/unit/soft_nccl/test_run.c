/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/run.c: collectives and messages of one to five ranks. */
#include "softgpu/libs/nccl/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/soft_nccl/ranks.h"

struct player {
	struct ckt_mesh mesh;
	uint64_t sequence;
	size_t count;
	int result;
	pthread_t thread;
};

static int at(int rank, size_t i)
{
	return (int)(i * 13 + (size_t)rank * 1000003);
}

static int *filled(int rank, size_t count)
{
	int *numbers = malloc(count * 4 + 4);
	for (size_t i = 0; i < count; i++)
		numbers[i] = at(rank, i);
	return numbers;
}

static int sum(int ranks, size_t i)
{
	unsigned total = 0;
	for (int r = 0; r < ranks; r++)
		total += (unsigned)at(r, i);
	return (int)total;
}

static int play(struct player *p, enum ckt_op_kind kind, int root, const int *from, int *to)
{
	struct ckt_op op = {.kind = kind,
		.type = ncclInt32,
		.peer = root,
		.from = from,
		.to = to,
		.count = p->count};
	return ckt_soft_nccl_run(&p->mesh, &p->sequence, &op, 1);
}

static void *collectives(void *data)
{
	struct player *p = data;
	int n = p->mesh.size, me = p->mesh.rank, root = n - 1, wrong = 0;
	size_t c = p->count, most = c * (size_t)n;
	int *from = filled(me, most), *to = calloc(most + 1, 4);
	wrong += play(p, CKT_OP_ALL_REDUCE, 0, from, to) != 0;
	for (size_t i = 0; i < c; i++)
		wrong += to[i] != sum(n, i);
	wrong += play(p, CKT_OP_REDUCE, root, from, me == root ? to + 1 : NULL) != 0;
	for (size_t i = 0; i < c && me == root; i++)
		wrong += to[i + 1] != sum(n, i);
	wrong += play(p, CKT_OP_REDUCE_SCATTER, 0, from, to) != 0;
	for (size_t i = 0; i < c; i++)
		wrong += to[i] != sum(n, (size_t)me * c + i);
	wrong += play(p, CKT_OP_ALL_GATHER, 0, from, to) != 0;
	for (size_t i = 0; i < most; i++)
		wrong += to[i] != at((int)(i / c), i % c);
	wrong += play(p, CKT_OP_BROADCAST, root, from, to) != 0;
	for (size_t i = 0; i < c; i++)
		wrong += to[i] != at(root, i);
	wrong += play(p, CKT_OP_ALL_TO_ALL, 0, from, to) != 0;
	for (size_t i = 0; i < most; i++)
		wrong += to[i] != at((int)(i / c), (size_t)me * c + i % c);
	memset(to, 0, most * 4);
	wrong += play(p, CKT_OP_GATHER, root, from, to) != 0;
	for (size_t i = 0; i < most; i++)
		wrong += to[i] != (me == root ? at((int)(i / c), i % c) : 0);
	wrong += play(p, CKT_OP_SCATTER, root, from, to) != 0;
	for (size_t i = 0; i < c; i++)
		wrong += to[i] != at(root, (size_t)me * c + i);
	/* In place. */
	wrong += play(p, CKT_OP_ALL_REDUCE, 0, from, from) != 0;
	for (size_t i = 0; i < c; i++)
		wrong += from[i] != sum(n, i);
	p->result = wrong;
	free(from);
	free(to);
	return NULL;
}

static void everyone(int ranks, size_t count, void *(*run)(void *))
{
	struct player players[RANKS_MOST] = {0};
	struct ckt_mesh meshes[RANKS_MOST];
	meshes_make(meshes, ranks);
	for (int r = 0; r < ranks; r++) {
		players[r].mesh = meshes[r];
		players[r].count = count;
		MUST(pthread_create(&players[r].thread, NULL, run, &players[r]), 0);
	}
	for (int r = 0; r < ranks; r++) {
		pthread_join(players[r].thread, NULL);
		IS(players[r].result, 0);
	}
	meshes_free(meshes, ranks);
}

static void test_collectives(void)
{
	for (int ranks = 1; ranks <= RANKS_MOST; ranks++) {
		everyone(ranks, 1, collectives);
		everyone(ranks, 1023, collectives);
	}
	/* More than a slice holds. */
	everyone(3, (1 << 20) + 77, collectives);
}

/* The own numbers times the rank and one, also where several slices are needed. */
static void *multiplied(void *data)
{
	struct player *p = data;
	int n = p->mesh.size, me = p->mesh.rank, wrong = 0, weight = 0;
	size_t most = p->count * (size_t)n;
	float *from = malloc(most * 4), *to = malloc(most * 4), factor = (float)(me + 1);
	struct ckt_op op = {.type = ncclFloat32,
		.from = from,
		.to = to,
		.count = p->count,
		.reduction = {.op = ncclSum, .premultiply = true}};
	memcpy(op.reduction.immediate, &factor, 4);
	for (size_t i = 0; i < most; i++)
		from[i] = (float)(i % 100);
	for (int r = 0; r < n; r++)
		weight += r + 1;
	static const enum ckt_op_kind kinds[] = {
		CKT_OP_ALL_REDUCE, CKT_OP_REDUCE, CKT_OP_REDUCE_SCATTER};
	for (size_t k = 0; k < COUNT(kinds); k++) {
		op.kind = kinds[k];
		wrong += ckt_soft_nccl_run(&p->mesh, &p->sequence, &op, 1) != 0;
		size_t first = op.kind == CKT_OP_REDUCE_SCATTER ? (size_t)me * p->count : 0;
		for (size_t i = 0; i < p->count && (op.kind != CKT_OP_REDUCE || me == 0); i++)
			wrong += to[i] != (float)((first + i) % 100) * (float)weight;
		op.reduction.scalar = &factor; /* read when it runs */
	}
	p->result = wrong;
	free(from);
	free(to);
	return NULL;
}

static void test_multiplied(void)
{
	everyone(2, 1000, multiplied);
	everyone(3, (1 << 20) + 5, multiplied);
}

/* In another order on each rank, and to oneself. */
static void *messages(void *data)
{
	struct player *p = data;
	int n = p->mesh.size, me = p->mesh.rank, wrong = 0, *in = calloc((size_t)n * p->count, 4);
	int *out = filled(me, p->count);
	struct ckt_op ops[2 * RANKS_MOST];
	for (int i = 0; i < n; i++) {
		int peer = (i + me) % n;
		ops[2 * i] = (struct ckt_op){.kind = CKT_OP_SEND,
			.type = ncclInt32,
			.peer = peer,
			.from = out,
			.count = p->count};
		ops[2 * i + 1] = (struct ckt_op){.kind = CKT_OP_RECEIVE,
			.type = ncclInt32,
			.peer = peer,
			.to = in + (size_t)peer * p->count,
			.count = p->count};
	}
	wrong += ckt_soft_nccl_run(&p->mesh, &p->sequence, ops, 2 * (size_t)n) != 0;
	for (size_t i = 0; i < (size_t)n * p->count; i++)
		wrong += in[i] != at((int)(i / p->count), i % p->count);
	p->result = wrong;
	free(in);
	free(out);
	return NULL;
}

static void test_messages(void)
{
	for (int ranks = 1; ranks <= RANKS_MOST; ranks++)
		everyone(ranks, 100003, messages);
}

/* One rank has another count: it is told, and nobody waits for ever. */
static void disagree(struct rank *rank)
{
	static atomic_int told;
	ncclResult_t state;
	int *numbers = ranks_ints(20, 0, 0);
	OK(ncclAllReduce(numbers, numbers, rank->rank == 1 ? 12 : 10, ncclInt32, ncclSum,
		rank->comm, (cudaStream_t)rank->stream));
	OK(cuStreamSynchronize(rank->stream));
	OK(ncclCommGetAsyncError(rank->comm, &state));
	YES(state == ncclInvalidUsage || state == ncclRemoteError);
	if (state == ncclInvalidUsage)
		atomic_fetch_add(&told, 1);
	ranks_free(numbers);
	OK(ncclCommDestroy(rank->comm));
	rank->comm = NULL;
	if (rank->rank == 0)
		YES(atomic_load(&told) >= 1 || state == ncclRemoteError);
}

static void test_disagreement(void)
{
	ranks_with_comms(3, disagree);
}

/* Work of a communicator that is gone is nothing. */
static void test_no_comm(void)
{
	int number = 5;
	union {
		struct ckt_work work;
		char room[sizeof(struct ckt_work) + sizeof(struct ckt_op)];
	} u = {.work = {.comm = UINT64_MAX, .count = 1}};
	u.work.ops[0] = (struct ckt_op){.kind = CKT_OP_BROADCAST,
		.type = ncclInt32,
		.from = &number,
		.to = &number,
		.count = 1};
	ckt_soft_nccl_run_work(&u.work);
	IS(number, 5);
}

UNIT_SUITE(run, {"every collective", test_collectives}, {"multiplied first", test_multiplied},
	{"messages", test_messages}, {"ranks that disagree", test_disagreement},
	{"no such communicator", test_no_comm})
