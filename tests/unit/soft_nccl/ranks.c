/* SPDX-License-Identifier: Apache-2.0 */
/* See ranks.h. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/unit/soft_nccl/ranks.h"

static void *rank_main(void *data)
{
	struct rank *rank = data;
	CUcontext context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, rank->rank));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&rank->stream, CU_STREAM_NON_BLOCKING));
	rank->run(rank);
	OK(cuStreamSynchronize(rank->stream));
	OK(cuStreamDestroy(rank->stream));
	OK(cuCtxSetCurrent(NULL));
	return NULL;
}

void ranks_run(int count, void (*run)(struct rank *rank))
{
	struct rank ranks[RANKS_MOST] = {0};
	pthread_t threads[RANKS_MOST];
	ncclUniqueId id;
	OK(ncclGetUniqueId(&id));
	for (int r = 0; r < count; r++) {
		ranks[r] = (struct rank){.rank = r, .count = count, .id = id, .run = run};
		MUST(pthread_create(&threads[r], NULL, rank_main, &ranks[r]), 0);
	}
	for (int r = 0; r < count; r++)
		pthread_join(threads[r], NULL);
}

static void (*with_comm)(struct rank *rank);

static void comm_main(struct rank *rank)
{
	OK(ncclCommInitRank(&rank->comm, rank->count, rank->id, rank->rank));
	with_comm(rank);
	OK(cuStreamSynchronize(rank->stream));
	OK(ncclCommDestroy(rank->comm));
}

void ranks_with_comms(int count, void (*run)(struct rank *rank))
{
	with_comm = run;
	ranks_run(count, comm_main);
}

int *ranks_ints(size_t count, int first, int step)
{
	CUdeviceptr memory;
	OK(cuMemAlloc(&memory, count * sizeof(int)));
	/* The soft GPU's memory is the process's. */
	int *ints = (int *)memory;
	for (size_t i = 0; i < count; i++)
		ints[i] = first + (int)i * step;
	return ints;
}

void ranks_free(void *memory)
{
	OK(cuMemFree((CUdeviceptr)memory));
}

void meshes_make(struct ckt_mesh *meshes, int count)
{
	for (int r = 0; r < count; r++) {
		OK(ckt_soft_nccl_mesh_init(&meshes[r]));
		OK(ckt_soft_nccl_mesh_set_size(&meshes[r], r, count));
	}
	for (int a = 0; a < count; a++) {
		for (int b = a + 1; b < count; b++) {
			for (int plane = 0; plane < CKT_PLANES; plane++) {
				int pair[2];
				OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
				meshes[a].planes[plane].sockets[b] = pair[0];
				meshes[b].planes[plane].sockets[a] = pair[1];
			}
		}
	}
}

void meshes_free(struct ckt_mesh *meshes, int count)
{
	for (int r = 0; r < count; r++)
		ckt_soft_nccl_mesh_fini(&meshes[r]);
}
