/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/limit_calls.c: who sets limits, and who sees which. */
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/policy/limit_store.h"
#include "server/daemon/session/lease.h"

static char text[CKT_MESSAGE_MAX];

static ckt_control_status change(int fd, uint32_t proc, const char *rule)
{
	ckt_control_limit_args args = {.rule = (char *)rule};
	ckt_control_result res = {0};
	YES(control(fd, proc, (xdrproc_t)xdr_ckt_control_limit_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_result, &res));
	snprintf(text, sizeof text, "%.500s", res.message);
	ckt_control_status status = res.status;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static ckt_control_limits_res shown(int fd)
{
	ckt_control_limits_res res = {0};
	YES(control(fd, CKT_CONTROL_LIMIT_SHOW, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_control_limits_res, &res));
	return res;
}

static void forget(ckt_control_limits_res *res)
{
	xdr_free((xdrproc_t)xdr_ckt_control_limits_res, (char *)res);
}

static void end(int fd)
{
	char state[CKT_PATH_MAX + 16];
	close(fd);
	run_for(2);
	ckt_limits_close(&server);
	snprintf(state, sizeof state, "%s/limits", server.socket_dir);
	unlink(state);
}

static void test_administrator(void)
{
	static const char id[] = "0000000000e1";
	struct ckt_session *session = session_new(id);
	unsigned gpus = server.driver.gpu_count;
	int fd = control_new();
	MUST(ckt_lease_open(session), 0);
	ckt_ledger_force(&session->lease.holder, 1, 4 << 20);
	server.ledger.budgets[0] = 64 << 20;
	server.driver.gpu_count = 2;
	/* A session by the beginning of its id. */
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "session=0000 memory=8M"), CKT_CONTROL_OK);
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "job=a share=5"), CKT_CONTROL_OK);
	ckt_control_limits_res res = shown(fd);
	MUST(res.limits.limits_len, 2);
	TEXT(res.limits.limits_val[0].rule, "session=0000000000e1 memory=8M");
	YES(res.limits.limits_val[0].live);
	IS(res.limits.limits_val[0].sessions, 1);
	MUST(res.limits.limits_val[0].leased.leased_len, 1);
	IS(res.limits.limits_val[0].leased.leased_val[0].gpu, 1);
	IS(res.limits.limits_val[0].leased.leased_val[0].bytes, 4 << 20);
	IS(res.limits.limits_val[1].sessions, 0);
	MUST(res.budgets.budgets_len, 1);
	IS(res.budgets.budgets_val[0].budget_bytes, 64 << 20);
	forget(&res);
	/* Wrong rules say why. */
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "job=a memory=much"), CKT_CONTROL_REFUSED);
	HAS(text, "'memory=much'");
	IS(change(fd, CKT_CONTROL_LIMIT_SET, ""), CKT_CONTROL_REFUSED);
	HAS(text, "empty");
	IS(change(fd, CKT_CONTROL_LIMIT_CLEAR, "job=b"), CKT_CONTROL_REFUSED);
	IS(change(fd, CKT_CONTROL_LIMIT_CLEAR, "session=0000"), CKT_CONTROL_OK);
	IS(change(fd, CKT_CONTROL_LIMIT_CLEAR, "job=a"), CKT_CONTROL_OK);
	res = shown(fd);
	IS(res.limits.limits_len, 0);
	forget(&res);
	server.ledger.budgets[0] = 0;
	server.driver.gpu_count = gpus;
	ckt_lease_close(session);
	session_drop(session);
	end(fd);
}

/* A user sets nothing, and sees what concerns him. */
static void test_user(void)
{
	struct ckt_session *session = session_new("0000000000e2");
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "user=1001 memory=8M"), CKT_CONTROL_OK);
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "user=1002 memory=8M"), CKT_CONTROL_OK);
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "job=a memory=8M"), CKT_CONTROL_OK);
	IS(change(fd, CKT_CONTROL_LIMIT_SET, "job=b memory=8M"), CKT_CONTROL_OK);
	peer->who.uid = 1001;
	session->uid = 1001;
	strcpy(session->job, "a");
	static const char *const rules[] = {"user=1001 memory=16M", "job=a memory=16M",
		"token=alice memory=16M", "session=0000000000e2 memory=16M",
		"container=/a memory=2M"};
	for (size_t i = 0; i < COUNT(rules); i++) {
		IS(change(fd, CKT_CONTROL_LIMIT_SET, rules[i]), CKT_CONTROL_REFUSED);
		HAS(text, "administrators");
	}
	IS(change(fd, CKT_CONTROL_LIMIT_CLEAR, "user=1001"), CKT_CONTROL_REFUSED);
	HAS(text, "administrators");
	server.ledger.budgets[0] = 64 << 20;
	ckt_control_limits_res res = shown(fd);
	MUST(res.limits.limits_len, 2);
	TEXT(res.limits.limits_val[0].rule, "user=1001 memory=8M");
	TEXT(res.limits.limits_val[1].rule, "job=a memory=8M");
	IS(res.budgets.budgets_len, 0);
	forget(&res);
	server.ledger.budgets[0] = 0;
	session_drop(session);
	end(fd);
}

UNIT_SUITE(limit_calls, {"administrator", test_administrator}, {"user", test_user})
