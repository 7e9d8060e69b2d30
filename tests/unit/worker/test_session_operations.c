/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/session_operations.c: every operation that checkpoint/session.h asks for is
 * there, and does what it says.
 */
#include <string.h>

#include "checkpoint/session.h"
#include "server/worker/session/host_budget.h"
#include "tests/unit/worker/inside.h"

/* No operation is missing: checkpoint/ calls them without a look. */
static void test_complete(void)
{
	void *operations[sizeof ckt_session_operations / sizeof(void *)];
	memcpy(operations, &ckt_session_operations, sizeof operations);
	for (size_t i = 0; i < COUNT(operations); i++)
		CU_ASSERT_PTR_NOT_NULL(operations[i]);
}

static void test_account(void)
{
	uint64_t used = ckt_budget_used();
	YES(ckt_session_operations.charge(4096, "a test"));
	IS(ckt_budget_used(), used + 4096);
	ckt_session_operations.uncharge(4096);
	IS(ckt_budget_used(), used);
}

/* A session that nobody waits for, and that shares nothing. */
static void test_alone(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	NO(ckt_session_operations.waits_for_others(&ckt_worker));
	NO(ckt_session_operations.host_function_runs(&ckt_worker));
	IS(ckt_session_operations.finish_calls(&ckt_worker, 0), 0);
	NO(ckt_session_operations.is_shared(message, sizeof message));
	NO(ckt_session_operations.is_shared_with_running(&ckt_worker, message, sizeof message));
	NO(ckt_session_operations.has_peers(message, sizeof message));
	IS(ckt_session_operations.check_saved(&ckt_worker, message, sizeof message), 0);
	TEXT(message, "");
}

UNIT_SUITE(session_operations, {"complete", test_complete}, {"account", test_account},
	{"alone", test_alone})
