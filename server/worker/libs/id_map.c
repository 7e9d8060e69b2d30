/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, at most half full; see id_map.h. */
#include "server/worker/libs/id_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { FIRST_ROOM = 64 };

/* Marks a dropped entry: a look-up continues behind it. */
static char dropped;

static uint64_t make_secret(void)
{
	uint64_t made;
	if (getrandom(&made, sizeof made, GRND_NONBLOCK) == (ssize_t)sizeof made)
		return made | 1;
	/* The kernel has no randomness yet: the places work as well but can be guessed. */
	return ((uint64_t)time(NULL) << 32 ^ (uintptr_t)&made) | 1;
}

static uint64_t secret(void)
{
	static uint64_t value;
	uint64_t none = 0, now = __atomic_load_n(&value, __ATOMIC_RELAXED);
	if (now)
		return now;
	__atomic_compare_exchange_n(
		&value, &none, make_secret(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

uint64_t ckt_id_map_key(uint64_t state, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	state ^= secret();
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
		state = mix((state ^ word) + 0x9e3779b97f4a7c15ull);
	}
	return mix(state ^ size);
}

/* The key's place, or the free place that ends the search. */
static size_t place_of(struct ckt_id_map *map, uint64_t key)
{
	size_t i = mix(key ^ secret()) & (map->room - 1);
	map->looks++;
	while (map->places[i].value &&
		(map->places[i].value == &dropped || map->places[i].key != key)) {
		map->looks++;
		i = (i + 1) & (map->room - 1);
	}
	return i;
}

/* Makes room for one more entry and removes the dropped ones. */
static bool lay_out(struct ckt_id_map *map)
{
	size_t room = FIRST_ROOM;
	while (room < 4 * (map->count + 1))
		room *= 2;
	struct ckt_id_map fresh = {
		.places = calloc(room, sizeof *fresh.places), .room = room, .looks = map->looks};
	if (!fresh.places)
		return false;
	for (size_t i = 0; i < map->room; i++)
		if (map->places[i].value && map->places[i].value != &dropped)
			fresh.places[place_of(&fresh, map->places[i].key)] = map->places[i];
	fresh.count = fresh.taken = map->count;
	free(map->places);
	*map = fresh;
	return true;
}

bool ckt_id_map_put(struct ckt_id_map *map, uint64_t key, void *value)
{
	struct ckt_id_map_place *place = map->room ? &map->places[place_of(map, key)] : NULL;
	if (place && place->value) {
		place->value = value;
		return true;
	}
	if (2 * (map->taken + 1) > map->room) {
		if (!lay_out(map))
			return false;
		place = &map->places[place_of(map, key)];
	}
	map->taken++;
	map->count++;
	*place = (struct ckt_id_map_place){key, value};
	return true;
}

void *ckt_id_map_find(struct ckt_id_map *map, uint64_t key)
{
	return map->room ? map->places[place_of(map, key)].value : NULL;
}

void ckt_id_map_drop(struct ckt_id_map *map, uint64_t key)
{
	struct ckt_id_map_place *place = map->room ? &map->places[place_of(map, key)] : NULL;
	if (!place || !place->value)
		return;
	place->value = &dropped;
	map->count--;
}

void ckt_id_map_fini(struct ckt_id_map *map)
{
	free(map->places);
	*map = (struct ckt_id_map){0};
}
