/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/limits.c: every decision, by its facts alone. */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static const struct ckt_policy *const policy = &ckt_policy_limits;
static const struct ckt_identity user = {.kind = CKT_IDENTITY_USER, .uid = 1001},
				 root = {.kind = CKT_IDENTITY_USER};
static struct ckt_options options;
static struct ckt_policy_server facts;
static struct ckt_decision decision;

static void begin(void)
{
	options = (struct ckt_options){.max_waiting = 16};
	facts = (struct ckt_policy_server){
		.options = &options, .host = "here", .driver_gpu_count = 2};
}

/* The answer, and that a reason comes with every no and with no yes. */
static enum ckt_policy_answer answer(void)
{
	IS(*decision.reason != 0, decision.answer != CKT_POLICY_YES);
	return decision.answer;
}

static enum ckt_connection_answer connection(
	const struct ckt_identity *source, unsigned own, unsigned all, bool most, unsigned fd)
{
	return policy->connection(
		&facts, &(struct ckt_connection_facts){*source, own, all, most, fd}, &decision);
}

static void test_connection(void)
{
	begin();
	IS(connection(&user, 8, 16, true, 5), CKT_CONNECTION_ADMIT);
	IS(answer(), CKT_POLICY_YES);
	/* One source has half of the places. */
	IS(connection(&user, 9, 9, true, 5), CKT_CONNECTION_REPLACE_OWN);
	HAS(decision.reason, "--max-waiting-per-peer");
	IS(connection(&root, 9, 9, true, 5), CKT_CONNECTION_ADMIT);
	IS(connection(&user, 2, 17, false, 5), CKT_CONNECTION_REPLACE_MOST);
	HAS(decision.reason, "--max-waiting)");
	IS(connection(&user, 3, 17, true, 5), CKT_CONNECTION_REPLACE_OWN);
	options.max_waiting_per_peer = 12;
	IS(connection(&user, 12, 12, true, 5), CKT_CONNECTION_ADMIT);
	/* 4 and 4 more of 64 descriptors are kept. */
	facts.descriptor_max = 64;
	IS(connection(&user, 4, 4, true, 55), CKT_CONNECTION_ADMIT);
	IS(connection(&user, 4, 4, true, 56), CKT_CONNECTION_REFUSE);
	IS(connection(&user, 3, 4, true, 59), CKT_CONNECTION_ADMIT);
	IS(connection(&user, 1, 4, true, 60), CKT_CONNECTION_REFUSE);
	IS(connection(&root, 1, 4, true, 63), CKT_CONNECTION_ADMIT);
	/* Half of few descriptors is all that may wait. */
	facts.descriptor_max = 20;
	IS(connection(&user, 1, 11, false, 5), CKT_CONNECTION_REPLACE_MOST);
}

static void test_denial_delay(void)
{
	begin();
	options.max_delay = 10;
	IS(policy->denial_delay_ms(&facts, 3), 0);
	IS(policy->denial_delay_ms(&facts, 4), 100);
	IS(policy->denial_delay_ms(&facts, 6), 400);
	IS(policy->denial_delay_ms(&facts, 11), 10000);
	IS(policy->denial_delay_ms(&facts, UINT32_MAX), 10000);
}

static enum ckt_policy_answer entry(bool local, bool loopback, int token)
{
	struct ckt_entry_facts entry = {.local = local, .loopback = loopback};
	entry.token = token;
	policy->entry(&facts, &entry, &decision);
	return answer();
}

static void test_entry(void)
{
	begin();
	IS(entry(true, false, CKT_PROOF_NONE), CKT_POLICY_YES);
	IS(entry(false, true, CKT_PROOF_NONE), CKT_POLICY_YES);
	IS(entry(false, false, CKT_PROOF_NONE), CKT_POLICY_DENIED);
	HAS(decision.reason, "--token-file");
	options.insecure = true;
	IS(entry(false, false, CKT_PROOF_NONE), CKT_POLICY_YES);
	options.insecure = false;
	facts.has_token = true;
	IS(entry(true, false, CKT_PROOF_NONE), CKT_POLICY_YES);
	IS(entry(false, true, CKT_PROOF_NONE), CKT_POLICY_DENIED);
	HAS(decision.reason, "set CRICKET_TOKEN_FILE");
	IS(entry(false, false, CKT_PROOF_RIGHT), CKT_POLICY_YES);
	IS(entry(true, false, CKT_PROOF_WRONG), CKT_POLICY_DENIED);
	HAS(decision.reason, "does not match the server's");
	options.insecure = true;
	IS(entry(false, true, CKT_PROOF_NONE), CKT_POLICY_YES);
	IS(entry(false, true, CKT_PROOF_WRONG), CKT_POLICY_DENIED);
	IS(entry(true, false, CKT_PROOF_EXPIRED), CKT_POLICY_DENIED);
	HAS(decision.reason, "has expired");
}

