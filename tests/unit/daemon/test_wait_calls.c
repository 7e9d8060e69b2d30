/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/wait_calls.c: who waits, page by page, and whom a caller may see. */
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/memory_wait.h"

#define MIB ((uint64_t)1 << 20)

static ckt_control_waits_res waits(int fd, unsigned skip)
{
	ckt_control_waits_args args = {.skip = skip};
	ckt_control_waits_res res = {0};
	YES(control(fd, CKT_CONTROL_WAITS, (xdrproc_t)xdr_ckt_control_waits_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_waits_res, &res));
	return res;
}

static void forget(ckt_control_waits_res *res)
{
	xdr_free((xdrproc_t)xdr_ckt_control_waits_res, (char *)res);
}

static void test_waits(void)
{
	struct ckt_session *holder = session_new("aaaaaaaaaaa1"),
			   *waiter = session_new("bbbbbbbbbbb1");
	int fd = control_new();
	server.ledger.budgets[0] = 1024 * MIB;
	server.when_full = CKT_WHEN_FULL_WAIT;
	holder->serial = 1;
	waiter->serial = 2;
	MUST(ckt_lease_open(holder), 0);
	MUST(ckt_lease_open(waiter), 0);
	run_for(2);
	ckt_control_waits_res res = waits(fd, 0);
	IS(res.waits.waits_len, 0);
	TEXT(res.policy, "fifo");
	forget(&res);
	ckt_ledger_force(&holder->lease.holder, 0, 1024 * MIB);
	for (uint32_t i = 0; i < 3; i++)
		IS(ckt_memory_wait_ask(waiter, i, 0, 2 * MIB), CKT_MEMORY_WAIT);
	res = waits(fd, 1);
	MUST(res.waits.waits_len, 2);
	NO(res.more);
	const ckt_control_wait *wait = &res.waits.waits_val[0];
	TEXT(wait->session, "bbbbbbbbbbb1");
	IS(wait->bytes, 2 * MIB);
	IS(wait->gpu, 0);
	HAS(wait->reason, "other sessions");
	MUST(wait->holders.holders_len, 1);
	TEXT(wait->holders.holders_val[0].session, "aaaaaaaaaaa1");
	IS(wait->holders.holders_val[0].bytes, 1024 * MIB);
	IS(wait->others, 0);
	forget(&res);
	res = waits(fd, 9);
	IS(res.waits.waits_len, 0);
	forget(&res);
	close(fd);
	run_for(2);
	ckt_lease_close(waiter);
	ckt_lease_close(holder);
	session_drop(waiter);
	session_drop(holder);
	memset(server.ledger.budgets, 0, sizeof server.ledger.budgets);
	server.when_full = CKT_WHEN_FULL_FAIL;
}

UNIT_SUITE(wait_calls, {"waits", test_waits})
