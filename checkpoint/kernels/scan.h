/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which words of device memory point into given ranges: asked after a restore that found variables
 * of modules elsewhere.
 *
 * The kernel is loaded for the question and unloaded after it: it is no part of a session's history
 * of addresses. Threading: the thread that restores; nothing else runs.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_worker;

struct ckt_scan_item {
	uint64_t address, size;
};

/* A range, its end included: a pointer behind the last element is one into an array too. */
struct ckt_scan_range {
	uint64_t address, size;
};

struct ckt_scan_hit {
	uint64_t count;
	uint64_t first; /* where the first such word is */
};

/*
 * Looks at every aligned word of 8 bytes of the items, which belong to this context and device.
 * Adds to ret_hits, one for each range, which the caller sets to {0, UINT64_MAX} before.  Changes
 * the thread's current context.
 */
CUresult ckt_scan_run(struct ckt_worker *worker, CUcontext context, unsigned device,
	const struct ckt_scan_range *ranges, size_t range_count, const struct ckt_scan_item *items,
	size_t item_count, struct ckt_scan_hit *ret_hits);
/* The same in the host's memory, at every fourth byte and in both byte orders. */
void ckt_scan_host(const void *data, size_t size, const struct ckt_scan_range *ranges,
	size_t range_count, struct ckt_scan_hit *ret_hits);
