/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes of a user id left where every user may make names: files, and System V objects.
 * Precondition: no process of the user lives.  Threading: none; for a child of the server's.
 */
#pragma once

#include <sys/types.h>

/* Of /dev/shm, /tmp, /var/tmp and /run/lock.  0, or -errno of one that could not be removed. */
int ckt_uid_files_remove(uid_t uid);
/* The same of one directory: its entries of that user, with all that is below them. */
int ckt_uid_files_remove_from(const char *directory, uid_t uid);
/* Shared memory, semaphores and queues of System V, which outlive processes.  0 or -errno. */
int ckt_uid_files_remove_sysv(uid_t uid);
