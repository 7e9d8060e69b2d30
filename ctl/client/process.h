/*
 * The process of a client on this host, as /proc tells, and the files through which it and we agree
 * that it is quiet (see client/conn/quiesce.c for its side).
 *
 * Errors: -errno with a sentence in ret_message.  Threading: the main thread.
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

/* Refuses what runs in namespaces of its own, and what is not the program of that name. */
int ckt_process_look(pid_t pid, const char *program, struct ckt_process *ret_process,
	char *ret_message, size_t message_size);
/*
 * It, everything below it, and all of their threads: the numbers that must be free when they come
 * back.
 */
unsigned ckt_process_tree(pid_t pid, pid_t ret_ids[CKT_PROCESS_TREE_MAX]);
/* Processes alone. */
bool ckt_process_is_below(pid_t pid, pid_t ancestor);
/* Who has that number, in words; false: nobody. */
bool ckt_process_describe(pid_t pid, char *ret_text, size_t text_size);
/* It has ended, and its parent will take note any moment. */
bool ckt_process_is_over(pid_t pid);

/* All of these act as the user whose files they are, so that root follows no other user's links. */
int ckt_hold_make(const struct ckt_process *process, const char *session);
int ckt_hold_wait_quiet(
	const struct ckt_process *process, const char *session, unsigned timeout_ms);
void ckt_hold_remove(const struct ckt_process *process, const char *session);
/* The address is for clients of this generation and later. */
int ckt_hold_redirect(const struct ckt_process *process, const char *session, const char *address,
	uint64_t generation);
