/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/stream/memop.c: values that a stream writes and waits for, compared as documented. */
#include <time.h>

#include "files.h"

/*
 * True where a stream that waits for the value at the word goes on.  Where it should, as long as
 * that takes is waited for.
 */
static bool passes(
	CUdeviceptr p, uint64_t have, uint64_t want, unsigned flags, bool wide, bool should)
{
	CUstream stream;
	OK(wide ? cuMemcpyHtoD(p, &have, 8) : cuMemcpyHtoD(p, &(uint32_t){(uint32_t)have}, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(wide ? cuStreamWaitValue64(stream, p, want, flags)
		: cuStreamWaitValue32(stream, p, (cuuint32_t)want, flags));
	CUresult result = CUDA_ERROR_NOT_READY;
	for (int i = 0; (should || i < 20) && result == CUDA_ERROR_NOT_READY; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		result = cuStreamQuery(stream);
	}
	/* Let it go in any case: with a value that every comparison of this test takes. */
	for (int i = 0; cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; i++) {
		uint64_t other = i % 3 == 0 ? want : i % 3 == 1 ? 0 : ~0ull;
		memcpy((void *)(uintptr_t)p, &other, wide ? 8 : 4);
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	OK(cuStreamDestroy(stream));
	return result == CUDA_SUCCESS;
}

static void test_compare(void)
{
	enum {
		GEQ = CU_STREAM_WAIT_VALUE_GEQ,
		EQ = CU_STREAM_WAIT_VALUE_EQ,
		AND = CU_STREAM_WAIT_VALUE_AND,
		NOR = CU_STREAM_WAIT_VALUE_NOR
	};
	static const struct {
		uint64_t have, want;
		unsigned flags;
		bool wide, passes;
	} table[] = {
		{5, 5, GEQ, false, true},
		{4, 5, GEQ, false, false},
		{6, 5, GEQ, false, true},
		/* Cyclic: counters may wrap. */
		{1, 0xfffffffe, GEQ, false, true},
		{0xfffffffe, 1, GEQ, false, false},
		{0x80000000, 0, GEQ, false, false},
		{1, ~0ull, GEQ, true, true},
		{0x100000000, 1, GEQ, true, true},
		{7, 7, EQ, false, true},
		{7, 6, EQ, false, false},
		{0x100000007, 7, EQ, true, false},
		{7, 7, EQ, true, true},
		{6, 4, AND, false, true},
		{6, 1, AND, false, false},
		{1ull << 40, 1ull << 40, AND, true, true},
		{0, 1, AND, false, false},
		{0xffffff00, 0xfe, NOR, false, true},
		{0xffffff00, 0xff, NOR, false, false},
		{~0ull, 0, NOR, true, false},
		{0xffffffff, 0, NOR, true, true},
	};
	CUdeviceptr p;
	test_context();
	OK(cuMemAllocManaged(&p, 8, CU_MEM_ATTACH_GLOBAL));
	for (size_t i = 0; i < COUNT(table); i++) {
		bool good = passes(p, table[i].have, table[i].want, table[i].flags, table[i].wide,
			table[i].passes);
		if (good != table[i].passes)
			fprintf(stderr, "memop %zu\n", i);
		IS(good, table[i].passes);
	}
	OK(cuMemFree(p));
}

static void test_order(void)
{
	CUdeviceptr p;
	CUstream one, two;
	test_context();
	OK(cuMemAlloc(&p, 64));
	OK(cuMemsetD32(p, 0, 16));
	OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	/* Two streams that wait for each other in turn. */
	for (unsigned i = 1; i <= 5; i++) {
		OK(cuStreamWaitValue32(one, p, i, CU_STREAM_WAIT_VALUE_EQ));
		OK(cuStreamWriteValue64(one, p + 8, 0x100000000ull * i, 0));
		OK(cuStreamWriteValue32(two, p, i, 0));
		OK(cuStreamWaitValue64(two, p + 8, 0x100000000ull * i, CU_STREAM_WAIT_VALUE_EQ));
	}
	OK(cuStreamSynchronize(one));
	OK(cuStreamSynchronize(two));
	IS(files_word(p), 5);
	IS(files_word(p + 12), 5);
	IS(files_word(p + 4), 0);
	OK(cuStreamDestroy(one));
	OK(cuStreamDestroy(two));
	OK(cuMemFree(p));
}

/* A wait that nobody fulfils does not outlive its context. */
static void test_end(void)
{
	CUdeviceptr p;
	CUcontext mine;
	CUstream stream;
	OK(cuInit(0));
	OK(cuCtxCreate(&mine, NULL, 0, 0));
	OK(cuMemAlloc(&p, 4));
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamWaitValue32(stream, p, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuCtxDestroy(mine));
}

UNIT_SUITE(softgpu / stream / memop, {"compare", test_compare}, {"order", test_order},
	{"end", test_end})
