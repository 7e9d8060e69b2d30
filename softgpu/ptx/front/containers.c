/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that lives as long as a module, a map from names to pointers, and growing arrays.  Not
 * thread-safe: one thread builds a module.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/front/containers.h"

struct ptx_arena_chunk {
	struct ptx_arena_chunk *next;
	_Alignas(16) uint8_t data[];
};

enum { CHUNK_BYTES = 64 << 10 };

void *ckt_ptx_arena_alloc(struct ptx_arena *arena, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (!arena->chunks || arena->size - arena->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		struct ptx_arena_chunk *chunk = calloc(1, sizeof *chunk + room);
		if (!chunk)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->used = 0;
		arena->size = room;
	}
	void *place = arena->chunks->data + arena->used;
	arena->used += size;
	return place;
}

char *ckt_ptx_arena_string(struct ptx_arena *arena, const char *text, size_t size)
{
	char *copy = ckt_ptx_arena_alloc(arena, size + 1);
	if (copy)
		memcpy(copy, text, size);
	return copy;
}

void ckt_ptx_arena_free(struct ptx_arena *arena)
{
	while (arena->chunks) {
		struct ptx_arena_chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
}

static uint32_t hash_of(const char *key, size_t size)
{
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)key[i]) * 16777619u;
	return hash;
}

static struct ptx_map_entry *find(
	const struct ptx_map *map, const char *key, size_t size, uint32_t hash)
{
	for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
		struct ptx_map_entry *entry = &map->entries[i];
		if (!entry->key ||
			(entry->hash == hash && entry->size == size &&
				!memcmp(entry->key, key, size)))
			return entry;
	}
}

void *ckt_ptx_map_get(const struct ptx_map *map, const char *key, size_t size)
{
	if (!map->capacity)
		return NULL;
	const struct ptx_map_entry *entry = find(map, key, size, hash_of(key, size));
	return entry->key ? entry->value : NULL;
}

static int map_grow(struct ptx_map *map)
{
	struct ptx_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 32, .n = map->n};
	bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++) {
		const struct ptx_map_entry *entry = &map->entries[i];
		if (entry->key)
			*find(&bigger, entry->key, entry->size, entry->hash) = *entry;
	}
	free(map->entries);
	*map = bigger;
	return 0;
}

int ckt_ptx_map_put(struct ptx_map *map, const char *key, size_t size, void *value)
{
	if (map->n * 4 >= map->capacity * 3 && map_grow(map))
		return -ENOMEM;
	uint32_t hash = hash_of(key, size);
	struct ptx_map_entry *entry = find(map, key, size, hash);
	if (!entry->key)
		map->n++;
	*entry = (struct ptx_map_entry){
		.key = key, .hash = hash, .size = (uint32_t)size, .value = value};
	return 0;
}

void ckt_ptx_map_free(struct ptx_map *map)
{
	free(map->entries);
	*map = (struct ptx_map){0};
}

int ckt_ptx_grow(void **array, size_t *capacity, size_t need, size_t element_size)
{
	size_t wanted = *capacity ? *capacity * 2 : 16;
	if (wanted < need)
		wanted = need;
	void *bigger = realloc(*array, wanted * element_size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*capacity = wanted;
	return 0;
}
