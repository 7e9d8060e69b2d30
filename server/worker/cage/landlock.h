/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock by its system calls: a process gives up all files but those below the paths it names,
 * for itself, its later threads and its children, and for good.
 *
 *	begin -> allow, once a path -> enter
 *
 * Precondition: one thread.  The kernel's header may be older than the kernel, so the numbers that
 * both agree on stand here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum ckt_landlock_right {
	CKT_LANDLOCK_READ = 1,    /* read files and list directories */
	CKT_LANDLOCK_EXECUTE = 2, /* with READ */
	CKT_LANDLOCK_WRITE = 4,   /* to existing files; of devices: ioctl, too */
	CKT_LANDLOCK_MAKE = 8,    /* make, rename and remove files and directories */
	CKT_LANDLOCK_CLEAR = 16,  /* remove empty directories */
};

struct ckt_landlock {
	int fd;         /* the rules so far; -1 */
	int abi;        /* the kernel's version of Landlock; 0: it has none */
	uint64_t files; /* rights that are denied unless allowed */
};

/*
 * tcp: whether TCP's bind and connect stay allowed.  0, also where the kernel has no Landlock, and
 * then abi is 0 and the other functions do nothing; or -errno.
 */
int ckt_landlock_begin(struct ckt_landlock *landlock, bool tcp);
/*
 * The rights of enum ckt_landlock_right, for the file or for all below the directory.  A path that
 * does not exist, or that this user may not reach, is no error: it stays denied.
 */
int ckt_landlock_allow(struct ckt_landlock *landlock, const char *path, unsigned rights);
/* In force from here on.  Precondition: no_new_privs. */
int ckt_landlock_enter(struct ckt_landlock *landlock);
/* Lets go of rules that did not enter. */
void ckt_landlock_drop(struct ckt_landlock *landlock);
