/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/restore_claim.c: whose a restored session is, and whether it may have the
 * id that its image names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/restore_claim.h"
#include "server/daemon/session/server_key.h"

enum { ALICE = 1001, MALLORY = 1002 };

static char id[CKT_SESSION_ID_SIZE + 1], message[CKT_MESSAGE_MAX];
static struct ckt_worker_origin_res origin;

enum image { FORGED, DERIVED, SEALED, BROKEN };

/* A session of Alice's as an image has it; FORGED: its id with another secret. */
static void make_origin(enum image image)
{
	struct ckt_worker_owner_args owner;
	memset(&origin, 0, sizeof origin);
	memset(origin.secret_hash, 9, sizeof origin.secret_hash);
	ckt_server_key_session_id((uint8_t *)origin.secret_hash, 0, id);
	origin.session = id;
	origin.uid = ALICE;
	origin.generation = 1;
	memset(server.key_name, 0x11, sizeof server.key_name);
	if (image == FORGED)
		origin.secret_hash[0] ^= 1;
	if (image < SEALED)
		return;
	ckt_server_key_seal(&server, id, ALICE, (uint8_t *)origin.secret_hash, 1, &owner);
	memcpy(origin.key, owner.key, sizeof origin.key);
	memcpy(origin.seal, owner.seal, sizeof origin.seal);
	origin.uid += image == BROKEN;
}

/* ckt_owner_of_token("token"), "administrator" and "user" */
enum { SINGLE = 0xbc469e9du, CHIEF = 0x80000001u, USER = 0x80000002u };

static const struct ckt_claimant alice = {.owner = ALICE, .uid = ALICE},
				 mallory = {.owner = MALLORY, .uid = MALLORY},
				 nobody = {.owner = CKT_UID_UNKNOWN, .uid = CKT_UID_UNKNOWN},
				 root = {.for_others = true},
				 chief = {.owner = CHIEF,
					 .uid = CKT_UID_UNKNOWN,
					 .token = CHIEF,
					 .role = CKT_ROLE_ADMINISTRATOR,
					 .for_others = true},
				 single = {.owner = SINGLE,
					 .uid = CKT_UID_UNKNOWN,
					 .token = SINGLE,
					 .for_others = true},
				 user = {.owner = USER, .uid = CKT_UID_UNKNOWN, .token = USER};

static int claim(struct ckt_session *session, const struct ckt_claimant *claimant, enum image image,
	struct ckt_session **ret_other, bool *ret_end)
{
	*session = (struct ckt_session){
		.server = &server, .id = "ffffffffffff", .claimant = *claimant, .uid = 12345};
	make_origin(image);
	message[0] = 0;
	*ret_other = NULL;
	*ret_end = false;
	return ckt_claim_check(session, &origin, ret_other, ret_end, message);
}

