/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known address ranges: a sorted array of pointers under one mutex. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory/range.h"
#include "softgpu/context/context.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_soft_range **table;
static size_t n_ranges, n_ranges_max;

/* Index of the first range that ends above address.  Precondition: table_lock is held. */
static size_t first_above(uint64_t address)
{
	size_t low = 0, high = n_ranges;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (table[middle]->base + table[middle]->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t ckt_soft_range_next_id(void)
{
	static atomic_uint_fast64_t ids;
	return atomic_fetch_add(&ids, 1) + 1;
}

bool ckt_soft_range_find(uint64_t address, struct ckt_soft_range *ret_range)
{
	pthread_mutex_lock(&table_lock);
	size_t i = first_above(address);
	bool found = i < n_ranges && table[i]->base <= address;
	if (found)
		*ret_range = *table[i];
	pthread_mutex_unlock(&table_lock);
	return found;
}

CUresult ckt_soft_range_add(const struct ckt_soft_range *range)
{
	struct ckt_soft_range *copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *range;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&table_lock);
	size_t i = first_above(range->base);
	if (i < n_ranges && table[i]->base < range->base + range->size) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (n_ranges == n_ranges_max) {
		size_t n = n_ranges_max ? 2 * n_ranges_max : 64;
		struct ckt_soft_range **bigger = realloc(table, n * sizeof(*table));
		if (bigger) {
			table = bigger;
			n_ranges_max = n;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS) {
		memmove(&table[i + 1], &table[i], (n_ranges - i) * sizeof(*table));
		table[i] = copy;
		n_ranges++;
	}
	pthread_mutex_unlock(&table_lock);
	if (result != CUDA_SUCCESS)
		free(copy);
	return result;
}

bool ckt_soft_range_remove(uint64_t base, unsigned kinds, struct ckt_soft_range *ret_range)
{
	struct ckt_soft_range *range = NULL;
	pthread_mutex_lock(&table_lock);
	size_t i = first_above(base);
	if (i < n_ranges && table[i]->base == base && (kinds & (1u << table[i]->kind))) {
		range = table[i];
		memmove(&table[i], &table[i + 1], (n_ranges - i - 1) * sizeof(*table));
		n_ranges--;
	}
	pthread_mutex_unlock(&table_lock);
	if (!range)
		return false;
	*ret_range = *range;
	free(range);
	return true;
}

void ckt_soft_range_visit(uint64_t base, uint64_t size,
	void (*visit)(struct ckt_soft_range *range, void *data), void *data)
{
	pthread_mutex_lock(&table_lock);
	for (size_t i = first_above(base); i < n_ranges && table[i]->base < base + size; i++)
		visit(table[i], data);
	pthread_mutex_unlock(&table_lock);
}

bool ckt_soft_range_of_context(
	const struct ckt_soft_context *context, struct ckt_soft_range *ret_range)
{
	bool found = false;
	pthread_mutex_lock(&table_lock);
	for (size_t i = 0; i < n_ranges && !found; i++) {
		if (table[i]->context == context) {
			*ret_range = *table[i];
			found = true;
		}
	}
	pthread_mutex_unlock(&table_lock);
	return found;
}
