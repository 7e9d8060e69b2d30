/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/root.c: unique ids, and where ranks meet. */
#include "softgpu/libs/nccl/root.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/soft_nccl/ranks.h"

struct guest {
	ncclUniqueId id;
	int rank, size, device;
	struct ckt_mesh mesh;
	ncclResult_t result;
	const char *why;
	pthread_t thread;
};

static void *join(void *data)
{
	struct guest *guest = data;
	guest->result =
		ckt_soft_nccl_root_join(&guest->id, &guest->mesh, guest->device, &guest->why);
	return NULL;
}

static void prepare(struct guest *guest, const ncclUniqueId *id, int rank, int size, int device)
{
	*guest = (struct guest){.id = *id, .rank = rank, .size = size, .device = device};
	OK(ckt_soft_nccl_mesh_init(&guest->mesh));
	OK(ckt_soft_nccl_mesh_set_size(&guest->mesh, rank, size));
}

static void start(struct guest *guest, const ncclUniqueId *id, int rank, int size, int device)
{
	prepare(guest, id, rank, size, device);
	MUST(pthread_create(&guest->thread, NULL, join, guest), 0);
}

static void end(struct guest *guest, ncclResult_t expected)
{
	pthread_join(guest->thread, NULL);
	IS(guest->result, expected);
	ckt_soft_nccl_mesh_fini(&guest->mesh);
}

static void test_meeting(void)
{
	ncclUniqueId id, other;
	struct guest guests[4];
	OK(ckt_soft_nccl_root_make(&id));
	OK(ckt_soft_nccl_root_make(&other));
	YES(ckt_soft_nccl_root_is_id(&id) && memcmp(&id, &other, sizeof id) != 0);
	/* Two meetings at once, their ranks mixed. */
	for (int g = 0; g < 4; g++)
		start(&guests[g], g % 2 ? &id : &other, g / 2, 2, g / 2);
	for (int g = 0; g < 4; g++) {
		pthread_join(guests[g].thread, NULL);
		IS(guests[g].result, ncclSuccess);
		for (int plane = 0; plane < CKT_PLANES; plane++)
			YES(guests[g].mesh.planes[plane].sockets[1 - g / 2] >= 0);
	}
	for (int g = 0; g < 2; g++) {
		char word[3] = "";
		struct ckt_transfer send = {.peer = 1,
					    .send = true,
					    .data = g ? "B" : "A",
					    .bytes = 1},
				    receive = {.peer = 0, .data = word, .bytes = 1};
		IS(ckt_soft_nccl_mesh_exchange(&guests[g].mesh, CKT_PLANE_DATA, &send, 1), 0);
		IS(ckt_soft_nccl_mesh_exchange(&guests[2 + g].mesh, CKT_PLANE_DATA, &receive, 1),
			0);
		TEXT(word, g ? "B" : "A");
	}
	for (int g = 0; g < 4; g++)
		ckt_soft_nccl_mesh_fini(&guests[g].mesh);
	/* An id serves once. */
	start(&guests[0], &id, 0, 2, 0);
	end(&guests[0], ncclRemoteError);
	HAS(guests[0].why, "was used before");
}

static void refuse(int rank, int size, int device, const char *why)
{
	ncclUniqueId id;
	struct guest first, second;
	OK(ckt_soft_nccl_root_make(&id));
	start(&first, &id, 0, 3, 0);
	usleep(30000);
	start(&second, &id, rank, size, device);
	end(&second, ncclInvalidUsage);
	end(&first, ncclInvalidUsage);
	HAS(second.why, why);
}

static void test_refused(void)
{
	ncclUniqueId zero = {0};
	refuse(1, 2, 1, "disagree");
	refuse(0, 3, 1, "same rank");
	refuse(1, 3, 0, "Duplicate GPU");
	NO(ckt_soft_nccl_root_is_id(&zero));
}

/* A rank that dies while others wait; a root that died; one's own end. */
static void test_gone(void)
{
	ncclUniqueId id;
	struct guest guest;
	int fds[2];
	OK(ckt_soft_nccl_root_make(&id));
	start(&guest, &id, 0, 2, 0);
	usleep(30000);
	ckt_soft_nccl_mesh_stop(&guest.mesh, CKT_PLANE_CONTROL);
	end(&guest, ncclSystemError);
	OK(ckt_soft_nccl_root_make(&id));
	start(&guest, &id, 0, 3, 0);
	pid_t child;
	/*
	 * A child that is killed before it was there tells nobody anything: the next one has
	 * longer.
	 */
	for (unsigned wait_ms = 30;; wait_ms *= 2) {
		child = fork();
		if (child == 0) {
			struct guest mine;
			prepare(&mine, &id, 1, 3, 1);
			join(&mine);
			_exit(0);
		}
		usleep(1000 * wait_ms);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		usleep(1000 * wait_ms);
		if (pthread_tryjoin_np(guest.thread, NULL) == 0)
			break;
	}
	IS(guest.result, ncclRemoteError);
	HAS(guest.why, "a rank ended");
	ckt_soft_nccl_mesh_fini(&guest.mesh);
	/* The child's root is its own, and goes with it. */
	OK(pipe(fds));
	child = fork();
	if (child == 0) {
		ncclUniqueId made;
		ckt_soft_nccl_root_make(&made);
		_exit(write(fds[1], &made, sizeof made) != sizeof made);
	}
	IS(read(fds[0], &id, sizeof id), sizeof id);
	waitpid(child, NULL, 0);
	start(&guest, &id, 0, 2, 0);
	end(&guest, ncclRemoteError);
	HAS(guest.why, "is gone");
	close(fds[0]);
	close(fds[1]);
}

UNIT_SUITE(root, {"ranks meet, once", test_meeting}, {"who does not fit", test_refused},
	{"who is gone", test_gone})
