/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker reads and writes its owner's cache of modules: through the server, which alone opens
 * the files.  The worker's end of a stream socket pair comes with CKT_WORKER_MODULE_CACHE.
 *
 *	worker -> server	CKT_MODULE_CACHE_GET	answered
 *				CKT_MODULE_CACHE_LIST	answered, and `size` bytes behind the answer: the
 *							first words (below) of the hashes of modules
 *				CKT_MODULE_CACHE_PUT	and `size` bytes behind it; not answered
 *				CKT_MODULE_CACHE_BAD	the file did not match its hash; not answered
 *	server -> worker	struct ckt_module_cache_answer; with `found` the file, open to read
 *
 * Neither side believes the other: the server stores only bytes that match the hash, and the worker
 * uses only such bytes.
 */
#pragma once

#include <stdint.h>

enum ckt_module_cache_kind {
	CKT_MODULE_CACHE_GET = 1,
	CKT_MODULE_CACHE_PUT = 2,
	CKT_MODULE_CACHE_BAD = 3,
	CKT_MODULE_CACHE_LIST = 4,
};

enum { CKT_MODULE_CACHE_HASH = 32 };

struct ckt_module_cache_message {
	uint32_t kind;
	uint32_t unused;
	uint64_t size; /* of PUT */
	uint8_t hash[CKT_MODULE_CACHE_HASH];
};
_Static_assert(sizeof(struct ckt_module_cache_message) == 48, "no padding");

struct ckt_module_cache_answer {
	uint32_t found;
	uint32_t complete; /* of a list: there are no other modules */
	uint64_t size;
};
_Static_assert(sizeof(struct ckt_module_cache_answer) == 16, "no padding");

/* The most words of a list, CKT_MODULES_MAX of session.x. */
enum { CKT_MODULE_CACHE_WORDS = 512 };

static inline uint32_t ckt_module_cache_word(const uint8_t hash[CKT_MODULE_CACHE_HASH])
{
	return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}
