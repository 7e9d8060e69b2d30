/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --uid-range: the workers of one owner are a group with a user id of its own.
 *
 *	           join                    last worker gone            cleaned
 *	free id ----------> drawn, 1 worker ----------------> cleaning ---------> free id
 *	                    ^     | join, leave                 |  ^ failed: again later
 *	                    +-----+                             +--+
 *
 * Cleaning (uid_clean.h) ends what the workers left behind; nobody joins then, the owner neither.
 * A file SOCKET.d/uid-N names the owner of the id, so that the next server knows the groups of the
 * workers that it adopts.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_identity;
struct ckt_server;
struct ckt_uid_group;
struct ckt_worker_user;

/*
 * Reads --uid-range.  Precondition: server->user is known; it becomes an example of a worker's
 * user.  0 with a warning or an empty text, or -errno and a sentence.
 */
int ckt_uid_groups_init(struct ckt_server *server, char *ret_message, size_t message_size);
/* Waits a moment for what is being cleaned; the next server cleans the rest. */
void ckt_uid_groups_fini(struct ckt_server *server);

/*
 * The group of this owner, for one more worker; NULL: without --uid-range.  0, or -errno and a
 * sentence: -EUSERS if no id is free.
 */
int ckt_uid_group_join(struct ckt_server *server, const struct ckt_identity *owner,
	struct ckt_uid_group **ret_group, char *ret_message, size_t message_size);
/* Whether this owner has a group: another worker of theirs needs its id. */
bool ckt_uid_group_exists(const struct ckt_server *server, const struct ckt_identity *owner);
/* Becomes this owner's, who has none, with all its workers.  NULL is fine.  0 or -errno: it stays as it was. */
int ckt_uid_group_give(struct ckt_uid_group *group, const struct ckt_identity *owner);
/* Its worker is gone, and the server's files of it.  NULL is fine. */
void ckt_uid_group_leave(struct ckt_uid_group *group);
/* The user of a group's workers; NULL: server->user. */
void ckt_uid_group_user(const struct ckt_server *server, const struct ckt_uid_group *group,
	struct ckt_worker_user *ret_user);

/* At the start: reads the files of the earlier server's groups. */
void ckt_uid_groups_load(struct ckt_server *server);
/* The group of a worker that is found again, as which user it runs; NULL: not one of a group. */
struct ckt_uid_group *ckt_uid_group_adopt(struct ckt_server *server, uid_t uid);
/* All workers that can be found are: cleans the groups without any. */
void ckt_uid_groups_settle(struct ckt_server *server);
/* A sentence for the log: what is in force; false: nothing to say. */
bool ckt_uid_groups_describe(const struct ckt_server *server, char *ret_text, size_t text_size);
