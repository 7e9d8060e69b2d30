/*
 * Image directories for workers that run as another user.
 *
 * The directory of an image belongs to the user who called cricketctl and arrives as a descriptor; but a descriptor of a directory gives
 * no right to what is in it, and the worker is neither that user nor root.  So a server that runs as root lends the directory to the
 * worker's user for as long as the worker writes or reads it, and gives it back.  Only directories and plain files with a single
 * name that belong to the owner of the image change hands, so that a link planted in the directory gets nobody a foreign file.
 *
 * Errors: -errno with a sentence.  Threading: the loop's thread; the files of an image are few.
 */
#pragma once

#include "server.h"

struct ckt_loan {
	int fd;			/* -1: nothing lent */
	uid_t owner;
	gid_t group;
	uid_t borrower;
};

/*
 * Lends the directory where the workers are another user: it must be the peer's own, or the peer root.  fd stays the caller's.  Where
 * nothing needs lending ret_loan->fd is -1.
 */
int ckt_loan_make(const struct ckt_server *server, int fd, uint32_t peer_uid, struct ckt_loan *ret_loan, char *ret_message,
		  size_t message_size);
/* Everything back to the owner, what the worker made included. */
void ckt_loan_end(struct ckt_loan *loan);
