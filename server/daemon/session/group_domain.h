/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of one group share, and nobody else has.  A thread of the server's for each group
 * enters it first and forks the group's workers, which are born inside:
 *
 *	abstract sockets   Landlock's scope (version 6): the group's workers connect to each other's
 *	network            a namespace of its own, unless --worker-network is on
 *	/dev/shm           in memory, of a fixed size
 *
 * The last two need root, or workers with a user namespace (user_namespace.h).  The thread cannot enter that one,
 * because the server has other threads: a child of it makes the two there, and each worker enters them.
 *
 *	nobody -> first worker: the thread starts -> more workers -> last one gone: the thread ends
 *
 * Here the group of a session that is being restored is its claimant's (identity.h), also afterwards:
 * nobody leaves a domain, or enters one later.  The next server's workers have domains of their own.
 *
 * Threading: the loop's thread, which waits for the group's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_group_domain;
struct ckt_identity;
struct ckt_server;
struct ckt_worker_user;

/* Whether --worker-network leaves workers a network: the host's, or the group's loopback. */
bool ckt_group_domain_has_network(const struct ckt_server *server);
/*
 * What of it this host offers.  Precondition: ckt_spawn_mounts_probe.  0; or -EPERM and a sentence where
 * --worker-network group asks for what it does not.
 */
int ckt_group_domain_probe(struct ckt_server *server, char *ret_message, size_t message_size);

/*
 * For one more worker of this owner, which runs as this user.  NULL: there is nothing to share.  0, or -errno
 * and a sentence.
 */
int ckt_group_domain_join(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, struct ckt_group_domain **ret_domain, char *ret_message,
	size_t message_size);
/* Whether workers of this owner share one that lives: another worker of theirs has to be born inside. */
bool ckt_group_domain_exists(const struct ckt_server *server, const struct ckt_identity *owner);
/* Becomes this owner's, who has none, with all that is in it.  NULL is fine. */
void ckt_group_domain_give(struct ckt_group_domain *domain, const struct ckt_identity *owner);
/* NULL is fine. */
void ckt_group_domain_leave(struct ckt_group_domain *domain);

/*
 * As fork(): a child of the server's, inside of the domain, that runs `child` and ends.  NULL: of the
 * calling thread, in no domain.  -1 and errno.
 */
pid_t ckt_group_domain_fork(
	struct ckt_group_domain *domain, void (*child)(void *context), void *context);
/*
 * For that child, once it is in the user namespace of its user; nothing without one, or without a domain.
 * 0, or -1 and errno.
 */
int ckt_group_domain_enter(const struct ckt_group_domain *domain);
