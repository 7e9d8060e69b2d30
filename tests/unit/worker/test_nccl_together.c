/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/nccl/nccl_together.c: a session leaves with the other ranks of its communicators only where
 * all of them say that they stand still, and is of a cut only with all that are held for the same one.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/group_kit.h"
#include "tests/unit/worker/nccl_kit.h"

static char text[1024];

/* What another rank's worker says; 0: nothing. */
static char said;

static void say(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)worker, (void)name;
	if (said)
		send(connection, &said, 1, MSG_NOSIGNAL);
}

static struct ckt_group_name name_of(uint32_t rank)
{
	/* As nccl_kit.h has it. */
	static const uint8_t identity[CKT_NCCL_ID_BYTES] = {5, 6};
	struct ckt_group_name name = {CKT_GROUP_RANK};
	uint8_t hash[CKT_HASH_SIZE];
	ckt_blob_hash(identity, sizeof identity, hash);
	memcpy(name.bytes + CKT_GROUP_RANK_PREFIX, hash,
		CKT_GROUP_COMMUNICATOR - CKT_GROUP_RANK_PREFIX);
	memcpy(name.bytes + CKT_GROUP_COMMUNICATOR, &rank, sizeof rank);
	return name;
}

static int check(void)
{
	*text = 0;
	return ckt_worker_nccl_together_check(text, sizeof text);
}

/* As another rank's worker asks this one. */
static char ask(uint32_t rank)
{
	const struct ckt_group_name name = name_of(rank);
	char byte = 0;
	int connection = ckt_group_ask(&name, 0);
	MUST(connection >= 0, true);
	IS(ckt_net_receive(connection, &byte, 1, 0), 1);
	close(connection);
	return byte;
}

static void test_check(void)
{
	nccl_begin();
	group_kit_begin();
	IS(check(), 0);
	nccl_make(NCCL_ID(90), 1, 0);
	IS(check(), 0);
	NO(ckt_worker_nccl_is_first());
	nccl_make(NCCL_ID(91), 3, 0);
	YES(ckt_worker_nccl_is_first());
	struct ckt_group_name second = name_of(1), third = name_of(2);
	YES(ckt_group_is_rank(&second) && ckt_group_same_communicator(&second, &third));
	IS(check(), -EBUSY);
	HAS(text, "rank 1 of its NCCL communicator is at another server, or of another owner");
	said = 's';
	IS(ckt_group_claim(&second, say), 0);
	IS(check(), -EBUSY);
	HAS(text, "rank 2 of its NCCL communicator is at another server");
	IS(ckt_group_claim(&third, say), 0);
	IS(check(), 0);
	/* One that runs, and what is no answer. */
	for (const char *lie = "rxn"; *lie; lie++) {
		said = *lie;
		IS(check(), -EBUSY);
		HAS(text, "rank 1 of its NCCL communicator");
	}
	said = 0;
	IS(check(), -EBUSY);
	HAS(text, "rank 1 of its NCCL communicator cannot leave with it now");
	ckt_group_drop(&second);
	ckt_group_drop(&third);
	IS(nccl_end(NCCL_ID(90), CKT_NCCL_DESTROY), ncclSuccess);
	IS(nccl_end(NCCL_ID(91), CKT_NCCL_DESTROY), ncclSuccess);
	IS(check(), 0);
	IS(ask(0), CKT_GROUP_NOBODY);
	group_kit_end();
}

static void test_answer(void)
{
	nccl_begin();
	group_kit_begin();
	nccl_make(NCCL_ID(92), 2, 1);
	IS(ask(1), 'r');
	IS(ask(0), CKT_GROUP_NOBODY);
	ckt_ipc_together_begin();
	IS(ask(1), 's');
	/* Whoever leads them is gone: it goes on by itself. */
	ckt_ipc_together_lead(false);
	IS(ask(1), 'r');
	ckt_ipc_together_lead(true);
	ckt_ipc_together_end();
	IS(ask(1), 'r');
	IS(nccl_end(NCCL_ID(92), CKT_NCCL_ABORT), ncclSuccess);
	group_kit_end();
}

/* As another rank's worker that is held for a cut of that name. */
static const char *its_cut;

static void say_cut(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	char packet[1 + CKT_HOLD_CUT_TEXT] = "r";
	(void)worker, (void)name;
	snprintf(packet + 1, sizeof packet - 1, "%s", its_cut);
	send(connection, packet, sizeof packet, MSG_NOSIGNAL);
}

static int check_cut(void)
{
	*text = 0;
	return ckt_worker_nccl_cut_check(&ckt_worker, text, sizeof text);
}

static void hold(bool wanted, const char *cut)
{
	ckt_worker.checkpoint.hold.wanted = wanted;
	snprintf(ckt_worker.checkpoint.hold.cut, CKT_HOLD_CUT_TEXT, "%s", cut);
}

static void test_cut(void)
{
	nccl_begin();
	group_kit_begin();
	nccl_make(NCCL_ID(93), 2, 0);
	struct ckt_group_name second = name_of(1);
	/* Without a cut, as with a job, it is not asked. */
	IS(check_cut(), 0);
	hold(true, "");
	IS(check_cut(), 0);
	hold(true, "/aa");
	IS(check_cut(), -EBUSY);
	HAS(text, "rank 1 of its NCCL communicator is at another server, or of another owner");
	its_cut = "/aa";
	IS(ckt_group_claim(&second, say_cut), 0);
	IS(check_cut(), 0);
	its_cut = "/ab";
	IS(check_cut(), -EBUSY);
	HAS(text, "rank 1 of its NCCL communicator is of another group, or does not stand still");
	its_cut = "";
	IS(check_cut(), -EBUSY);
	hold(false, "/aa");
	IS(check_cut(), 0);
	/* A worker of an earlier version says one byte. */
	hold(true, "/aa");
	ckt_group_drop(&second);
	said = 'r';
	IS(ckt_group_claim(&second, say), 0);
	IS(check_cut(), -EBUSY);
	hold(false, "");
	ckt_group_drop(&second);
	IS(nccl_end(NCCL_ID(93), CKT_NCCL_DESTROY), ncclSuccess);
	group_kit_end();
}

UNIT_SUITE(worker_nccl_together, {"all stand", test_check}, {"its own answer", test_answer},
	{"of one cut", test_cut})
