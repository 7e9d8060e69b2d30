/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from numbers (ids, handles, addresses) to what is known of them: a look-up costs the same
 * however many there are.
 *
 * The numbers may be a client's or an image's own, so their places depend on a secret of the
 * process: nobody can choose numbers that all have one place.  Threading: the caller's.  An empty
 * one is all zeros.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_id_map {
	struct ckt_id_map_place {
		uint64_t key;
		/* NULL: nothing here, since the table was last laid out */
		void *value;
	} * places;
	size_t room, taken; /* taken: those that were dropped included */
	size_t count;
	uint64_t looks; /* places that all calls probed; for tests */
};

/*
 * value is not NULL; it replaces the key's earlier value, which needs no memory.  False: no memory,
 * and nothing has changed.
 */
bool ckt_id_map_put(struct ckt_id_map *map, uint64_t key, void *value);
/* NULL if the key is not there. */
void *ckt_id_map_find(struct ckt_id_map *map, uint64_t key);
/* Does nothing if the key is not there. */
void ckt_id_map_drop(struct ckt_id_map *map, uint64_t key);
void ckt_id_map_fini(struct ckt_id_map *map);
/*
 * A hash of bytes that also depends on the process's secret.  Different bytes may have the same
 * one: compare what you find.
 */
uint64_t ckt_id_map_key(uint64_t state, const void *data, size_t size);
