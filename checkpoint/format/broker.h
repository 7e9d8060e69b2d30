/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file broker: a process with rights to an image's directories opens their files and passes the
 * descriptors, so that a worker needs no rights to a directory and opens no path.
 *
 *	cricketctl, or the server for a stage		cricket-worker
 *	thread: openat(directory 0, "data-3")	<--ask--	ckt_broker_open(socket, CKT_BROKER_MAKE, 0, 3)
 *						--answer, SCM_RIGHTS-->	an open file, checked
 *
 * A question names a file by numbers only: one of the directories that the broker was started with,
 * and the manifest or data-N.  So a hostile worker can reach only the files of that image. Messages
 * are whole on a SOCK_SEQPACKET socket pair, 20 bytes one way and 12 the other, big-endian:
 *
 *	ask	magic | tag | 0 read, 1 make | directory | file (0xffffffff: the manifest)
 *	answer	magic | tag | 0 or -errno; with 0 a descriptor comes along
 *
 * The broker opens files with O_NOFOLLOW, and creates only files that do not exist (O_EXCL).
 * Workers cannot rename, fsync or remove the directory itself.
 *
 * Errors: 0 or -errno.
 */
#pragma once

#include <stdbool.h>

enum {
	CKT_BROKER_FILES_MAX = 256,      /* data-0 to data-255, as in an image */
	CKT_BROKER_DIRECTORIES_MAX = 65, /* an image and those it builds on */
};
#define CKT_BROKER_MANIFEST 0xffffffffu

enum ckt_broker_right { CKT_BROKER_READ, CKT_BROKER_MAKE };

/* ---- Who opens */
struct ckt_broker;

/*
 * Serves such questions from a thread, until the other end is closed or ckt_broker_stop.
 * Duplicates the directories; *ret_fd is the socket for the worker, which the caller passes and
 * closes.
 */
int ckt_broker_start(const int *directories, unsigned count, enum ckt_broker_right right,
	struct ckt_broker **ret_broker, int *ret_fd);

/* Files that are in no directory as they are. */
struct ckt_broker_opener {
	/*
	 * A descriptor, or -errno: from the broker's thread, also while the broker is stopped.  directory:
	 * below the number that the broker was started with; file: as in a question.
	 */
	int (*open)(void *context, enum ckt_broker_right right, unsigned directory, unsigned file);
	void (*release)(void *context); /* after the last call, from any thread */
	void *context;
};
/* Takes over the context, unless an error is returned. */
int ckt_broker_start_opener(const struct ckt_broker_opener *opener, unsigned count,
	enum ckt_broker_right right, struct ckt_broker **ret_broker, int *ret_fd);
/* The broker answers nothing after this returns, which takes one openat at most.  NULL is fine. */
void ckt_broker_stop(struct ckt_broker *broker);

/* ---- Who asks.  Any thread. */

/* Whether the descriptor is a socket of that type; nothing else can be checked. */
bool ckt_broker_is(int fd);
/*
 * A plain file, empty if it was to be made; the caller owns it.  Does not trust the other side.
 * -errno.
 */
extern unsigned
	/* how long to wait for an answer, as from a cricketctl that was stopped; tests want less */
	ckt_broker_answer_ms;
int ckt_broker_open(int broker, enum ckt_broker_right right, unsigned directory, unsigned file);
