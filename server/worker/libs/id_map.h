/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from numbers (ids, handles, addresses) to pointers.  A look-up costs the same for any
 * number of entries.
 *
 * A client or an image may choose the numbers, so their places depend on a secret of the process:
 * nobody can choose numbers that share one place.  Threading: the caller's.  An empty table is all
 * zeros.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_id_map {
	struct ckt_id_map_place {
		uint64_t key;
		/* NULL: no entry since the table was last laid out */
		void *value;
	} * places;
	size_t room, taken; /* taken also counts dropped entries */
	size_t count;
	uint64_t looks; /* places that all calls probed; for tests */
};

/*
 * value is not NULL and replaces the key's earlier value; a replacement needs no memory.  False:
 * there is no memory, and the table is unchanged.
 */
bool ckt_id_map_put(struct ckt_id_map *map, uint64_t key, void *value);
/* NULL if the key is not there. */
void *ckt_id_map_find(struct ckt_id_map *map, uint64_t key);
/* Does nothing if the key is not there. */
void ckt_id_map_drop(struct ckt_id_map *map, uint64_t key);
void ckt_id_map_fini(struct ckt_id_map *map);
/*
 * A hash of bytes that also depends on the process's secret.  Different bytes may have the same
 * hash, so compare the bytes of what you find.
 */
uint64_t ckt_id_map_key(uint64_t state, const void *data, size_t size);
