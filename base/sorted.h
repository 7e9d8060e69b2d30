/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up in arrays that are sorted by a number of each entry, mostly an address. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Counts the entries whose number is not above the key: the index of the first entry after it. */
static inline size_t ckt_sorted_upper(
	const void *list, size_t count, size_t entry_size, size_t number_offset, uint64_t key)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		uint64_t number;
		memcpy(&number, (const char *)list + middle * entry_size + number_offset,
			sizeof number);
		if (number <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The same for the member of that name, a uint64_t. */
#define CKT_SORTED_UPPER(list, count, number, key)                                  \
	({                                                                          \
		_Static_assert(_Generic((list)->number, uint64_t : 1, default : 0), \
			"a number of 64 bits");                                     \
		ckt_sorted_upper((list), (count), sizeof *(list),                   \
			offsetof(__typeof__(*(list)), number), (key));              \
	})
