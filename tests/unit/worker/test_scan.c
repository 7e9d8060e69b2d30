/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which words point into ranges: on the device and in the host's memory, with the ends of ranges
 * included.
 */
#include <endian.h>
#include <string.h>

#include "checkpoint/kernels/scan.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static const struct ckt_scan_range ranges[] = {{0x7000, 0x100}, {0x9000, 8}, {0x7080, 0x10}};
/* Word by word: which of the ranges it points into. */
static const struct {
	uint64_t word;
	bool in[COUNT(ranges)];
} words[] = {
	{0, {0}},
	{0x6fff, {0}},
	{0x7000, {1, 0, 0}},
	{0x7100, {1, 0, 0}},
	{0x7101, {0}},
	{0x9000, {0, 1, 0}},
	{0x9008, {0, 1, 0}},
	{0x9009, {0}},
	{0x7080, {1, 0, 1}},
	{0x7090, {1, 0, 1}},
	{0x7091, {1, 0, 0}},
	{0x8fff, {0}},
	{UINT64_MAX, {0}},
	{0x10000007000, {0}},
	{0x9000, {0, 1, 0}},
};

static void begin(struct ckt_scan_hit *hits)
{
	for (size_t i = 0; i < COUNT(ranges); i++)
		hits[i] = (struct ckt_scan_hit){0, UINT64_MAX};
}

static void check(const struct ckt_scan_hit *hits, uint64_t base, unsigned times)
{
	for (size_t r = 0; r < COUNT(ranges); r++) {
		uint64_t count = 0, first = UINT64_MAX;
		for (size_t i = COUNT(words); i-- > 0;)
			if (words[i].in[r]) {
				count++;
				first = base + i * 8;
			}
		IS(hits[r].count, count * times);
		IS(hits[r].first, first);
	}
}

static void test_device(void)
{
	struct ckt_scan_hit hits[COUNT(ranges)];
	uint64_t memory = inside_memory(2 << 20, 0), bytes[COUNT(words)];
	for (size_t i = 0; i < COUNT(words); i++)
		bytes[i] = words[i].word;
	/* The same words at the beginning and far behind, where another block of threads looks. */
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory, bytes, sizeof bytes), 0);
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory + (1 << 20), bytes, sizeof bytes), 0);
	struct ckt_scan_item items[] = {{memory, 1 << 20}, {memory + (1 << 20), 1 << 20}};
	begin(hits);
	IS(ckt_scan_run(
		   &ckt_worker, ckt_worker.first_context, 0, ranges, COUNT(ranges), items, 2, hits),
		CUDA_SUCCESS);
	check(hits, memory, 2);
	/* Adds to what is there; no item or no range is nothing to do. */
	IS(ckt_scan_run(
		   &ckt_worker, ckt_worker.first_context, 0, ranges, COUNT(ranges), items, 1, hits),
		CUDA_SUCCESS);
	check(hits, memory, 3);
	IS(ckt_scan_run(&ckt_worker, NULL, 0, ranges, COUNT(ranges), items, 0, hits), CUDA_SUCCESS);
	IS(ckt_scan_run(&ckt_worker, NULL, 0, ranges, 0, items, 2, hits), CUDA_SUCCESS);
	IS(ckt_scan_run(&ckt_worker, NULL, 0, ranges, 1, items, 1, hits),
		CUDA_ERROR_INVALID_CONTEXT);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	inside_free(memory);
}

static void test_host(void)
{
	struct ckt_scan_hit hits[COUNT(ranges)];
	uint8_t bytes[4 + sizeof(uint64_t[COUNT(words)])] = {0};
	/* Aligned to four bytes, and in either order. */
	for (int big = 0; big < 2; big++) {
		for (size_t i = 0; i < COUNT(words); i++) {
			uint64_t word = big ? htobe64(words[i].word) : htole64(words[i].word);
			memcpy(bytes + 4 + i * 8, &word, 8);
		}
		begin(hits);
		ckt_scan_host(bytes, sizeof bytes, ranges, COUNT(ranges), hits);
		for (size_t r = 0; r < COUNT(ranges); r++) {
			uint64_t count = 0, first = UINT64_MAX;
			for (size_t i = COUNT(words); i-- > 0;)
				if (words[i].in[r]) {
					count++;
					first = 4 + i * 8;
				}
			IS(hits[r].count, count);
			IS(hits[r].first, first);
		}
	}
	/* A word that does not fit is none. */
	for (size_t size = 0; size < 8; size++) {
		begin(hits);
		uint64_t word = htole64(0x7000);
		ckt_scan_host(&word, size, ranges, COUNT(ranges), hits);
		IS(hits[0].count, 0);
	}
}

UNIT_SUITE(scan, {"device", test_device}, {"host", test_host})
