/*
 * The file broker: who owns the rights to an image's directories opens their files and passes the
 * descriptors, so that a worker needs no right to any directory and opens no path.
 *
 *	cricketctl, or the server for a stage		cricket-worker
 *	thread: openat(directory 0, "data-3")	<--ask--	ckt_broker_open(socket, CKT_BROKER_MAKE, 0, 3)
 *						--answer, SCM_RIGHTS-->	an open file, checked
 *
 * An ask names a file by numbers alone: which directory of those that the broker was started with,
 * and the manifest or data-N.  So the worst that a hostile worker can ask for are the files of that
 * image.  Messages are whole on a SOCK_SEQPACKET socket pair, 20 bytes one way and 12 the other,
 * big-endian:
 *
 *	ask	magic | tag | 0 read, 1 make | directory | file (0xffffffff: the manifest)
 *	answer	magic | tag | 0 or -errno; with 0 a descriptor comes along
 *
 * Files are opened with O_NOFOLLOW; made ones must not exist (O_EXCL).  The directory itself stays
 * its owner's: renaming it, fsync and removal are not for workers.
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
 * Serves asks of this kind from a thread, until the other end is closed or ckt_broker_stop.  The
 * directories are duplicated; *ret_fd is the socket for the worker, the caller's to pass and close.
 */
int ckt_broker_start(const int *directories, unsigned count, enum ckt_broker_right right,
	struct ckt_broker **ret_broker, int *ret_fd);
/* Nothing is opened any more once this returns.  It waits for one openat at most.  NULL is fine. */
void ckt_broker_stop(struct ckt_broker *broker);

/* ---- Who asks.  Any thread. */

/* Whether the descriptor is a socket of that kind, which is all that can be told of it. */
bool ckt_broker_is(int fd);
/*
 * A plain file, which is empty where it was to be made; the caller's.  What the other side sends is
 * not trusted.  -errno.
 */
extern unsigned
	/*
	 * who gives no answer for so long, as a cricketctl that was stopped, is asked no more;
	 * tests want less
	 */
	ckt_broker_answer_ms;
int ckt_broker_open(int broker, enum ckt_broker_right right, unsigned directory, unsigned file);
