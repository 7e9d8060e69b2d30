/* The scanning kernel and its launch; see scan.h. */
#include "checkpoint/kernels/scan.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/driver.h"
#include "server/worker/worker.h"

enum { THREADS = 256 };

/*
 * A block takes one item.  A word is first compared with the hull of all ranges, [low, low + span],
 * which nearly always is the end of it.  Ranges are (address, size), hits (count, first).
 */
static const char kernel[] =
	".version 6.4\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry ckt_scan(.param .u64 items, .param .u64 ranges, .param .u64 hits, .param .u64 low, .param .u64 span, .param .u32 "
	"count)\n"
	"{\n"
	"\t.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<24>;\n"
	"\tld.param.u64 %d1, [items]; ld.param.u64 %d2, [ranges]; ld.param.u64 %d3, [hits];\n"
	"\tld.param.u64 %d4, [low]; ld.param.u64 %d5, [span]; ld.param.u32 %r1, [count];\n"
	"\tmov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;\n"
	"\tmul.wide.u32 %d6, %r2, 16; add.u64 %d6, %d1, %d6; ld.global.v2.u64 {%d7, %d8}, [%d6];\n"
	"\tadd.u64 %d8, %d7, %d8; mul.wide.u32 %d9, %r3, 8; add.u64 %d7, %d7, %d9;\n"
	"WORD:\n"
	"\tsetp.ge.u64 %p, %d7, %d8; @%p bra DONE;\n"
	"\tld.global.u64 %d10, [%d7]; sub.u64 %d11, %d10, %d4; setp.gt.u64 %p, %d11, %d5; @%p bra NEXT;\n"
	"\tmov.u32 %r4, 0;\n"
	"RANGE:\n"
	"\tsetp.ge.u32 %p, %r4, %r1; @%p bra NEXT;\n"
	"\tmul.wide.u32 %d12, %r4, 16; add.u64 %d13, %d2, %d12; ld.global.v2.u64 {%d14, %d15}, [%d13];\n"
	"\tadd.u32 %r4, %r4, 1; sub.u64 %d16, %d10, %d14; setp.gt.u64 %p, %d16, %d15; @%p bra RANGE;\n"
	"\tadd.u64 %d17, %d3, %d12; mov.u64 %d18, 1; atom.global.add.u64 %d19, [%d17], %d18; atom.global.min.u64 %d19, [%d17+8], %d7;\n"
	"\tbra RANGE;\n"
	"NEXT:\n"
	"\tadd.u64 %d7, %d7, 2048; bra WORD;\n"
	"DONE:\n"
	"\tret;\n"
	"}\n";

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
		result = ckt_driver.cuModuleLoadDataEx(&module, kernel, 0, NULL, NULL);
	if (result)
		return result;
	result = ckt_driver.cuModuleGetFunction(&function, module, "ckt_scan");
	if (!result)
		result = ckt_window_map(worker, device, CKT_SCRATCH_BASE, size, &piece);
	if (!result) {
		result = run(function, ranges, range_count, items, item_count, ret_hits);
		ckt_window_unmap(CKT_SCRATCH_BASE, size, piece);
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
