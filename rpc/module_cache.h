/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker reads and writes its owner's cache of modules: through the server, which alone opens
 * the files.  The worker's end of a stream socket pair comes with CKT_WORKER_MODULE_CACHE.
 *
 *	worker -> server	CKT_MODULE_CACHE_GET	answered
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
	uint32_t unused;
	uint64_t size;
};
_Static_assert(sizeof(struct ckt_module_cache_answer) == 16, "no padding");
