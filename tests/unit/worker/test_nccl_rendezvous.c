/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_rendezvous.c: ranks agree on an id of rank 0's, and on none that
 * somebody else left.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/group_kit.h"
#include "tests/unit/worker/nccl_kit.h"

static uint8_t identity[CKT_NCCL_ID_BYTES] = {77, 1}, other[CKT_NCCL_ID_BYTES] = {77, 2};

static void *first(void *id)
{
	usleep(20000);
	IS(ckt_worker_nccl_meet(identity, 0, 0, id), ncclSuccess);
	return NULL;
}

static void test_meet(void)
{
	ncclUniqueId mine = {{0}}, theirs = {{0}}, again;
	pthread_t thread;
	nccl_begin();
	group_kit_begin();
	pthread_create(&thread, NULL, first, &mine);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 60000, &theirs), ncclSuccess);
	pthread_join(thread, NULL);
	YES(!memcmp(&mine, &theirs, sizeof mine) && mine.internal[127] == 7);
	/* As often as there are ranks; of another communicator there is nothing. */
	IS(ckt_worker_nccl_meet(identity, 3, ckt_net_now_ms() + 60000, &again), ncclSuccess);
	YES(!memcmp(&mine, &again, sizeof mine));
	IS(ckt_worker_nccl_meet(other, 1, ckt_net_now_ms() + 10, &again), ncclRemoteError);
	ckt_worker_nccl_met(identity);
	IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 10, &again), ncclRemoteError);
	/* The library makes none. */
	double_answer("ncclGetUniqueId", ncclSystemError);
	IS(ckt_worker_nccl_meet(identity, 0, 0, &again), ncclSystemError);
	double_answer("ncclGetUniqueId", ncclSuccess);
	group_kit_end();
}

/* Another that says it is rank 0, of another communicator or in another form. */
static size_t said;

static void lie(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	static const char bytes[1024];
	(void)worker, (void)name;
	send(connection, bytes, said, MSG_NOSIGNAL);
}

static void test_lies(void)
{
	struct ckt_group_name name;
	ncclUniqueId id;
	nccl_begin();
	group_kit_begin();
	IS(ckt_worker_nccl_meet(identity, 0, 0, &id), ncclSuccess);
	while (!group_kit.name_count)
		usleep(1000);
	name = group_kit.names[0];
	ckt_worker_nccl_met(identity);
	IS(ckt_group_claim(&name, lie), 0);
	for (said = 0; said < 1024; said += 8 + said / 4)
		IS(ckt_worker_nccl_meet(identity, 1, ckt_net_now_ms() + 5, &id), ncclRemoteError);
	ckt_group_drop(&name);
	group_kit_end();
}

UNIT_SUITE(worker_nccl_meet, {"rank 0 makes the id", test_meet}, {"lies", test_lies})
