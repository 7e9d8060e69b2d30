/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow.  Without memory the array stays as it is, and the caller's operation fails with
 * -ENOMEM.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room in *array for one entry after `count`; `first`: the initial number of entries.  0 or
 * -ENOMEM.
 */
static inline int ckt_grow(void *array, size_t count, size_t *room, size_t first, size_t entry_size)
{
	void *old, *larger;
	if (count < *room)
		return 0;
	size_t wanted = *room ? *room * 2 : first;
	memcpy(&old, array, sizeof old);
	larger = reallocarray(old, wanted, entry_size);
	if (!larger)
		return -ENOMEM;
	memcpy(array, &larger, sizeof larger);
	*room = wanted;
	return 0;
}

#define CKT_GROW(list, count, room, first) \
	ckt_grow(&(list), (count), &(room), (first), sizeof *(list))

/* The same, with a gap at the index: the entries from there on move up, and count grows by one. */
#define CKT_GROW_AT(list, count, room, first, index)                                             \
	({                                                                                       \
		size_t at_ = (index);                                                            \
		int error_ = CKT_GROW(list, count, room, first);                                 \
		if (!error_) {                                                                   \
			memmove(&(list)[at_ + 1], &(list)[at_], ((count)-at_) * sizeof *(list)); \
			(count)++;                                                               \
		}                                                                                \
		error_;                                                                          \
	})
