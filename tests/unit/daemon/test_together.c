/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/together.c: who belongs together, the steps in their order, and what follows when one
 * fails.  The group's own: group.c, whose mates.
 */
#include "server/daemon/session/together.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "inside.h"
#include "rpc/lease.h"
#include "server/daemon/session/lease.h"

#define MIB ((uint64_t)1 << 20)

enum { SESSIONS = 3 };

static struct ckt_session *sessions[SESSIONS];
static int channels[SESSIONS];
static uint32_t number;
static struct ckt_activity *pages[SESSIONS];

static void add(int i)
{
	static const char *const ids[SESSIONS] = {"aaaaaaaaaaa2", "bbbbbbbbbbb2", "ccccccccccc2"};
	sessions[i] = session_new(ids[i]);
	sessions[i]->child = true;
	sessions[i]->status.gpu = 0;
	worker.lease_channel = worker.activity = -1;
	MUST(ckt_lease_open(sessions[i]), 0);
	ckt_quantum_watch(sessions[i]);
	run_for(5);
	channels[i] = worker.lease_channel;
	pages[i] = mmap(NULL, CKT_ACTIVITY_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		worker.activity, 0);
	YES(pages[i] != MAP_FAILED);
	close(worker.activity);
	worker.lease_channel = worker.activity = 0;
}

static void mate(int i, int j)
{
	for (int side = 0; side < 2; side++) {
		struct ckt_group_member *member = &sessions[side ? j : i]->group;
		member->mates =
			realloc(member->mates, sizeof *member->mates * (member->mate_count + 1));
		member->mates[member->mate_count++] = sessions[side ? i : j]->serial;
		member->mate_room = member->mate_count;
	}
}

/* The first two share memory. */
static void begin(void)
{
	server.ledger.budgets[0] = 100 * MIB;
	server.when_full = CKT_WHEN_FULL_SWAP;
	server.options.swap_memory = 1024 * MIB;
	server.options.max_wait = 60;
	server.options.drain = 5;
	ckt_quantum_open(&server);
	for (int i = 0; i < SESSIONS; i++)
		add(i);
	mate(0, 1);
	pages[0]->shares = pages[1]->shares = 1;
	memset(worker.calls, 0, sizeof worker.calls);
}

static void end(void)
{
	for (int i = 0; i < SESSIONS; i++) {
		ckt_lease_close(sessions[i]);
		free(sessions[i]->group.mates);
		ckt_swap_close(sessions[i]);
		session_drop(sessions[i]);
		munmap(pages[i], CKT_ACTIVITY_PAGE_SIZE);
		close(channels[i]);
	}
	run_for(5);
	CU_ASSERT_PTR_NULL(server.quantum.first);
	ckt_quantum_close(&server);
	CU_ASSERT_PTR_NULL(server.togethers);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	server.when_full = CKT_WHEN_FULL_FAIL;
	server.options.swap_memory = 0;
	server.swaps = false;
	server.waits.bars = NULL;
	memset(&worker, 0, sizeof worker);
}

