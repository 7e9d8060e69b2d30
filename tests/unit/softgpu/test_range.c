/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/range.c: the table of ranges: overlap, kinds, edges, and a thousand changes
 * against a plain list.
 */
#include "files.h"
#include "softgpu/context/context.h"
#include "softgpu/memory/range.h"

/* Addresses that no allocation of this process has. */
#define BASE 0x10000ull

static CUresult add(uint64_t base, uint64_t size, enum ckt_soft_range_kind kind)
{
	struct ckt_soft_range range = {.base = base, .size = size, .kind = kind};
	return ckt_soft_range_add(&range);
}

static bool drop(uint64_t base, unsigned kinds)
{
	struct ckt_soft_range range;
	return ckt_soft_range_remove(base, kinds, &range);
}

static void test_edges(void)
{
	const unsigned all = ~0u;
	struct ckt_soft_range r;
	IS(add(BASE, 16, CKT_SOFT_RANGE_DEVICE), CUDA_SUCCESS);
	IS(add(BASE + 16, 1, CKT_SOFT_RANGE_HOST), CUDA_SUCCESS);
	static const uint64_t taken[][2] = {{BASE, 16}, {BASE - 1, 2}, {BASE + 15, 1},
		{BASE - 8, 64}, {BASE + 16, 1}, {BASE + 16, 100}};
	for (size_t i = 0; i < COUNT(taken); i++)
		IS(add(taken[i][0], taken[i][1], CKT_SOFT_RANGE_DEVICE), CUDA_ERROR_INVALID_VALUE);
	IS(add(BASE - 8, 8, CKT_SOFT_RANGE_DEVICE), CUDA_SUCCESS);
	static const struct {
		uint64_t at, base;
	} found[] = {{BASE - 9, 0}, {BASE - 8, BASE - 8}, {BASE - 1, BASE - 8}, {BASE, BASE},
		{BASE + 15, BASE}, {BASE + 16, BASE + 16}, {BASE + 17, 0}};
	for (size_t i = 0; i < COUNT(found); i++) {
		bool is = ckt_soft_range_find(found[i].at, &r);
		IS(is, found[i].base != 0);
		if (is)
			IS(r.base, found[i].base);
	}
	/* Only by its beginning, and only of a kind that was named. */
	NO(drop(BASE + 1, all));
	NO(drop(BASE, 1u << CKT_SOFT_RANGE_HOST));
	YES(drop(BASE, 1u << CKT_SOFT_RANGE_HOST | 1u << CKT_SOFT_RANGE_DEVICE));
	NO(drop(BASE, all));
	YES(drop(BASE + 16, all));
	YES(drop(BASE - 8, all));
}

static void count(struct ckt_soft_range *range, void *data)
{
	range->flags++;
	++*(unsigned *)data;
}

static void test_visit(void)
{
	struct ckt_soft_range r;
	for (unsigned i = 0; i < 4; i++)
		IS(add(BASE + 100 * i, 50, CKT_SOFT_RANGE_DEVICE), CUDA_SUCCESS);
	static const struct {
		uint64_t base, size;
		unsigned n;
	} table[] = {{BASE, 1, 1}, {BASE + 49, 1, 1}, {BASE + 50, 50, 0}, {BASE + 50, 51, 1},
		{BASE + 49, 52, 2}, {BASE, 1000, 4}, {BASE - 10, 10, 0}};
	for (size_t i = 0; i < COUNT(table); i++) {
		unsigned n = 0;
		ckt_soft_range_visit(table[i].base, table[i].size, count, &n);
		IS(n, table[i].n);
	}
	/* What a visit changes stays changed. */
	YES(ckt_soft_range_find(BASE, &r));
	IS(r.flags, 4);
	for (unsigned i = 0; i < 4; i++)
		YES(drop(BASE + 100 * i, ~0u));
}

static void test_context_ranges(void)
{
	CUdeviceptr p;
	struct ckt_soft_range r;
	test_context();
	struct ckt_soft_context *c = files_context();
	NO(ckt_soft_range_of_context(c, &r));
	OK(cuMemAlloc(&p, 100));
	YES(ckt_soft_range_of_context(c, &r));
	YES(r.base == p && r.size == 100 && r.kind == CKT_SOFT_RANGE_DEVICE && r.context == c);
	OK(cuMemFree(p));
	NO(ckt_soft_range_of_context(c, &r));
	uint64_t one = ckt_soft_range_next_id(), two = ckt_soft_range_next_id();
	YES(one && two > one);
}

static void test_model(void)
{
	enum { N = 256 };
	static bool live[N];
	unsigned seed = 3, wrong = 0;
	for (unsigned step = 0; step < 4000; step++) {
		seed = seed * 1103515245 + 12345;
		unsigned i = seed >> 16 & (N - 1);
		struct ckt_soft_range r;
		if (live[i])
			wrong += !drop(BASE + 64 * i, ~0u);
		else
			wrong += add(BASE + 64 * i, 33 + i % 32, CKT_SOFT_RANGE_DEVICE) !=
				CUDA_SUCCESS;
		live[i] = !live[i];
		unsigned k = seed >> 8 & (N - 1);
		bool found = ckt_soft_range_find(BASE + 64 * k + 32, &r);
		wrong += found != live[k] || (found && r.base != BASE + 64 * k);
	}
	IS(wrong, 0);
	for (unsigned i = 0; i < N; i++)
		if (live[i])
			YES(drop(BASE + 64 * i, ~0u));
}

UNIT_SUITE(softgpu / memory / range, {"edges", test_edges}, {"visit", test_visit},
	{"of a context", test_context_ranges}, {"model", test_model})
