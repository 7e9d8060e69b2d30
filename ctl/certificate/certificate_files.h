/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of certificates and keys, written completely or not at all, also where the process is killed
 * or the disk is full.
 *
 * Errors: 0 or -errno, said in the problem: thing, cause, remedy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_ctl_problem {
	char text[1024];
};

/* Gives back -error. */
int ckt_ctl_problem_set(struct ckt_ctl_problem *problem, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum { CKT_CTL_STAGED_MAX = 4, CKT_CTL_STAGED_PATH = 4096 };

/*
 * Files of one directory that are on the disk already, but do not have their names yet.
 *
 *	fresh: the directory is a new one beside its path; kept, it gets that name
 *	else: each file has the name .FILE.new in it; kept, each replaces FILE
 */
struct ckt_ctl_staged {
	char path[CKT_CTL_STAGED_PATH];          /* of the directory */
	char temporary[CKT_CTL_STAGED_PATH + 8]; /* fresh: where it is now */
	int fd;                                  /* the directory; -1: none */
	bool fresh;
	const char *names[CKT_CTL_STAGED_MAX]; /* in the order in which they are kept */
	unsigned count;
};

/*
 * Begins; a directory that is missing is made with mode 0700, and so are those above it.  A
 * directory in which others may write is refused.
 */
int ckt_ctl_staged_begin(
	const char *path, struct ckt_ctl_staged *ret_staged, struct ckt_ctl_problem *problem);
/* name: stays the caller's, until the end.  The file is on the disk then. */
int ckt_ctl_staged_put(struct ckt_ctl_staged *staged, const char *name, mode_t mode,
	const void *data, size_t size_bytes, struct ckt_ctl_problem *problem);
/* All get their names.  Fresh: -EEXIST where somebody else has made the directory meanwhile. */
int ckt_ctl_staged_keep(struct ckt_ctl_staged *staged, struct ckt_ctl_problem *problem);
/* Removes what was not kept.  Harmless after ckt_ctl_staged_keep. */
void ckt_ctl_staged_end(struct ckt_ctl_staged *staged);
