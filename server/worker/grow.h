/* Arrays that grow.  Where there is no memory for that the process ends, as with every other small allocation of the worker. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The array with room for one entry behind `count`; `first`: for how many in the beginning. */
static inline void *ckt_grow(void *array, size_t count, size_t *room, size_t first, size_t entry_size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : first;
	array = realloc(array, *room * entry_size);
	if (!array)
		abort();
	return array;
}

#define CKT_GROW(list, count, room, first) ((list) = ckt_grow((list), (count), &(room), (first), sizeof *(list)))

/* The same, and a gap at the index: what stood there and behind it has moved up, and is counted. */
#define CKT_GROW_AT(list, count, room, first, index)                                                                                      \
	do {                                                                                                                              \
		size_t at_ = (index);                                                                                                     \
		CKT_GROW(list, count, room, first);                                                                                       \
		memmove(&(list)[at_ + 1], &(list)[at_], ((count) - at_) * sizeof *(list));                                                \
		(count)++;                                                                                                                \
	} while (0)
