/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/heap.c: malloc of kernels: its limit, its alignment, and pointers that were never
 * its own.
 */
#include "files.h"
#include "softgpu/context/context.h"
#include "softgpu/memory/heap.h"

static void test_limit(void)
{
	test_context();
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096));
	struct ckt_soft_context *c = files_context();
	size_t before, after, total;
	OK(cuMemGetInfo(&before, &total));
	/* 32 bytes each with what precedes them: so many and not one more. */
	void *piece[129];
	for (unsigned i = 0; i < 129; i++) {
		piece[i] = ckt_soft_heap_alloc(c, 16);
		IS(piece[i] != NULL, i < 128);
		IS((uintptr_t)piece[i] % 16, 0);
	}
	OK(cuMemGetInfo(&after, &total));
	IS(before - after, 4096);
	for (unsigned i = 0; i < 128; i++)
		memset(piece[i], (int)i, 16);
	for (unsigned i = 0; i < 128; i++)
		IS(((unsigned char *)piece[i])[15], i);
	for (unsigned i = 0; i < 128; i++)
		ckt_soft_heap_free(c, piece[i]);
	/* With a heap in use its size stands. */
	CHECK_RESULT(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8192), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxGetLimit(&total, CU_LIMIT_MALLOC_HEAP_SIZE));
	IS(total, 4096);
	/* All of it is there again, in one piece. */
	void *whole = ckt_soft_heap_alloc(c, 4080);
	YES(whole != NULL);
	YES(ckt_soft_heap_alloc(c, 1) == NULL);
	ckt_soft_heap_free(c, whole);
}

static void test_refused(void)
{
	test_context();
	struct ckt_soft_context *c = files_context();
	static const uint64_t sizes[] = {
		0, (1ull << 40) + 1, UINT64_MAX, UINT64_MAX - 30, 1ull << 30};
	for (size_t i = 0; i < COUNT(sizes); i++)
		YES(ckt_soft_heap_alloc(c, sizes[i]) == NULL);
	char *p = ckt_soft_heap_alloc(c, 100), *q = ckt_soft_heap_alloc(c, 100);
	MUST(p && q, 1);
	/* Nothing, the inside of a piece, memory of others, twice: ignored each. */
	int local;
	ckt_soft_heap_free(c, NULL);
	ckt_soft_heap_free(c, p + 16);
	ckt_soft_heap_free(c, p + 1);
	ckt_soft_heap_free(c, &local);
	ckt_soft_heap_free(c, (void *)(uintptr_t)8);
	ckt_soft_heap_free(c, q);
	ckt_soft_heap_free(c, q);
	memset(p, 0x11, 100);
	char *r = ckt_soft_heap_alloc(c, 100);
	YES(r == q);
	/* A kernel wrote over a size: it is not believed behind the heap's end. */
	uint64_t wild = UINT64_MAX - 100;
	memcpy(r - 8, &wild, 8);
	ckt_soft_heap_free(c, r);
	char *s = ckt_soft_heap_alloc(c, 100);
	YES(s && s != r && s != p);
	IS(p[99], 0x11);
}

/*
 * Before anything was allocated there is nothing to free; with a limit of 0 there is no heap; it
 * goes with the context.
 */
static void test_none(void)
{
	test_context();
	size_t free_now, total;
	ckt_soft_heap_free(files_context(), (void *)(uintptr_t)0x1000);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 0));
	YES(ckt_soft_heap_alloc(files_context(), 16) == NULL);
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
	YES(ckt_soft_heap_alloc(files_context(), 16) != NULL);
	test_context();
	OK(cuMemGetInfo(&free_now, &total));
	IS(free_now, total);
}

UNIT_SUITE(softgpu / memory / heap, {"limit", test_limit}, {"refused", test_refused},
	{"none", test_none})
