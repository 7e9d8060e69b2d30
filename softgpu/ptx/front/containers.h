/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that lives as long as a module, a map from names, and growing arrays (containers.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_arena {
	struct ptx_arena_chunk *chunks;
	size_t used, size;
	bool failed;
};
/* zeroed; NULL when out of memory */
void *ckt_ptx_arena_alloc(struct ptx_arena *arena, size_t size);
char *ckt_ptx_arena_string(struct ptx_arena *arena, const char *text, size_t size);
void ckt_ptx_arena_free(struct ptx_arena *arena);

struct ptx_map {
	struct ptx_map_entry {
		const char *key;
		uint32_t hash, size;
		void *value;
	} * entries;
	size_t n, capacity;
};
void *ckt_ptx_map_get(const struct ptx_map *map, const char *key, size_t size);
/* the key is not copied */
int ckt_ptx_map_put(struct ptx_map *map, const char *key, size_t size, void *value);
void ckt_ptx_map_free(struct ptx_map *map);

/* Grows an array of plain elements; 0 or -ENOMEM. */
int ckt_ptx_grow(void **array, size_t *capacity, size_t need, size_t element_size);
#define PTX_PUSH(p, array, n, capacity, value)                                                  \
	do {                                                                                    \
		if ((n) == (capacity) &&                                                        \
			ckt_ptx_grow((void **)&(array), &(capacity), (n) + 1, sizeof *(array))) \
			ckt_ptx_out_of_memory(p);                                               \
		(array)[(n)++] = (value);                                                       \
	} while (0)
