/* SPDX-License-Identifier: Apache-2.0 */
/* The launch of the scanning kernel (scan.cu); see scan.h. */
#include "checkpoint/kernels/scan.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/kernels/scan_ptx.h"
#include "checkpoint/memory_operations.h"
#include "rpc/gen/cuda_driver.h"

enum { THREADS = 256 };

static CUresult run(CUfunction function, const struct ckt_scan_range *ranges, size_t range_count,
	const struct ckt_scan_item *items, size_t item_count, struct ckt_scan_hit *hits)
{
	uint64_t table = CKT_SCRATCH_BASE, places = table + item_count * sizeof *items,
		 found = places + range_count * sizeof *ranges;
	uint64_t low = UINT64_MAX, high = 0;
	for (size_t i = 0; i < range_count; i++) {
		low = ranges[i].address < low ? ranges[i].address : low;
		high = ranges[i].address + ranges[i].size > high
			? ranges[i].address + ranges[i].size
			: high;
	}
	uint64_t span = high - low;
	uint32_t count = (uint32_t)range_count;
	void *params[] = {&table, &places, &found, &low, &span, &count};
	CUresult result = ckt_driver.cuMemcpyHtoD_v2(table, items, item_count * sizeof *items);
	if (!result)
		result = ckt_driver.cuMemcpyHtoD_v2(places, ranges, range_count * sizeof *ranges);
	if (!result)
		result = ckt_driver.cuMemcpyHtoD_v2(found, hits, range_count * sizeof *hits);
	if (!result)
		result = ckt_driver.cuLaunchKernel(
			function, (unsigned)item_count, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
	return result ? result
		      : ckt_driver.cuMemcpyDtoH_v2(hits, found, range_count * sizeof *hits);
}

CUresult ckt_scan_run(struct ckt_worker *worker, CUcontext context, unsigned device,
	const struct ckt_scan_range *ranges, size_t range_count, const struct ckt_scan_item *items,
	size_t item_count, struct ckt_scan_hit *ret_hits)
{
	uint64_t size = item_count * sizeof *items +
		range_count * (sizeof *ranges + sizeof *ret_hits),
		 piece;
	CUmodule module;
	CUfunction function;
	if (!item_count || !range_count)
		return CUDA_SUCCESS;
	size = (size + CKT_MEMORY_EXTENT - 1) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	CUresult result = ckt_driver.cuCtxSetCurrent(context);
	if (!result)
		result = ckt_driver.cuModuleLoadDataEx(&module, scan_ptx, 0, NULL, NULL);
	if (result)
		return result;
	result = ckt_driver.cuModuleGetFunction(&function, module, "ckt_scan");
	if (!result)
		result = ckt_memory_operations.map(worker, device, CKT_SCRATCH_BASE, size, &piece);
	if (!result) {
		result = run(function, ranges, range_count, items, item_count, ret_hits);
		ckt_memory_operations.unmap(CKT_SCRATCH_BASE, size, piece);
	}
	ckt_driver.cuModuleUnload(module);
	return result;
}

static void look(uint64_t word, uint64_t at, const struct ckt_scan_range *ranges,
	size_t range_count, struct ckt_scan_hit *ret_hits)
{
	for (size_t i = 0; i < range_count; i++) {
		if (word - ranges[i].address > ranges[i].size)
			continue;
		ret_hits[i].count++;
		if (at < ret_hits[i].first)
			ret_hits[i].first = at;
	}
}

void ckt_scan_host(const void *data, size_t size, const struct ckt_scan_range *ranges,
	size_t range_count, struct ckt_scan_hit *ret_hits)
{
	for (size_t at = 0; at + sizeof(uint64_t) <= size; at += 4) {
		uint64_t word;
		memcpy(&word, (const char *)data + at, sizeof word);
		look(le64toh(word), at, ranges, range_count, ret_hits);
		look(be64toh(word), at, ranges, range_count, ret_hits);
	}
}