typedef void question(const struct ckt_policy_server *server, const struct ckt_count_facts *count,
	struct ckt_decision *ret_decision);

/* Exactly `max` are allowed, root may have more, and the reason names the option. */
static void check_count(question *ask, unsigned max, const char *option)
{
	ask(&facts, &(struct ckt_count_facts){user, max - 1}, &decision);
	IS(answer(), CKT_POLICY_YES);
	ask(&facts, &(struct ckt_count_facts){user, max}, &decision);
	IS(answer(), CKT_POLICY_FULL);
	HAS(decision.reason, "the server on here: ");
	HAS(decision.reason, option);
	ask(&facts, &(struct ckt_count_facts){root, max}, &decision);
	IS(answer(), CKT_POLICY_YES);
}

static void test_counts(void)
{
	begin();
	/* 0: no limit. */
	policy->control_connection(&facts, &(struct ckt_count_facts){user, 1000}, &decision);
	IS(answer(), CKT_POLICY_YES);
	policy->event_listener(&facts, &(struct ckt_count_facts){user, 1000}, &decision);
	IS(answer(), CKT_POLICY_YES);
	policy->descriptor(&facts, &(struct ckt_count_facts){user, 1000}, &decision);
	IS(answer(), CKT_POLICY_YES);
	options.max_connections_per_user = 5;
	facts.descriptor_max = 40;
	check_count(policy->control_connection, 5, "--max-connections-per-user");
	check_count(policy->event_listener, 3, "--max-connections-per-user");
	check_count(policy->descriptor, 10, "ulimit -n");
	check_count(policy->waiting, 8, "--max-waiting-per-peer");
}

static enum ckt_policy_answer stage(
	const struct ckt_identity *identity, unsigned here, unsigned all, unsigned descriptors)
{
	policy->stage(
		&facts, &(struct ckt_stage_facts){*identity, here, all, descriptors}, &decision);
	return answer();
}

static void test_stage(void)
{
	begin();
	IS(stage(&user, CKT_CONTROL_CHAIN_MAX - 1, 1000, 1000), CKT_POLICY_YES);
	IS(stage(&root, CKT_CONTROL_CHAIN_MAX, 0, 0), CKT_POLICY_FULL);
	options.max_stages_per_user = 3;
	IS(stage(&user, 0, 2, 0), CKT_POLICY_YES);
	IS(stage(&user, 0, 3, 0), CKT_POLICY_FULL);
	HAS(decision.reason, "--max-stages-per-user");
	IS(stage(&root, 0, 3, 0), CKT_POLICY_YES);
	facts.descriptor_max = 40;
	IS(stage(&user, 0, 2, 10), CKT_POLICY_FULL);
	HAS(decision.reason, "ulimit -n");
}

static enum ckt_policy_answer session(
	const struct ckt_identity *identity, unsigned own, int gpu, bool restore)
{
	policy->session(
		&facts, &(struct ckt_session_facts){*identity, own, gpu, restore}, &decision);
	return answer();
}

static void test_session(void)
{
	static const unsigned only[] = {1};
	begin();
	IS(session(&user, 1000, -1, false), CKT_POLICY_YES);
	options.max_sessions = 8;
	facts.session_count = 7;
	/* Three quarters of them. */
	IS(session(&user, 5, -1, false), CKT_POLICY_YES);
	IS(session(&user, 6, -1, false), CKT_POLICY_FULL);
	HAS(decision.reason, "--max-sessions-per-user");
	IS(session(&root, 7, -1, false), CKT_POLICY_YES);
	options.max_sessions_per_user = 2;
	IS(session(&user, 2, -1, false), CKT_POLICY_FULL);
	facts.session_count = 8;
	IS(session(&root, 0, -1, false), CKT_POLICY_WAIT);
	HAS(decision.reason, "try again later, or use another server");
	IS(session(&root, 0, -1, true), CKT_POLICY_WAIT);
	HAS(decision.reason, "(--max-sessions)");
	facts.session_count = 0;
	IS(session(&user, 0, 1, true), CKT_POLICY_YES);
	IS(session(&user, 0, 2, true), CKT_POLICY_NO_DEVICE);
	facts.gpus = only;
	facts.gpu_count = 1;
	IS(session(&user, 0, 1, true), CKT_POLICY_YES);
	IS(session(&user, 0, 0, true), CKT_POLICY_NO_DEVICE);
	IS(session(&user, 0, -1, true), CKT_POLICY_YES);
	facts.stopping = true;
	IS(session(&root, 0, -1, false), CKT_POLICY_STOPPING);
}

