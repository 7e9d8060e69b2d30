/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/mps.c: who shares a daemon, how many, and its end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mps_server.h"

static struct ckt_worker_user user;
static struct ckt_mps_variables variables;

static bool join(struct ckt_session *session)
{
	return ckt_mps_join(session, &user, &variables);
}

static void test_members(void)
{
	struct ckt_session *one = session_new("0000000000e0"), *two = session_new("0000000000e1"),
			   *other = session_new("0000000000e2");
	other->identity = (struct ckt_identity){.kind = CKT_IDENTITY_USER, .uid = 4711};
	begin();
	YES(join(one) && join(two));
	YES(one->mps.daemon == two->mps.daemon);
	IS(ckt_mps_members(one), 2);
	IS(count(), 1);
	HAS(variables.text[0], variables.directory);
	TEXT(variables.text[3], "CUDA_MPS_CLIENT_PRIORITY=0");
	TEXT(variables.text[4], "");
	YES(join(other));
	YES(other->mps.daemon != one->mps.daemon);
	IS(count(), 2);
	ckt_mps_leave(one);
	IS(ckt_mps_members(one), 0);
	IS(ckt_mps_members(two), 1);
	ckt_mps_leave(two);
	YES(run_until(is_count, &(int){1}));
	ckt_mps_leave(other);
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(one);
	session_drop(two);
	session_drop(other);
}