static void test_owner(void)
{
	static const struct {
		const struct ckt_claimant *claimant;
		enum image image;
		int result;
		uint32_t uid;
		bool unclaimed;
	} cases[] = {
		{&alice, SEALED, 0, ALICE, false},
		{&mallory, SEALED, 0, MALLORY, false},
		{&alice, FORGED, 0, ALICE, false},
		{&mallory, DERIVED, 0, MALLORY, false},
		{&nobody, DERIVED, 0, CKT_UID_UNKNOWN, false},
		{&nobody, SEALED, 0, CKT_UID_UNKNOWN, false},
		{&root, SEALED, 0, ALICE, false},
		{&root, DERIVED, 0, 0, true},
		{&root, FORGED, 0, 0, true},
		{&chief, SEALED, 0, ALICE, false},
		{&chief, DERIVED, 0, CHIEF, true},
		{&single, SEALED, 0, ALICE, false},
		{&single, DERIVED, 0, SINGLE, true},
		{&user, SEALED, 0, USER, false},
		{&user, DERIVED, 0, USER, false},
		{&root, BROKEN, -EBADMSG, 12345, false},
		{&alice, BROKEN, -EBADMSG, 12345, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_session session, *other;
		bool end;
		IS(claim(&session, cases[i].claimant, cases[i].image, &other, &end),
			cases[i].result);
		IS(session.uid, cases[i].uid);
		IS(session.unclaimed, cases[i].unclaimed);
		if (cases[i].result)
			HAS(message, "its seal is wrong");
		else
			IS(session.proven, cases[i].image != FORGED);
	}
}

static void test_marks(void)
{
	static const struct {
		uint32_t owner;
		const struct ckt_claimant *claimant;
		enum image image;
		int result;
		bool unproven;
	} cases[] = {
		{ALICE, &alice, FORGED, 0},
		{ALICE, &alice, SEALED, 0},
		{ALICE, &mallory, FORGED, -EPERM},
		{ALICE, &mallory, DERIVED, -EPERM},
		{ALICE, &mallory, SEALED, -EPERM},
		{ALICE, &nobody, DERIVED, -EPERM},
		{ALICE, &root, FORGED, 0},
		{ALICE, &chief, DERIVED, 0},
		{ALICE, &single, DERIVED, -EPERM},
		{ALICE, &user, DERIVED, -EPERM},
		{USER, &user, FORGED, 0},
		/* Whose it is was never known: who has the image has it. */
		{CKT_UID_UNKNOWN, &nobody, DERIVED, 0},
		{CKT_UID_UNKNOWN, &nobody, FORGED, -EPERM},
		{CKT_UID_UNKNOWN, &mallory, FORGED, -EPERM},
		{CKT_UID_UNKNOWN, &alice, SEALED, 0},
		/* Who wrote it had the id from an image. */
		{MALLORY, &alice, SEALED, 0, true},
		{MALLORY, &alice, DERIVED, 0, true},
		{MALLORY, &alice, FORGED, -EPERM, true},
		{MALLORY, &mallory, FORGED, 0, true},
		{MALLORY, &alice, SEALED, -EPERM, false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int mark = 0; mark < CKT_MARKS; mark++) {
			struct ckt_session session, *other;
			bool end;
			make_origin(DERIVED);
			IS(ckt_session_mark_write(&server, id, (enum ckt_session_mark)mark,
				   cases[i].owner, !cases[i].unproven, "x"),
				0);
			IS(claim(&session, cases[i].claimant, cases[i].image, &other, &end),
				mark == CKT_MARK_PAUSED ? 0 : cases[i].result);
			if (*message)
				HAS(message, "belongs to another user");
			/* it goes when the restore is done, and only then */
			YES(ckt_session_mark_exists(&server, id));
			ckt_session_mark_remove(&server, id, (enum ckt_session_mark)mark, 0);
		}
}

/* A server that drains takes back what it wrote or parked, and nothing else. */
static void test_drained(void)
{
	static const struct {
		enum image image;
		int mark; /* -1: none */
		int result;
	} cases[] = {{SEALED, -1, 0}, {DERIVED, -1, -EBUSY}, {DERIVED, CKT_MARK_PARKED, 0},
		{DERIVED, CKT_MARK_MOVED, -EBUSY}, {BROKEN, -1, -EBADMSG}};
	server.drain.on = true;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_session session, *other;
		bool end;
		make_origin(DERIVED);
		if (cases[i].mark >= 0)
			IS(ckt_session_mark_write(&server, id, (enum ckt_session_mark)cases[i].mark,
				   ALICE, true, "x"),
				0);
		IS(claim(&session, &alice, cases[i].image, &other, &end), cases[i].result);
		if (cases[i].result == -EBUSY)
			HAS(message, "is drained for maintenance");
		if (cases[i].mark >= 0)
			ckt_session_mark_remove(
				&server, id, (enum ckt_session_mark)cases[i].mark, 0);
	}
	server.drain.on = false;
}

static void test_sessions(void)
{
	static const struct {
		const struct ckt_claimant *claimant;
		enum image image;
		bool held, preloads, other_proven;
		int result;
		bool end;
		const char *says;
	} cases[] = {
		{&alice, SEALED, false, false, true, -EEXIST, false, "end it first with"},
		{&mallory, FORGED, false, false, true, -EEXIST, false, "belongs to another user"},
		{&mallory, DERIVED, false, false, true, -EEXIST, false, "belongs to another user"},
		/* It moves on this server: its own user's doing, or nobody's. */
		{&alice, DERIVED, true, false, true, 1, false, ""},
		{&mallory, DERIVED, true, false, true, -EEXIST, false, "belongs to another user"},
		{&mallory, FORGED, true, true, true, -EEXIST, false, "belongs to another user"},
		{&root, DERIVED, true, false, true, 1, false, ""},
		{&alice, DERIVED, false, true, true, 1, true, ""},
		{&mallory, DERIVED, false, true, true, -EEXIST, false, "belongs to another user"},
		/* What took the id on its image's word alone gives way to whose it is. */
		{&mallory, DERIVED, false, false, false, 1, true, ""},
		{&mallory, FORGED, false, false, false, -EEXIST, false, "belongs to another user"},
	};
	make_origin(DERIVED);
	struct ckt_session *other = session_new(id);
	other->uid = ALICE;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_session session, *found;
		bool end;
		other->holder = cases[i].held ? (struct ckt_peer *)&other : NULL;
		other->proven = cases[i].other_proven;
		make_origin(cases[i].image);
		session = (struct ckt_session){.server = &server,
			.id = "ffffffffffff",
			.claimant = *cases[i].claimant,
			.preloader = cases[i].preloads ? (struct ckt_peer *)&other : NULL};
		found = NULL;
		end = false;
		message[0] = 0;
		IS(ckt_claim_check(&session, &origin, &found, &end, message), cases[i].result);
		HAS(message, cases[i].says);
		if (cases[i].result == 1) {
			YES(found == other);
			IS(end, cases[i].end);
		}
	}
	/* Who showed its secret. */
	struct ckt_session session = {.server = &server,
				   .id = "ffffffffffff",
				   .claimant = {.uid = CKT_UID_UNKNOWN, .shown = 4711}},
			   *found;
	bool end;
	other->holder = (struct ckt_peer *)&other;
	/* Another session whose worker has that number says nothing. */
	other->pid = 4711;
	IS(ckt_claim_check(&session, &origin, &found, &end, message), -EEXIST);
	other->pid = -1;
	session.claimant.shown = other->serial;
	IS(ckt_claim_check(&session, &origin, &found, &end, message), 1);
	other->holder = NULL;
	session_drop(other);
}