static void test_share(void)
{
	static const unsigned only[] = {1, 3};
	struct ckt_share share;
	begin();
	options.session_memory = 7;
	policy->share(&facts, &(struct ckt_share_facts){user}, &share);
	YES(share.gpu_count == 2 && share.gpus[0] == 0 && share.gpus[1] == 1);
	YES(share.device_memory_bytes == 7 && share.host_memory_bytes == 0);
	/* A token has no more than everybody. */
	policy->share(&facts, &(struct ckt_share_facts){user, 8, 9}, &share);
	YES(share.device_memory_bytes == 7 && share.host_memory_bytes == 9);
	policy->share(&facts, &(struct ckt_share_facts){user, 6, 0}, &share);
	YES(share.device_memory_bytes == 6 && share.host_memory_bytes == 0);
	facts.gpus = only;
	facts.gpu_count = 2;
	policy->share(&facts, &(struct ckt_share_facts){user}, &share);
	YES(share.gpu_count == 2 && share.gpus[0] == 1 && share.gpus[1] == 3);
	facts.gpu_count = 0;
	facts.driver_gpu_count = CKT_DEVICES_MAX + 1;
	policy->share(&facts, &(struct ckt_share_facts){user}, &share);
	IS(share.gpu_count, CKT_DEVICES_MAX);
}

static enum ckt_policy_answer control_of(struct ckt_control_facts who)
{
	policy->control(&facts, &who, &decision);
	return answer();
}

/* What a peer is and showed, and what somebody owns. */
static void test_control(void)
{
	const uint32_t nobody = CKT_UID_UNKNOWN, alice = ckt_owner_of_token("alice"),
		       bob = ckt_owner_of_token("bob");
	const struct {
		struct ckt_control_facts who;
		enum ckt_policy_answer answer;
	} rows[] = {
		{{.uid = 1001, .owner_uid = 1001}, CKT_POLICY_YES},
		{{.uid = 1002, .owner_uid = 1001}, CKT_POLICY_DENIED},
		{{.uid = 0, .owner_uid = 1001}, CKT_POLICY_YES},
		{{.uid = geteuid(), .owner_uid = 1001}, CKT_POLICY_YES},
		{{.uid = nobody, .secret = true, .owner_uid = 1001}, CKT_POLICY_YES},
		/* Two that nobody knows are not one. */
		{{.uid = nobody, .owner_uid = nobody}, CKT_POLICY_DENIED},
		/* A token has its own sessions, and no role without it means anything. */
		{{.uid = nobody, .token = alice, .owner_uid = alice}, CKT_POLICY_YES},
		{{.uid = nobody, .token = alice, .owner_uid = bob}, CKT_POLICY_DENIED},
		{{.uid = nobody, .token = alice, .owner_uid = 1001}, CKT_POLICY_DENIED},
		{{.uid = nobody, .token = alice, .owner_uid = nobody}, CKT_POLICY_DENIED},
		{{.uid = nobody, .token = alice, .role = CKT_ROLE_OPERATOR, .owner_uid = bob},
			CKT_POLICY_DENIED},
		{{.uid = nobody, .token = alice, .operates = true, .owner_uid = bob},
			CKT_POLICY_YES},
		{{.uid = nobody, .token = alice, .role = CKT_ROLE_ADMINISTRATOR, .owner_uid = 1001},
			CKT_POLICY_YES},
		{{.uid = nobody,
			 .role = CKT_ROLE_ADMINISTRATOR,
			 .operates = true,
			 .owner_uid = 1001},
			CKT_POLICY_DENIED},
		/* Over the UNIX socket a token adds to what the user has. */
		{{.uid = 1001, .token = alice, .owner_uid = 1001}, CKT_POLICY_YES},
		{{.uid = 1001, .token = alice, .owner_uid = alice}, CKT_POLICY_YES},
		{{.uid = 1001, .token = alice, .owner_uid = bob}, CKT_POLICY_DENIED},
	};
	begin();
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!IS(control_of(rows[i].who), rows[i].answer))
			CU_FAIL("of a row of the table");
}

static enum ckt_policy_answer client(uint32_t uid, uint32_t owner, bool local, bool unclaimed)
{
	policy->client(&facts,
		&(struct ckt_client_facts){
			{.uid = uid, .owner_uid = owner}, "abc", local, unclaimed},
		&decision);
	return answer();
}

