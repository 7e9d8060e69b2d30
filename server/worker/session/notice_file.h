/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files in the host's shared memory by which workers of one server find each other: complete
 * or missing, and read only if this user wrote them.  Threading: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_worker;

#define CKT_NOTICE_DIRECTORY "/dev/shm"

/* How much of worker->socket is the server's directory, which names of notices depend on. */
size_t ckt_notice_server_length(const struct ckt_worker *worker);
/*
 * Replaces a file of that name.  ret_fd: NULL, or a descriptor, the caller's, that holds a lock on
 * the file from before it has its name.  0 or -errno.
 */
int ckt_notice_leave(const char *path, const void *notice, size_t size, int *ret_fd);
/*
 * directory: AT_FDCWD for a path.  locked: only if another process holds the lock.  False if it is
 * not such a file.
 */
bool ckt_notice_read(int directory, const char *name, bool locked, void *ret_notice, size_t size);
