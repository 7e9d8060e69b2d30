/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/durable/sleep.c: who is found asleep, who stays awake and why, and who is ended. */
#include "server/daemon/durable/sleep.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "inside.h"
#include "rpc/activity.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/policy/identity.h"

#define NS_PER_S INT64_C(1000000000)

static void begin(void)
{
	static char dir[128];
	char message[CKT_MESSAGE_MAX] = "";
	snprintf(dir, sizeof dir, "%s", path_in("sleep"));
	server.options.idle_context = 1;
	server.options.auto_dir = dir;
	server.options.claim_timeout = 60;
	MUST(ckt_automatic_init(&server, message, sizeof message), 0);
}

static void end(void)
{
	ckt_sleep_close(&server);
	ckt_automatic_fini(&server);
	server.options.auto_dir = NULL;
	server.options.idle_context = 0;
}

/* What an earlier server left. */
static void leave(const char *id, uint32_t owner, bool asleep)
{
	struct ckt_chain_state state = {.owner = owner,
		.when = 1000,
		.generation = 3,
		.executed = 70,
		.gpu = -1,
		.asleep = asleep,
		.count = 1,
		.images = {{.number = 1, .bytes = 5 << 10}}};
	snprintf(state.session, sizeof state.session, "%s", id);
	int fd = ckt_chain_open(server.automatic->dir_fd, id, true);
	MUST(fd >= 0, 1);
	IS(ckt_chain_write(fd, &state), 0);
	close(fd);
}

static bool is_left(const char *id)
{
	int fd = ckt_chain_open(server.automatic->dir_fd, id, false);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_gone(void *id)
{
	return !is_left(id);
}

static unsigned count_of(uint32_t owner)
{
	const struct ckt_identity identity = ckt_identity_of_owner(owner);
	return ckt_sleep_count(&identity);
}

static void test_found(void)
{
	char text[128];
	begin();
	leave("0000000000b2", 1000, true);
	leave("0000000000b1", 1000, true);
	leave("0000000000b3", 1001, true);
	leave("0000000000b4", 1000, false);
	ckt_sleep_open(&server);
	/* By id. */
	const struct ckt_sleeper *first = ckt_sleep_first();
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	TEXT(first->chain->id, "0000000000b1");
	CU_ASSERT_PTR_NOT_NULL_FATAL(first->next);
	TEXT(first->next->chain->id, "0000000000b2");
	IS(count_of(1000), 2);
	IS(count_of(1001), 1);
	IS(count_of(4711), 0);
	CU_ASSERT_PTR_NULL(ckt_sleep_find("0000000000b4"));
	struct ckt_sleeper *other = ckt_sleep_find("0000000000b3");
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	ckt_sleep_describe(other, text, sizeof text);
	HAS(text, "asleep since 1970-01-01");
	HAS(text, "5 KiB on this host");
	NO(ckt_sleep_must_wait("0000000000b3"));
	/* Its facts are told with those of automatic images, by id. */
	ckt_control_list_args all = {.after = (char *)"0000000000b1"};
	ckt_control_durable_res facts = {0};
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_DURABLE, (xdrproc_t)xdr_ckt_control_list_args, &all, -1,
		(xdrproc_t)xdr_ckt_control_durable_res, &facts));
	MUST(facts.sessions.sessions_len, 2);
	TEXT(facts.sessions.sessions_val[0].session, "0000000000b2");
	TEXT(facts.sessions.sessions_val[1].session, "0000000000b3");
	IS(facts.sessions.sessions_val[1].when, 1000);
	IS(facts.sessions.sessions_val[1].bytes, 5 << 10);
	IS(facts.sessions.sessions_val[1].executed, 70);
	NO(facts.more);
	xdr_free((xdrproc_t)xdr_ckt_control_durable_res, (char *)&facts);
	close(fd);
	/* It ends in its sleep, and leaves nothing. */
	ckt_sleep_end(other, "the test says so");
	CU_ASSERT_PTR_NULL(ckt_sleep_find("0000000000b3"));
	YES(run_until(is_gone, (char *)"0000000000b3"));
	IS(count_of(1001), 0);
	/* The server ends: they stay. */
	end();
	CU_ASSERT_PTR_NULL(ckt_sleep_first());
	begin();
	YES(is_left("0000000000b1") && is_left("0000000000b2"));
	ckt_sleep_open(&server);
	IS(count_of(1000), 2);
	ckt_sleep_end(ckt_sleep_find("0000000000b1"), "the test ends");
	ckt_sleep_end(ckt_sleep_find("0000000000b2"), "the test ends");
	end();
}

/* Its worker ended in the sleep of another server, which is still there: nobody else has it. */
static void test_locked(void)
{
	begin();
	leave("0000000000b5", 1000, true);
	int dir = ckt_chain_open(server.automatic->dir_fd, "0000000000b5", false);
	int lock = ckt_chain_lock(dir, false);
	YES(lock >= 0);
	ckt_sleep_open(&server);
	CU_ASSERT_PTR_NULL(ckt_sleep_find("0000000000b5"));
	close(lock);
	close(dir);
	ckt_sleep_open(&server);
	ckt_sleep_end(ckt_sleep_find("0000000000b5"), "the test ends");
	end();
}

static void test_awake(void)
{
	static const struct {
		uint32_t sleep;
		const char *words;
	} rows[] = {{CKT_ACTIVITY_SLEEP_OLD_CLIENT, "earlier version"},
		{CKT_ACTIVITY_SLEEP_NO_CLIENT, "has no client"},
		{CKT_ACTIVITY_SLEEP_TIED, "shares memory"},
		{CKT_ACTIVITY_SLEEP_UNKNOWN, "does not tell"}, {99, "does not tell"}};
	static struct ckt_activity page;
	begin();
	struct ckt_session *session = session_new("0000000000b6");
	session->quantum.page = &page;
	/* Not idle for long enough, however long this takes, or said to be idle in the future. */
	server.options.idle_context = 60;
	for (int i = 0; i < 3; i++) {
		page.idle_since_ns = i == 0 ? 0 : ckt_now_ns() + (i == 1 ? 0 : NS_PER_S);
		ckt_sleep_open(&server);
		TEXT(session->sleep.note, "");
	}
	server.options.idle_context = 1;
	page.idle_since_ns = ckt_now_ns() - 2 * NS_PER_S;
	for (size_t i = 0; i < COUNT(rows); i++) {
		page.sleep = rows[i].sleep;
		ckt_sleep_open(&server);
		HAS(session->sleep.note, rows[i].words);
		CU_ASSERT_PTR_NULL(session->chain);
	}
	server.options.replicate = (char *)"elsewhere";
	ckt_sleep_open(&server);
	HAS(session->sleep.note, "--replicate");
	server.options.replicate = NULL;
	session->quantum.page = NULL;
	session_drop(session);
	end();
}

UNIT_SUITE(sleep, {"found", test_found}, {"locked", test_locked}, {"awake", test_awake})
