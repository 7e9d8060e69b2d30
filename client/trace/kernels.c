/* SPDX-License-Identifier: Apache-2.0 */
/* The names of kernels by the function's id: a hash table with open addressing that only grows. */
#include <stdlib.h>
#include <string.h>

#include "client/trace/recorder.h"

static struct kernel {
	uint64_t function;
	char *name;
} * kernels;
static size_t room, count;

/* The entry of that id, or the free one where it belongs.  Precondition: room. */
static struct kernel *place(struct kernel *list, size_t size, uint64_t function)
{
	size_t i = (size_t)(function * 0x9e3779b97f4a7c15u >> 32) & (size - 1);
	while (list[i].name && list[i].function != function)
		i = (i + 1) & (size - 1);
	return &list[i];
}

static bool grow(void)
{
	size_t larger = room ? room * 2 : 256;
	struct kernel *list = calloc(larger, sizeof *list);
	if (!list)
		return false;
	for (size_t i = 0; i < room; i++)
		if (kernels[i].name)
			*place(list, larger, kernels[i].function) = kernels[i];
	free(kernels);
	kernels = list;
	room = larger;
	return true;
}

void ckt_trace_kernel(uint64_t function, const char *name)
{
	pthread_mutex_lock(&ckt_trace_lock);
	if (count < CKT_TRACE_KERNELS_MAX && (count * 2 < room || grow())) {
		struct kernel *at = place(kernels, room, function);
		char *copy = strdup(name);
		if (copy) {
			count += !at->name;
			free(at->name);
			*at = (struct kernel){function, copy};
		}
	}
	pthread_mutex_unlock(&ckt_trace_lock);
}

const char *ckt_trace_kernel_name(uint64_t function)
{
	return room ? place(kernels, room, function)->name : NULL;
}
