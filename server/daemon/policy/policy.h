/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions that the server asks before it grants something.
 *
 *	caller --facts--> ask.c --facts--> struct ckt_policy (limits.c) --decision--> caller acts on it
 *
 * A policy is a table of pure functions: a struct of facts in, a decision with a reason out.  It
 * opens nothing, changes nothing and keeps nothing; counts are taken from the server's own lists at
 * the time of the question (ask.c), so that they cannot be wrong.  limits.c, the one policy there
 * is, decides by the limits in the server's options.
 *
 * To add a policy (quotas, a scheduler of GPUs, priorities):
 *  - write FILE.c beside limits.c with its own `const struct ckt_policy`.  A question that the new
 *    policy leaves as it is takes the function of limits.c: start from a copy of ckt_policy_limits.
 *  - choose it in main.c, which sets ckt_server.policy; nothing else names a policy.
 *  - a fact that the new policy needs and no question has yet becomes a field of that question's
 *    facts, filled in ask.c.
 *  - an answer that comes later (a queue) is CKT_POLICY_WAIT: the caller asks again once a session
 *    has ended, see ckt_peer_session_gone.
 *
 * Memory and time of GPUs are asked for all the time, and may be waited for.  This is the seam between
 * what happens to them and who decides:
 *
 *	what happened to a session        told as (events.h)       what may be decided         by
 *	it came, ended                    came, left               -
 *	it asks for memory                leased, wait, refused    grant, wait, refuse         wait_queue.h
 *	requests can be granted           choose                   which one, none yet, none   wait_policy.h, or a
 *	                                                                                       scheduler (scheduler.h)
 *	that was decided                  granted, refused,        -
 *	                                  decided, fallback
 *	it freed memory, waits no more    freed, withdrawn         -
 *	others wait for its memory        swapped-out, swapped-in, out, in                     quantum.h
 *	                                  not-swapped
 *	it wants the GPU, is done with it (turns of listings)      give a turn, end it         turn_order.h, or a
 *	                                                                                       scheduler (turn.h)
 *	it keeps its turn, has given it   overdue, back            the next goes beside it     turn.h
 *	its cap keeps it from a turn      capped                   -
 *
 * The facts of each (ckt_event_facts) are what the built-in policies decide by, in numbers without
 * pointers: so a scheduler outside of the server is told the same (rpc/control.x, FACTS), its
 * decisions take the same way (DECIDE), and a record of them can be replayed (tests/policy).
 *
 * Reasons name the limit and the remedy and reach the user as they are.
 *
 * Threading: any thread; the facts are the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/token_file.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/policy/turn_order.h"
#include "server/daemon/policy/wait_policy.h"

struct ckt_options;

/* What a policy is told of an event.  Zero where it makes no sense. */
struct ckt_event_facts {
	const char *reason; /* static; NULL: none */
	uint64_t request;
	int gpu; /* the driver's number; -1: of none */
	uint64_t bytes;
	int64_t waited_ms;
};

enum ckt_policy_answer {
	CKT_POLICY_YES,
	CKT_POLICY_WAIT,      /* not now: ask again once a session has ended */
	CKT_POLICY_FULL,      /* a limit is reached */
	CKT_POLICY_NO_SPACE,  /* the file system or the host has no more room */
	CKT_POLICY_DENIED,    /* it belongs to another user, or nothing proves who asks */
	CKT_POLICY_BUSY,      /* another operation uses it */
	CKT_POLICY_NO_DEVICE, /* not among the GPUs of this server */
	CKT_POLICY_STOPPING,  /* the server ends */
};

struct ckt_decision {
	enum ckt_policy_answer answer;
	char reason[CKT_MESSAGE_MAX]; /* "" with CKT_POLICY_YES */
};

/* The server, as every question has it.  Nothing in it is owned. */
struct ckt_policy_server {
	const struct ckt_options *options;
	const char *host;
	unsigned descriptor_max; /* that the server may have open; 0: not known */
	unsigned session_count;
	unsigned driver_gpu_count; /* what the driver finds */
	const unsigned *gpus;      /* as --gpus; none: all that the driver finds */
	unsigned gpu_count;
	bool stopping, has_token;
};

/* ---- Connections */

/* A connection was accepted; its peer has not said hello yet. */
struct ckt_connection_facts {
	struct ckt_identity source;
	/* Connections that have not said hello, this one included. */
	unsigned source_waiting, waiting;
	bool source_has_most;
	/*
	 * The system gives out the lowest free descriptor, so this number says how many are open.
	 */
	unsigned descriptor;
};

enum ckt_connection_answer {
	CKT_CONNECTION_ADMIT,
	CKT_CONNECTION_REFUSE,
	/* in place of an older one of the same source that has not said hello; then ask again */
	CKT_CONNECTION_REPLACE_OWN,
	CKT_CONNECTION_REPLACE_MOST, /* in place of the latest one of the source with the most */
};

/* A peer said hello. */
struct ckt_entry_facts {
	bool local;    /* over the server's UNIX socket */
	bool loopback; /* from this host, over TCP */
	enum { CKT_PROOF_NONE, CKT_PROOF_RIGHT, CKT_PROOF_WRONG, CKT_PROOF_EXPIRED } token;
	char token_name[CKT_TOKEN_NAME_MAX + 1]; /* with CKT_PROOF_EXPIRED */
};

/* How many of something the asking identity already has. */
struct ckt_count_facts {
	struct ckt_identity identity;
	unsigned count;
};

struct ckt_stage_facts {
	struct ckt_identity identity;
	unsigned of_connection, of_identity; /* images under way */
	unsigned descriptors;                /* see ckt_policy.descriptor */
};

/* ---- Sessions */

