/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of modules, each in a file that has the module's SHA-256 as its name:
 *
 *	DIR/1b4f...e7		whole; its time of change is that of its last use
 *	DIR/.new-PID-N		being written, then renamed
 *
 * All files together have at most the given number of bytes, those being written included, and are
 * not many more than 4096: the ones whose last use is longest ago go first.  Two servers may share a directory; each counts what the
 * other wrote only when it reads the directory again.
 *
 * Errors: 0 or -errno.  Threading: one thread for each store.
 */
#pragma once

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CKT_STORE_HASH = 32, CKT_STORE_NAME = 2 * CKT_STORE_HASH + 1, CKT_STORE_TEMPORARY = 48 };

struct ckt_module_store {
	int directory;
	uint64_t max_bytes;
	uint64_t bytes;   /* of all files, with the whole size of those being written */
	uint64_t pending; /* of those being written */
	unsigned writes;  /* since the directory was read */
};

/* A module that is being written. */
struct ckt_module_write {
	int fd; /* -1: none */
	uint64_t size, left;
	struct sha256_ctx sha;
	uint8_t hash[CKT_STORE_HASH];
	char temporary[CKT_STORE_TEMPORARY];
};

/*
 * Makes the directory if it is missing, and removes what an earlier server left half written.  -EPERM:
 * it is somebody else's, or others may write to it.
 */
int ckt_module_store_open(struct ckt_module_store *store, const char *path, uint64_t max_bytes);
void ckt_module_store_close(struct ckt_module_store *store);
/* A descriptor to read from, the caller's, and the size; -ENOENT: it has no such module. */
int ckt_module_store_find(
	struct ckt_module_store *store, const uint8_t hash[CKT_STORE_HASH], uint64_t *ret_size);
/*
 * The first eight digits of the names of modules as numbers, the last used first.  -EAGAIN: there are
 * more than max.  Else 0.
 */
int ckt_module_store_list(
	struct ckt_module_store *store, uint32_t *ret_words, unsigned max, unsigned *ret_count);
/* Whether there was one. */
bool ckt_module_store_remove(struct ckt_module_store *store, const uint8_t hash[CKT_STORE_HASH]);
/*
 * Makes room and a file.  -EEXIST: the module is there already, and counts as used now.  -EFBIG: it
 * is larger than the store.  On failure, write->fd is -1.
 */
int ckt_module_store_begin(struct ckt_module_store *store, struct ckt_module_write *write,
	const uint8_t hash[CKT_STORE_HASH], uint64_t size);
/* The next bytes, no more than write->left. */
int ckt_module_store_write(struct ckt_module_write *write, const uint8_t *data, size_t size);
/*
 * Gives the file its name if all bytes are there and match the hash; else -EBADMSG, and no file
 * stays.  write->fd is -1 afterwards.
 */
int ckt_module_store_finish(struct ckt_module_store *store, struct ckt_module_write *write);
/* Removes the file of a write that does not finish; nothing if there is none. */
void ckt_module_store_abandon(struct ckt_module_store *store, struct ckt_module_write *write);
