/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of owners: rules such as "job=train memory=8G share=30 priority=5 sessions=4 gpus=0,1
 * when-full=wait", one a line (cricket-server(8), "Limits").  A rule belongs to a key; a session obeys every rule whose key
 * fits it, and a rule's memory and sessions add up over all sessions that it fits.
 *
 *	session=ID	    one session
 *	user=NAME	    sessions over the UNIX socket of that user of this host, a name or a number
 *	container=PATH	    local clients in that cgroup, or below it
 *	job=NAME	    what the client says its job is: of one owner alone, so that nobody can use up
 *			    the limit of another's job by naming it
 *	token=NAME	    sessions of that token
 *
 * Errors: -errno with a sentence that names the word and the remedy.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/policy/turn_order.h"

enum ckt_limit_key {
	CKT_LIMIT_SESSION,
	CKT_LIMIT_USER,
	CKT_LIMIT_CONTAINER,
	CKT_LIMIT_JOB,
	CKT_LIMIT_TOKEN,
	CKT_LIMIT_KEYS
};

enum {
	CKT_LIMIT_NAME_MAX = 511,
	CKT_LIMIT_LINE_MAX = 1023,
	CKT_LIMIT_SESSIONS_MAX = 1000000,
	CKT_LIMIT_PRIORITY_MAX = 100, /* and as much below 0 */
	CKT_SHARE_GROUP_MAX = 14,     /* characters; a struct ckt_identity holds it */
};

/* The bits of what a rule sets. */
enum {
	CKT_LIMIT_SETS_MEMORY = 1,
	CKT_LIMIT_SETS_SHARE = 2,
	CKT_LIMIT_SETS_PRIORITY = 4,
	CKT_LIMIT_SETS_SESSIONS = 8,
	CKT_LIMIT_SETS_GPUS = 16,
	CKT_LIMIT_SETS_CAP = 32,
	CKT_LIMIT_SETS_CLASS = 64,
	CKT_LIMIT_SETS_SWAP = 128,
	CKT_LIMIT_SETS_WHEN_FULL = 256,
	CKT_LIMIT_SETS_SHARE_MODE = 512,
	CKT_LIMIT_SETS_SHARE_GROUP = 1024,
};

/* What becomes of an allocation that fits its owner's limits and does not fit the GPU now. */
enum ckt_when_full {
	CKT_WHEN_FULL_FAIL, /* out of memory */
	CKT_WHEN_FULL_WAIT, /* it waits (wait_queue.h) */
	CKT_WHEN_FULL_SWAP, /* others make room; as WAIT until there is a mechanism */
};

/* How sessions share a GPU: one after the other, or at the same time, by MPS (session/mps.h). */
enum ckt_share_mode { CKT_SHARE_TIME, CKT_SHARE_SPACE };

struct ckt_limit_rule {
	enum ckt_limit_key key;
	char name[CKT_LIMIT_NAME_MAX + 1];
	uint32_t owner; /* of user= and token=: the owner's number, rpc/token_file.h */
	unsigned sets;
	uint64_t memory_bytes; /* on each GPU; whole granules of 2 MiB */
	uint64_t swap_bytes;   /* of swap memory and files, of all GPUs */
	unsigned share;        /* percent of a GPU's time, of those who want it */
	unsigned cap;          /* percent, of all of its time */
	int priority;
	enum ckt_turn_class class;
	unsigned sessions;
	uint64_t gpus; /* bit N: the driver's GPU N */
	enum ckt_when_full when_full;
	enum ckt_share_mode share_mode;
	/* "": none.  Of an owner alone (user=, token=): jobs and containers are what a client says. */
	char share_group[CKT_SHARE_GROUP_MAX + 1];
	bool live; /* set by cricketctl, not by a file */
};

/* Whom a rule may fit.  Nothing in it is owned; strings are never NULL, and empty if not known. */
struct ckt_limit_subject {
	const char *session, *container, *job;
	uint32_t owner; /* CKT_UID_UNKNOWN: nobody knows */
};

struct ckt_limit_table {
	struct ckt_limit_rule *rules; /* one a key and name */
	size_t count, room;
};

const char *ckt_limit_key_name(enum ckt_limit_key key);
/* "KEY=NAME", resolved: a user's name is looked up on this host. */
int ckt_limit_key_parse(
	const char *word, struct ckt_limit_rule *ret_rule, char *ret_message, size_t message_size);
/*
 * A line without its end.  -ENODATA: it is empty or a comment.  ret_message names the word, not
 * the line.
 */
int ckt_limit_rule_parse(
	const char *line, struct ckt_limit_rule *ret_rule, char *ret_message, size_t message_size);
/* The line that is parsed to the same rule. */
void ckt_limit_rule_text(const struct ckt_limit_rule *rule, char ret_text[CKT_LIMIT_LINE_MAX + 1]);

/* "fail", "wait" or "swap"; -EINVAL. */
int ckt_when_full_parse(const char *text, enum ckt_when_full *ret_when_full);
const char *ckt_when_full_name(enum ckt_when_full when_full);
/* "time" or "space"; -EINVAL. */
int ckt_share_mode_parse(const char *text, enum ckt_share_mode *ret_mode);
const char *ckt_share_mode_name(enum ckt_share_mode mode);

bool ckt_limit_fits(const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject);
/* Whether what the other has counts for the subject, by this rule. */
bool ckt_limit_counts(const struct ckt_limit_rule *rule, const struct ckt_limit_subject *subject,
	const struct ckt_limit_subject *other);

/* What the rule sets replaces what an earlier one of its key and name set.  0 or -ENOMEM. */
int ckt_limit_table_put(struct ckt_limit_table *table, const struct ckt_limit_rule *rule);
/* The rule of that key and name; NULL: none. */
struct ckt_limit_rule *ckt_limit_table_find(
	const struct ckt_limit_table *table, const struct ckt_limit_rule *key);
/* What the rules say of the subject: the first that fits, by session, job, container, token, user. */
enum ckt_when_full ckt_limit_table_when_full(const struct ckt_limit_table *table,
	const struct ckt_limit_subject *subject, enum ckt_when_full otherwise);
enum ckt_share_mode ckt_limit_table_share_mode(const struct ckt_limit_table *table,
	const struct ckt_limit_subject *subject, enum ckt_share_mode otherwise);
/* Which owners share GPUs in space with the subject's; "": none. */
const char *ckt_limit_table_share_group(
	const struct ckt_limit_table *table, const struct ckt_limit_subject *subject);
bool ckt_limit_table_remove(struct ckt_limit_table *table, const struct ckt_limit_rule *key);
void ckt_limit_table_free(struct ckt_limit_table *table);
