/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a group that are no workers: as the group's user, where its workers are (group_domain.h), with
 * their mounts and without privileges.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <sys/types.h>

struct ckt_group_domain;
struct ckt_server;
struct ckt_worker_user;

struct ckt_group_process {
	const struct ckt_worker_user *user;
	struct ckt_group_domain *domain; /* NULL: none */
	const char *directory;           /* the group's, made if it is missing, mode 0700 */
	const char *program;             /* that it will execute: it stays visible */
	int fd; /* becomes descriptor 3, the only one beside 0 to 2; -1: none */
	/* Runs in the child, which has other threads' locks: it allocates nothing.  Its exit status. */
	int (*run)(const void *context);
	const void *context;
};

enum { CKT_GROUP_PROCESS_FD = 3, CKT_GROUP_PROCESS_FAILED = 126 };

/* The process, a direct child with /dev/null as its streams; or -errno. */
pid_t ckt_group_process_start(struct ckt_server *server, const struct ckt_group_process *process);
