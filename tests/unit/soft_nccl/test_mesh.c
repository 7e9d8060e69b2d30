/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/mesh.c: pieces between ranks, and new sockets. */
#include "softgpu/libs/nccl/mesh.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/soft_nccl/ranks.h"

enum { LARGE = 3 << 20 };

static struct ckt_mesh meshes[3];

/* Both send a lot before they receive: nobody may wait for the other to take it. */
static void *swap(void *data)
{
	struct ckt_mesh *mesh = data;
	int peer = 1 - mesh->rank;
	char *out = malloc(LARGE), *in = malloc(LARGE), more[3] = "..";
	memset(out, 'a' + mesh->rank, LARGE);
	struct ckt_transfer pieces[] = {
		{.peer = peer, .send = true, .data = out, .bytes = LARGE},
		{.peer = peer, .send = true, .data = "xy", .bytes = 2},
		{.peer = peer, .data = in, .bytes = LARGE},
		{.peer = peer, .send = true, .bytes = 0},
		{.peer = peer, .data = more, .bytes = 2, .expected = "xy"},
	};
	IS(ckt_soft_nccl_mesh_exchange(mesh, CKT_PLANE_DATA, pieces, COUNT(pieces)), 0);
	TEXT(more, "xy");
	int wrong = 0;
	for (int i = 0; i < LARGE; i++)
		wrong += in[i] != 'a' + peer;
	IS(wrong, 0);
	free(out);
	free(in);
	return NULL;
}

static void test_exchange(void)
{
	pthread_t thread;
	meshes_make(meshes, 2);
	MUST(pthread_create(&thread, NULL, swap, &meshes[1]), 0);
	swap(&meshes[0]);
	pthread_join(thread, NULL);
	meshes_free(meshes, 2);
}

static void test_unexpected(void)
{
	char got[4];
	struct ckt_transfer send = {.peer = 1, .send = true, .data = "abcd", .bytes = 4};
	struct ckt_transfer receive = {.peer = 0, .data = got, .bytes = 4, .expected = "abce"};
	meshes_make(meshes, 2);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[0], CKT_PLANE_DATA, &send, 1), 0);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &receive, 1), -EPROTO);
	meshes_free(meshes, 2);
}

/* What a peer sent before it went is still there; nothing comes after it. */
static void test_gone(void)
{
	char got[4];
	struct ckt_transfer send = {.peer = 1, .send = true, .data = "abcd", .bytes = 4},
			    receive = {.peer = 0, .data = got, .bytes = 4};
	meshes_make(meshes, 2);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[0], CKT_PLANE_DATA, &send, 1), 0);
	ckt_soft_nccl_mesh_fini(&meshes[0]);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &receive, 1), 0);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &receive, 1), -EPIPE);
	meshes_free(meshes, 2);
	meshes_make(meshes, 2);
	ckt_soft_nccl_mesh_shut(&meshes[0], CKT_PLANE_DATA);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &receive, 1), -EPIPE);
	send.peer = 0;
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &send, 1), -EPIPE);
	/* The other plane goes on. */
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_CONTROL, &send, 1), 0);
	meshes_free(meshes, 2);
}

static void *stop_soon(void *data)
{
	usleep(20000);
	ckt_soft_nccl_mesh_stop(data, CKT_PLANE_DATA);
	return NULL;
}

static void test_stop(void)
{
	char got[4];
	pthread_t thread;
	struct ckt_transfer receive = {.peer = 0, .data = got, .bytes = 4};
	meshes_make(meshes, 2);
	MUST(pthread_create(&thread, NULL, stop_soon, &meshes[1]), 0);
	IS(ckt_soft_nccl_mesh_exchange(&meshes[1], CKT_PLANE_DATA, &receive, 1), -ECANCELED);
	pthread_join(thread, NULL);
	YES(ckt_soft_nccl_mesh_stopped(&meshes[1], CKT_PLANE_DATA));
	NO(ckt_soft_nccl_mesh_stopped(&meshes[1], CKT_PLANE_CONTROL));
	IS(ckt_soft_nccl_mesh_wait_readable(
		   &meshes[1], CKT_PLANE_DATA, meshes[1].planes[CKT_PLANE_CONTROL].sockets[0]),
		-ECANCELED);
	meshes_free(meshes, 2);
}

/* Ranks 2, 0 and 1 as the ranks 0, 1 and 2 of a new mesh. */
static void *derive(void *data)
{
	static const int members[] = {2, 0, 1}, ranks[] = {1, 2, 0};
	struct ckt_mesh *mesh = data, made;
	OK(ckt_soft_nccl_mesh_init(&made));
	OK(ckt_soft_nccl_mesh_set_size(&made, ranks[mesh->rank], 3));
	IS(ckt_soft_nccl_mesh_derive(mesh, members, &made), 0);
	for (int plane = 0; plane < CKT_PLANES; plane++) {
		char words[3][8], mine[8] = {(char)made.rank, (char)plane};
		struct ckt_transfer pieces[6];
		size_t count = 0;
		for (int p = 0; p < 3; p++) {
			if (p == made.rank)
				continue;
			pieces[count++] = (struct ckt_transfer){
				.peer = p, .send = true, .data = mine, .bytes = 8};
			pieces[count++] =
				(struct ckt_transfer){.peer = p, .data = words[p], .bytes = 8};
		}
		IS(ckt_soft_nccl_mesh_exchange(&made, (enum ckt_plane)plane, pieces, count), 0);
		for (int p = 0; p < 3; p++)
			YES(p == made.rank || (words[p][0] == p && words[p][1] == plane));
	}
	ckt_soft_nccl_mesh_fini(&made);
	return NULL;
}

static void test_derive(void)
{
	pthread_t threads[3];
	meshes_make(meshes, 3);
	for (int r = 0; r < 3; r++)
		MUST(pthread_create(&threads[r], NULL, derive, &meshes[r]), 0);
	for (int r = 0; r < 3; r++)
		pthread_join(threads[r], NULL);
	meshes_free(meshes, 3);
}

UNIT_SUITE(mesh, {"pieces in both directions", test_exchange},
	{"a piece that is another", test_unexpected}, {"a peer that is gone", test_gone},
	{"stopped from another thread", test_stop}, {"a mesh out of another's", test_derive})