struct ckt_session_facts {
	struct ckt_identity identity;
	unsigned of_identity; /* sessions */
	int gpu;              /* that a restore asks for; -1: any */
	uint64_t denied_gpus; /* bit N: a limit of its owner leaves it no GPU N */
	bool restore;
	unsigned max; /* sessions that its token may have; 0: as everybody */
	/* a limit of its owner that has no room for one more; empty: there is room */
	char full[CKT_MESSAGE_MAX / 2];
};

struct ckt_share_facts {
	struct ckt_identity identity;
	/* of its token, in bytes; 0: as everybody */
	uint64_t token_device_memory, token_host_memory;
	uint64_t denied_gpus; /* as of a session */
};

struct ckt_share {
	unsigned gpus[CKT_DEVICES_MAX]; /* the driver's ordinals, ascending */
	unsigned gpu_count;
	uint64_t device_memory_bytes, host_memory_bytes; /* 0: no limit */
};

/* Who wants to see or control what a user owns. */
struct ckt_control_facts {
	uint32_t uid;       /* CKT_UID_UNKNOWN: not over the UNIX socket */
	uint32_t token;     /* the owner number of the token that it proved; 0: none */
	enum ckt_role role; /* of that token */
	bool operates;      /* that token is an operator's of the owner's project */
	bool secret;        /* holds that session's key */
	uint32_t owner_uid;
};

/* A program's connection for an existing session. */
struct ckt_client_facts {
	struct ckt_control_facts control;
	const char *session;
	bool local;     /* over the server's UNIX socket */
	bool unclaimed; /* restored for a user who has not come yet */
};

/* The present state of a session. */
struct ckt_busy_facts {
	const char *session;
	bool live;        /* neither starting nor ending */
	bool held;        /* frozen for a checkpoint or a migration */
	bool held_by_job; /* stopped with its job, by another caller */
};

/* ---- Bytes */

struct ckt_image_bytes_facts {
	struct ckt_identity identity;
	uint64_t limit_bytes; /* --image-space; 0: half of the file system */
	uint64_t taken_bytes, wanted_bytes;
	bool file_system_known;
	uint64_t file_system_bytes, free_bytes;
};

struct ckt_image_memory_facts {
	struct ckt_identity identity;
	uint64_t wanted_bytes, taken_bytes;
	uint64_t host_bytes, free_bytes;
};

struct ckt_policy {
	const char *name;
	/* May this peer connect?  The reason is for the log. */
	enum ckt_connection_answer (*connection)(const struct ckt_policy_server *server,
		const struct ckt_connection_facts *facts, struct ckt_decision *ret_decision);
	/* How long does the reply to a wrong token or secret wait, after so many in a row? */
	unsigned (*denial_delay_ms)(const struct ckt_policy_server *server, unsigned failures);
	/* May it connect, with what it showed? */
	void (*entry)(const struct ckt_policy_server *server, const struct ckt_entry_facts *facts,
		struct ckt_decision *ret_decision);
	/* May one more of its connections wait for a session? */
	void (*waiting)(const struct ckt_policy_server *server, const struct ckt_count_facts *facts,
		struct ckt_decision *ret_decision);
	/* May it have another control connection, another listener to events? */
	void (*control_connection)(const struct ckt_policy_server *server,
		const struct ckt_count_facts *facts, struct ckt_decision *ret_decision);
	void (*event_listener)(const struct ckt_policy_server *server,
		const struct ckt_count_facts *facts, struct ckt_decision *ret_decision);
	/* May the server keep another descriptor open for it? */
	void (*descriptor)(const struct ckt_policy_server *server,
		const struct ckt_count_facts *facts, struct ckt_decision *ret_decision);
	/* May it have another stage? */
	void (*stage)(const struct ckt_policy_server *server, const struct ckt_stage_facts *facts,
		struct ckt_decision *ret_decision);

	/* May it have another session? */
	void (*session)(const struct ckt_policy_server *server,
		const struct ckt_session_facts *facts, struct ckt_decision *ret_decision);
	/* Which GPUs does a session see, and how much memory does it get? */
	void (*share)(const struct ckt_policy_server *server, const struct ckt_share_facts *facts,
		struct ckt_share *ret_share);
	/* May this user see and control what that one owns? */
	void (*control)(const struct ckt_policy_server *server,
		const struct ckt_control_facts *facts, struct ckt_decision *ret_decision);
	/* May this program's connection have that session? */
	void (*client)(const struct ckt_policy_server *server, const struct ckt_client_facts *facts,
		struct ckt_decision *ret_decision);
	/* May a session pause or resume now, may it be saved? */
	void (*pause)(const struct ckt_policy_server *server, const struct ckt_busy_facts *facts,
		struct ckt_decision *ret_decision);
	void (*resume)(const struct ckt_policy_server *server, const struct ckt_busy_facts *facts,
		struct ckt_decision *ret_decision);
	void (*save)(const struct ckt_policy_server *server, const struct ckt_busy_facts *facts,
		struct ckt_decision *ret_decision);

	/*
	 * May it have so many more bytes in --image-dir?  The reason is a clause, for "no room:
	 * REASON".
	 */
	void (*image_bytes)(
		const struct ckt_image_bytes_facts *facts, struct ckt_decision *ret_decision);
	/*
	 * How many bytes may all images in the host's memory have together?  May one more of this
	 * size be made?
	 */
	uint64_t (*image_memory_bytes)(const struct ckt_policy_server *server, uint64_t host_bytes);
	void (*image_memory)(const struct ckt_policy_server *server,
		const struct ckt_image_memory_facts *facts, struct ckt_decision *ret_decision);
};

/* limits.c */
extern const struct ckt_policy ckt_policy_limits;
