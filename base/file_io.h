/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole reads and writes of files: what a signal or the kernel cuts short goes on.  Threading: any.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* 0 when all bytes are written, or -errno. */
static inline int ckt_write_all(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const uint8_t *)data + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

/* The same, and the file's bytes are on the disk. */
static inline int ckt_write_synced(int fd, const void *data, size_t size)
{
	int result = ckt_write_all(fd, data, size);
	return !result && fsync(fd) ? -errno : result;
}

/* The bytes at this offset that the file has, at most `size`, or -errno. */
static inline ssize_t ckt_read_at(int fd, void *ret_data, size_t size, off_t offset)
{
	size_t have = 0;
	while (have < size) {
		ssize_t n =
			pread(fd, (uint8_t *)ret_data + have, size - have, offset + (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}