static void say(int i, struct ckt_lease_message message)
{
	MUST(send(channels[i], &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	run_for(10);
}

static struct ckt_lease_message ask(int i, uint64_t mib, uint32_t flags)
{
	struct ckt_lease_message answer = {0};
	say(i,
		(struct ckt_lease_message){.kind = CKT_LEASE_ASK,
			.number = ++number,
			.flags = flags,
			.bytes = mib * MIB,
			.want = mib * MIB});
	if (recv(channels[i], &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer)
		answer.kind = 0;
	return answer;
}

static struct ckt_together *gathered(void)
{
	ckt_quantum_facts(&server, ckt_now_ns());
	return server.togethers;
}

static void test_gather(void)
{
	begin();
	struct ckt_together *together = gathered();
	MUST(together != NULL, true);
	IS(together->count, 2);
	YES(sessions[0]->quantum.together == together && sessions[1]->quantum.together == together);
	CU_ASSERT_PTR_NULL(sessions[2]->quantum.together);
	/* One that is connected with one of them belongs to all. */
	mate(2, 1);
	pages[2]->shares = 1;
	together = gathered();
	IS(together->count, 3);
	CU_ASSERT_PTR_NULL(together->next);
	/* Who has closed everything says so. */
	pages[2]->shares = 0;
	IS(gathered()->count, 2);
	CU_ASSERT_PTR_NULL(sessions[2]->quantum.together);
	pages[0]->shares = pages[1]->shares = 0;
	CU_ASSERT_PTR_NULL(gathered());
	end();
}

static void test_sum(void)
{
	begin();
	IS(ask(0, 30, 0).bytes, 30 * MIB);
	IS(ask(1, 20, 0).bytes, 20 * MIB);
	struct ckt_together *together = gathered();
	MUST(together != NULL, true);
	IS(together->member.here[0], 50 * MIB);
	/* Idle when all are. */
	int64_t now = ckt_now_ns();
	pages[0]->idle_since_ns = now - 2000;
	IS(gathered()->member.idle_since_ns, 0);
	pages[1]->idle_since_ns = now - 1000;
	IS(gathered()->member.idle_since_ns, now - 1000);
	/* One that stays keeps all. */
	NO(together->member.fixed);
	sessions[1]->metrics.paused = true;
	YES(gathered()->member.fixed);
	sessions[1]->metrics.paused = false;
	end();
}

/* The first two have 80 MiB, and their quantum is over; the third waits for 40. */
static void crowd(void)
{
	IS(ask(0, 50, 0).bytes, 50 * MIB);
	IS(ask(1, 30, 0).bytes, 30 * MIB);
	gathered()->member.in_since_ns = 1;
	IS(ask(2, 40, CKT_LEASE_WAIT).flags, CKT_LEASE_WAIT);
	run_for(20);
}

static void test_steps(void)
{
	begin();
	worker.silent_on = CKT_WORKER_TOGETHER;
	crowd();
	/* No second step before all have answered the first. */
	IS(worker.steps_of[CKT_TOGETHER_STOP], 2);
	IS(worker.steps_of[CKT_TOGETHER_DROP], 0);
	YES(gathered()->member.leaving);
	IS(ckt_together_move(sessions[0], true, NULL, NULL), -EBUSY);
	end();
	begin();
	crowd();
	IS(worker.steps_of[CKT_TOGETHER_STOP], 2);
	IS(worker.steps_of[CKT_TOGETHER_DROP], 2);
	IS(worker.steps_of[CKT_TOGETHER_OUT], 2);
	IS(worker.steps_of[CKT_TOGETHER_GO], 0);
	YES(gathered()->member.out);
	YES(sessions[0]->quantum.stopped && sessions[1]->quantum.stopped);
	/* What one of them asks for alone it does not get, though it is there: all come in. */
	for (int i = 0; i < 2; i++)
		say(i, (struct ckt_lease_message){.kind = CKT_LEASE_GIVE, .bytes = 20 * MIB});
	IS(ask(1, 10, 0).bytes, 0);
	end();
}

static void test_stop_fails(void)
{
	begin();
	worker.status = -EBUSY;
	worker.message = "a kernel spins";
	worker.fails_on = CKT_TOGETHER_DROP;
	crowd();
	IS(worker.steps_of[CKT_TOGETHER_DROP], 2);
	IS(worker.steps_of[CKT_TOGETHER_OUT], 0);
	IS(worker.steps_of[CKT_TOGETHER_GO], 2);
	NO(sessions[0]->quantum.stopped || sessions[1]->quantum.stopped);
	NO(gathered()->member.out);
	HAS(sessions[0]->quantum.note, "a kernel spins");
	HAS(sessions[1]->quantum.note, "a kernel spins");
	/* It is not tried again and again. */
	run_for(50);
	IS(worker.steps_of[CKT_TOGETHER_STOP], 2);
	end();
}

UNIT_SUITE(together, {"gather", test_gather}, {"sum", test_sum}, {"steps", test_steps},
	{"stop fails", test_stop_fails})