static void test_client(void)
{
	begin();
	IS(client(1001, 1001, true, false), CKT_POLICY_YES);
	IS(client(1002, 1001, true, false), CKT_POLICY_DENIED);
	HAS(decision.reason, "session abc belongs to another user");
	IS(client(1002, 1001, true, true), CKT_POLICY_YES);
	IS(client(1002, CKT_UID_UNKNOWN, true, false), CKT_POLICY_YES);
	/* Over TCP the key alone proves it, unless another token speaks against it. */
	IS(client(CKT_UID_UNKNOWN, 1001, false, false), CKT_POLICY_YES);
	const uint32_t alice = ckt_owner_of_token("alice"), bob = ckt_owner_of_token("bob");
	const struct {
		uint32_t token, owner;
		bool unclaimed;
		enum ckt_policy_answer answer;
	} rows[] = {
		{alice, alice, false, CKT_POLICY_YES},
		{bob, alice, false, CKT_POLICY_DENIED},
		{bob, alice, true, CKT_POLICY_YES},
		{0, alice, false, CKT_POLICY_YES},
		{bob, 1001, false, CKT_POLICY_YES},
		{bob, CKT_UID_UNKNOWN, false, CKT_POLICY_YES},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		policy->client(&facts,
			&(struct ckt_client_facts){.control = {.uid = CKT_UID_UNKNOWN,
							   .token = rows[i].token,
							   .owner_uid = rows[i].owner},
				.session = "abc",
				.unclaimed = rows[i].unclaimed},
			&decision);
		IS(answer(), rows[i].answer);
	}
}

static void test_busy(void)
{
	static const struct ckt_busy_facts cases[] = {{"abc", true, false, false},
		{"abc", false, false, false}, {"abc", true, true, false},
		{"abc", true, false, true}};
	static const char *const saves[] = {
		"", "starting or ending", "another checkpoint or migration", "of its job"};
	begin();
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum ckt_policy_answer expected = i ? CKT_POLICY_BUSY : CKT_POLICY_YES;
		policy->save(&facts, &cases[i], &decision);
		IS(answer(), expected);
		HAS(decision.reason, saves[i]);
		policy->pause(&facts, &cases[i], &decision);
		IS(answer(), expected);
		policy->resume(&facts, &cases[i], &decision);
		IS(answer(), expected);
		HAS(decision.reason, i ? "session abc is starting, ending or being saved" : "");
	}
}

static enum ckt_policy_answer bytes(
	const struct ckt_identity *identity, uint64_t taken, uint64_t wanted, uint64_t left)
{
	policy->image_bytes(&(struct ckt_image_bytes_facts){.identity = *identity,
				    .limit_bytes = 600,
				    .taken_bytes = taken,
				    .wanted_bytes = wanted,
				    .file_system_known = left != UINT64_MAX,
				    .file_system_bytes = 1000,
				    .free_bytes = left},
		&decision);
	return answer();
}

static void test_image_bytes(void)
{
	IS(bytes(&user, 500, 100, 150), CKT_POLICY_YES);
	IS(bytes(&user, 501, 100, 1000), CKT_POLICY_FULL);
	HAS(decision.reason, "--image-space");
	IS(bytes(&user, 0, UINT64_MAX, 1000), CKT_POLICY_FULL);
	/* A twentieth of the file system stays free. */
	IS(bytes(&user, 500, 100, 149), CKT_POLICY_NO_SPACE);
	IS(bytes(&user, 500, 100, UINT64_MAX), CKT_POLICY_YES);
	IS(bytes(&root, 5000, 100, 0), CKT_POLICY_YES);
	/* Without an option: half of the file system. */
	struct ckt_image_bytes_facts half = {.identity = user,
		.wanted_bytes = 501,
		.file_system_known = true,
		.file_system_bytes = 1000,
		.free_bytes = 1000};
	policy->image_bytes(&half, &decision);
	IS(answer(), CKT_POLICY_FULL);
	half.wanted_bytes = 500;
	policy->image_bytes(&half, &decision);
	IS(answer(), CKT_POLICY_YES);
}

static enum ckt_policy_answer memory(uint64_t taken, uint64_t wanted, uint64_t left)
{
	policy->image_memory(&facts,
		&(struct ckt_image_memory_facts){user, wanted, taken, 2000, left}, &decision);
	return answer();
}

static void test_image_memory(void)
{
	begin();
	/* Half of the host's. */
	IS(memory(900, 100, 100), CKT_POLICY_YES);
	IS(memory(901, 100, 100), CKT_POLICY_FULL);
	HAS(decision.reason, "--image-memory");
	IS(memory(0, UINT64_MAX, 100), CKT_POLICY_FULL);
	IS(memory(0, 101, 100), CKT_POLICY_NO_SPACE);
	options.image_memory = 50;
	IS(memory(0, 51, 100), CKT_POLICY_FULL);
	IS(memory(0, 50, 100), CKT_POLICY_YES);
	IS(policy->image_memory_bytes(&facts, 2000), 50);
	options.image_memory = 0;
	IS(policy->image_memory_bytes(&facts, 2000), 1000);
}

UNIT_SUITE(limits, {"connection", test_connection}, {"denial delay", test_denial_delay},
	{"entry", test_entry}, {"counts", test_counts}, {"stage", test_stage},
	{"session", test_session}, {"share", test_share}, {"control", test_control},
	{"client", test_client}, {"busy", test_busy}, {"image bytes", test_image_bytes},
	{"image memory", test_image_memory})
