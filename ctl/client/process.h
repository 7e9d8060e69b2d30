/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a client on this host, as /proc describes it, and the files through which it and
 * cricketctl agree that it is quiet (client/conn/quiesce.c is its side).  Errors: -errno with a
 * sentence in ret_message.  Threading: the main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CKT_PROCESS_TREE_MAX = 4096, CKT_PROCESS_PATH = 4096 };

struct ckt_process {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	char program[256];
	char state_dir[CKT_PROCESS_PATH]; /* where its library looks for its session */
	char stdio[3][64];                /* what descriptors 0, 1 and 2 are; empty: closed */
};

/* Refuses a process in namespaces of its own, and one that is not the program of that name. */
int ckt_ctl_process_look(pid_t pid, const char *program, struct ckt_process *ret_process,
	char *ret_message, size_t message_size);
/*
 * The numbers of the process, its descendants and all their threads: they must be free for a
 * restore.
 */
unsigned ckt_ctl_process_tree(pid_t pid, pid_t ret_ids[CKT_PROCESS_TREE_MAX]);
/* Processes alone. */
bool ckt_ctl_process_is_below(pid_t pid, pid_t ancestor);
/* Describes the process with that number; false: there is none. */
bool ckt_ctl_process_describe(pid_t pid, char *ret_text, size_t text_size);
/* The process has ended, but its parent has not yet taken note. */
bool ckt_ctl_process_is_over(pid_t pid);

/* All of these act as the user who owns the files, so that root follows no other user's links. */
int ckt_ctl_hold_make(const struct ckt_process *process, const char *session);
int ckt_ctl_hold_wait_quiet(
	const struct ckt_process *process, const char *session, unsigned timeout_ms);
void ckt_ctl_hold_remove(const struct ckt_process *process, const char *session);
/* The address is for clients of this generation and later ones. */
int ckt_ctl_hold_redirect(const struct ckt_process *process, const char *session,
	const char *address, uint64_t generation);