static void test_claimant(void)
{
	struct ckt_peer peer = {.server = &server, .who = {.kind = CKT_PEER_UNIX, .uid = ALICE}};
	NO(ckt_claimant_of(&peer).for_others && geteuid() != ALICE);
	IS(ckt_claimant_of(&peer).uid, ALICE);
	peer.who.uid = 0;
	YES(ckt_claimant_of(&peer).for_others);
	/* Nobody over TCP is root. */
	peer.who.kind = CKT_PEER_LOOPBACK;
	NO(ckt_claimant_of(&peer).for_others);
	IS(ckt_claimant_of(&peer).uid, CKT_UID_UNKNOWN);
	server.token = (struct ckt_token){.bytes = "right", .size_bytes = 5};
	peer.token = SINGLE;
	IS(ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME), SINGLE);
	YES(ckt_claimant_of(&peer).for_others);
	IS(ckt_claimant_of(&peer).owner, SINGLE);
	/* The token was taken away. */
	server.token.size_bytes = 0;
	NO(ckt_claimant_of(&peer).for_others);
	IS(ckt_claimant_of(&peer).owner, CKT_UID_UNKNOWN);
	YES(ckt_claimant_may(&server, &alice, ALICE) && ckt_claimant_may(&server, &root, ALICE) &&
		ckt_claimant_may(&server, &chief, 0));
	NO(ckt_claimant_may(&server, &mallory, ALICE) ||
		ckt_claimant_may(&server, &nobody, ALICE) ||
		ckt_claimant_may(&server, &single, ALICE) ||
		ckt_claimant_may(&server, &nobody, CKT_UID_UNKNOWN));
}

UNIT_SUITE(restore_claim, {"owner", test_owner}, {"marks", test_marks}, {"drained", test_drained},
	{"sessions", test_sessions}, {"claimant", test_claimant})