static void put(const char *line)
{
	struct ckt_limit_rule rule;
	char text[256];
	MUST(ckt_limit_rule_parse(line, &rule, text, sizeof text), 0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
}

/* Owners that an administrator named have one daemon, and one alone once it is named no more. */
static void test_group(void)
{
	struct ckt_session *one = session_new("0000000000e0"), *two = session_new("0000000000e1"),
			   *other = session_new("0000000000e2"),
			   *later = session_new("0000000000e3");
	struct ckt_session *all[] = {one, two, other, later};
	static const uint32_t owners[] = {4711, 4712, 4713, 4712};
	char name[CKT_IDENTITY_FILE_NAME];
	bool agreed;
	begin();
	put("user=4711 share-group=lab");
	put("user=4712 share-group=lab");
	for (unsigned i = 0; i < COUNT(all); i++) {
		all[i]->uid = owners[i];
		all[i]->identity = ckt_identity_of_owner(owners[i]);
	}
	const struct ckt_identity group = ckt_mps_group(one), own = ckt_mps_group(other);
	ckt_identity_file_name(&group, name);
	TEXT(name, "@lab");
	YES(ckt_identity_same(&own, &other->identity));
	YES(join(one) && join(two) && join(other));
	YES(one->mps.daemon == two->mps.daemon);
	YES(other->mps.daemon != one->mps.daemon);
	YES(ckt_mps_in_group(one, &agreed) && agreed);
	NO(ckt_mps_in_group(other, &agreed));
	put("user=4712 share-group=none");
	YES(ckt_mps_in_group(two, &agreed));
	NO(agreed);
	YES(join(later));
	YES(later->mps.daemon != one->mps.daemon);
	NO(ckt_mps_same_kind(&later->mps.asked, &two->mps.asked));
	/* Who restores for others, and what is in time, is in none. */
	put("user=4711 share-mode=time");
	const struct ckt_identity in_time = ckt_mps_group(one);
	YES(ckt_identity_same(&in_time, &one->identity));
	put("user=4711 share-mode=space");
	one->restore = one->claimant.for_others = true;
	const struct ckt_identity for_others = ckt_mps_group(one);
	YES(ckt_identity_same(&for_others, &one->identity));
	ckt_limit_table_free(&server.ledger.limits);
	for (unsigned i = 0; i < COUNT(all); i++)
		ckt_mps_leave(all[i]);
	YES(run_until(is_count, &(int){0}));
	end();
	for (unsigned i = 0; i < COUNT(all); i++)
		session_drop(all[i]);
}

static void test_full(void)
{
	struct ckt_session *sessions[CKT_MPS_MEMBERS_MAX + 1];
	char id[32];
	begin();
	for (int i = 0; i <= CKT_MPS_MEMBERS_MAX; i++) {
		snprintf(id, sizeof id, "0000000001%02x", (unsigned)i);
		sessions[i] = session_new(id);
		IS(join(sessions[i]), i < CKT_MPS_MEMBERS_MAX);
	}
	IS(ckt_mps_members(sessions[0]), CKT_MPS_MEMBERS_MAX);
	HAS(sessions[CKT_MPS_MEMBERS_MAX]->mps.reason, "as many sessions as it can");
	/* A place is free again. */
	ckt_mps_leave(sessions[3]);
	YES(join(sessions[CKT_MPS_MEMBERS_MAX]));
	for (int i = 0; i <= CKT_MPS_MEMBERS_MAX; i++) {
		ckt_mps_leave(sessions[i]);
		session_drop(sessions[i]);
	}
	YES(run_until(is_count, &(int){0}));
	end();
}

static void test_kinds(void)
{
	struct ckt_session *session = session_new("0000000000e0");
	struct ckt_limit_rule rule;
	char text[256];
	begin();
	struct ckt_mps_kind space = ckt_mps_kind_of(session), kind;
	YES(space.space && !space.percent && !space.below);
	/* Of nobody's workers, who need a group. */
	NO(ckt_mps_kind_default(&server).space);
	server.own_sockets = true;
	YES(ckt_mps_kind_default(&server).space);
	server.own_sockets = false;
	MUST(ckt_limit_rule_parse(
		     "session=0000000000e0 class=best-effort cap=30", &rule, text, sizeof text),
		0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
	struct ckt_limit_rule bare = rule;
	bare.sets = CKT_LIMIT_SETS_CLASS;
	kind = ckt_mps_kind_of(session);
	YES(kind.space && kind.percent == 30 && kind.below);
	NO(ckt_mps_same_kind(&kind, &space));
	YES(join(session));
	TEXT(variables.text[3], "CUDA_MPS_CLIENT_PRIORITY=1");
	TEXT(variables.text[4], "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30");
	ckt_mps_leave(session);
	MUST(ckt_limit_rule_parse("session=0000000000e0 share-mode=time", &rule, text, sizeof text),
		0);
	MUST(ckt_limit_table_put(&server.ledger.limits, &rule), 0);
	NO(join(session));
	YES(session->mps.reason == NULL);
	ckt_limit_table_free(&server.ledger.limits);
	/* Best-effort leaves some of the processors free. */
	MUST(ckt_limit_table_put(&server.ledger.limits, &bare), 0);
	kind = ckt_mps_kind_of(session);
	YES(kind.percent == 90 && kind.below);
	ckt_limit_table_free(&server.ledger.limits);
	/* Workers of another user do not reach the pipes without mounts of their own. */
	server.user.change = true;
	NO(join(session));
	HAS(session->mps.reason, "there is no MPS");
	server.user.change = false;
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(session);
}

static void test_broken(void)
{
	struct ckt_session *session = session_new("0000000000e0");
	begin();
	write_file(path_in("broken"), "", 0600);
	NO(join(session));
	HAS(session->mps.reason, "does not start");
	YES(session->mps.asked.space);
	unlink(path_in("broken"));
	/* Not tried again for a while. */
	NO(join(session));
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(session);
}

/* Nobody joins a daemon whose clients have failed, and the others of it end. */
static void test_fault(void)
{
	struct ckt_session *bad = session_new("0000000000e0"), *other = session_new("0000000000e1"),
			   *later = session_new("0000000000e2");
	begin();
	YES(join(bad) && join(other));
	ckt_mps_fault(bad);
	IS(other->phase, CKT_SESSION_ENDING);
	YES(other->cut_off);
	HAS(ckt_worker_bounds_why(&server, "0000000000e0"), "in space");
	HAS(ckt_worker_bounds_why(&server, "0000000000e1"), "in space");
	IS(bad->phase, CKT_SESSION_LIVE);
	YES(join(later));
	YES(later->mps.daemon != bad->mps.daemon);
	ckt_mps_leave(bad);
	ckt_mps_leave(other);
	YES(run_until(is_count, &(int){1}));
	ckt_mps_leave(later);
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(bad);
	session_drop(other);
	session_drop(later);
}

/* A worker that cannot connect: the next ones do not try for a while. */
static void test_unusable(void)
{
	struct ckt_session *one = session_new("0000000000e0"), *two = session_new("0000000000e1");
	begin();
	YES(join(one));
	ckt_mps_unusable(one, "cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
	YES(join(two));
	ckt_mps_leave(two);
	ckt_mps_unusable(one, "cuInit failed: CUDA_ERROR_MPS_CONNECTION_FAILED (805)");
	NO(join(two));
	HAS(two->mps.reason, "does not start");
	ckt_mps_leave(one);
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(one);
	session_drop(two);
}

/* A worker that wants to be terminated says how it ends; not twice, and not as what no worker ends. */
static void test_wants_end(void)
{
	struct ckt_session *session = session_new("0000000000e0");
	begin();
	NO(ckt_mps_wants_end(session, 0));
	YES(join(session));
	NO(ckt_mps_wants_end(session, 81));
	NO(ckt_mps_wants_end(session, 1));
	IS(session->phase, CKT_SESSION_LIVE);
	YES(ckt_mps_wants_end(session, 80));
	IS(session->phase, CKT_SESSION_ENDING);
	YES(session->mps.ends);
	IS(session->mps.status, 80);
	NO(ckt_mps_wants_end(session, 0));
	/* What MPS terminates is no fault of the others'. */
	ckt_mps_fault(session);
	struct ckt_session *other = session_new("0000000000e1");
	YES(join(other));
	YES(other->mps.daemon == session->mps.daemon);
	ckt_mps_leave(session);
	ckt_mps_leave(other);
	YES(run_until(is_count, &(int){0}));
	end();
	session_drop(session);
	session_drop(other);
}

UNIT_SUITE(mps, {"members", test_members}, {"group", test_group}, {"full", test_full},
	{"kinds", test_kinds}, {"broken", test_broken}, {"fault", test_fault},
	{"unusable", test_unusable}, {"wants end", test_wants_end})
