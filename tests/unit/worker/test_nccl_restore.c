/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_restore.c: the same messages as of a client, in a worker that does
 * not go yet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/group_kit.h"
#include "tests/unit/worker/nccl_kit.h"

static struct ckt_nccl_comm *find(uint64_t id)
{
	struct ckt_nccl_comm *comm = NULL;
	return ckt_worker_nccl_comm_find(&ckt_worker, id, &comm) ? NULL : comm;
}

static int64_t loaded(char *ret_message, size_t size)
{
	int result = ckt_worker_nccl_loaded(&ckt_worker, ret_message, size);
	ckt_worker.go = true;
	return result;
}

static void test_restore(void)
{
	struct ckt_nccl_ids pair = {.identity = {5, 6}, .id = {99}};
	char message[512] = "";
	nccl_begin();
	ckt_worker.go = false;
	/* Of one that the session does not have, too; told twice, the later word counts. */
	struct ckt_nccl_ids others[2] = {
		{.identity = {9}, .id = {98}}, {.identity = {5, 6}, .id = {97}}};
	IS(ckt_worker_nccl_ids_add(&ckt_worker, others, 2), 0);
	IS(ckt_worker_nccl_ids_add(&ckt_worker, &pair, 1), 0);
	IS(ckt_worker_nccl_ids_add(&ckt_worker, NULL, 0), 0);
	IS(ckt_worker_nccl_ids_add(&ckt_worker, &pair, CKT_NCCL_PAIRS_MAX - 2), -ENOSPC);
	/* A split one as the log has it: by its ranks and its identity, whatever its parent was. */
	IS(nccl_send(NCCL_ID(60), 4, 3, CKT_NCCL_SPLIT, NCCL_ID(1234))->result, CUDA_SUCCESS);
	IS(nccl_send(NCCL_ID(61), 4, 0, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	/* None came of this one. */
	IS(nccl_send(NCCL_ID(62), -1, -1, CKT_NCCL_NONE, NCCL_ID(1234))->result, CUDA_SUCCESS);
	IS(loaded(message, sizeof message), 0);
	const char *said = double_said();
	HAS(said, "ncclCommInitRank 4 3 id 99\n");
	HAS(said, "ncclCommInitRank 4 0 id 99\n");
	YES(!strstr(said, "Split"));
	YES(find(NCCL_ID(60))->real && find(NCCL_ID(61))->real && !find(NCCL_ID(62))->real);
	IS(nccl_end(NCCL_ID(60), CKT_NCCL_DESTROY), ncclSuccess);
	IS(nccl_end(NCCL_ID(61), CKT_NCCL_DESTROY), ncclSuccess);
	IS(nccl_end(NCCL_ID(62), CKT_NCCL_FORGET), ncclSuccess);
	IS(double_living(), 0);
}

/* Nobody told of an id: all ranks are here, and all of them get the same new one. */
static void test_restore_alone(void)
{
	char message[512] = "";
	nccl_begin();
	group_kit_begin();
	ckt_worker.go = false;
	double_hold("ncclCommInitRank");
	IS(nccl_send(NCCL_ID(70), 2, 0, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	IS(nccl_send(NCCL_ID(71), 2, 1, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	/* Both are on their way at one time; rank 1 has asked rank 0 for the id. */
	double_await(2);
	double_hold(NULL);
	IS(loaded(message, sizeof message), 0);
	const char *said = double_said(), *first = strstr(said, "InitRank 2 0 id "),
		   *second = strstr(said, "InitRank 2 1 id ");
	MUST(first && second, true);
	IS(atoi(first + 16), atoi(second + 16));
	YES(atoi(first + 16) != 5);
	IS(ckt_worker_nccl_loaded(&ckt_worker, message, sizeof message), 0);
	IS(nccl_end(NCCL_ID(70), CKT_NCCL_DESTROY), ncclSuccess);
	IS(nccl_end(NCCL_ID(71), CKT_NCCL_DESTROY), ncclSuccess);
	/* What cannot be made anew ends the restore with a sentence. */
	ckt_worker.go = false;
	double_answer("ncclCommInitRank", ncclSystemError);
	IS(nccl_send(NCCL_ID(72), 1, 0, CKT_NCCL_INIT, 0)->result, CUDA_SUCCESS);
	IS(loaded(message, sizeof message), -EIO);
	TEXT(message, "cannot recreate a communicator of 1 ranks: the system");
	/* A log that lies. */
	ckt_worker.go = false;
	IS(nccl_send(NCCL_ID(73), 2, 2, CKT_NCCL_SPLIT, 1)->result, CUDA_ERROR_INVALID_VALUE);
	ckt_worker.go = true;
	IS(nccl_end(NCCL_ID(72), CKT_NCCL_FORGET), ncclSuccess);
	IS(double_living(), 0);
	IS(ckt_worker_nccl_loaded(&ckt_worker, message, sizeof message), 0);
	group_kit_end();
}

UNIT_SUITE(
	worker_nccl_restore, {"of some ranks", test_restore}, {"of all ranks", test_restore_alone})
