/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/copy.c: the descriptor's bounds, rows and slices, and when a copy has read its
 * source or written its target.
 */
#include "files.h"
#include "softgpu/memory/copy.h"
#include "softgpu/memory/memmap.h"

static struct ckt_soft_copy_end end_of(
	uint64_t address, uint64_t pitch, uint64_t slice, enum ckt_soft_place place)
{
	return (struct ckt_soft_copy_end){
		.address = address, .pitch = pitch, .slice = slice, .place = place};
}

static void test_check(void)
{
	CUdeviceptr p;
	static char host[64];
	test_context();
	OK(cuMemAlloc(&p, 8192));
	const enum ckt_soft_place device = CKT_SOFT_PLACE_DEVICE, any = CKT_SOFT_PLACE_ANY,
				  on_host = CKT_SOFT_PLACE_HOST;
	const struct {
		struct ckt_soft_copy_end end;
		uint64_t width, height, depth;
		bool good;
	} table[] = {
		{end_of(p, 8192, 8192, device), 8192, 1, 1, true},
		{end_of(p, 8193, 8193, device), 8193, 1, 1, false},
		{end_of(p + 8191, 1, 1, device), 1, 1, 1, true},
		{end_of(p + 8192, 1, 1, device), 1, 1, 1, false},
		{end_of(p, 100, 1000, device), 92, 82, 1, true}, /* 81 rows of 100 and one of 92 */
		{end_of(p, 100, 1000, device), 93, 82, 1, false},
		{end_of(p, 100, 4000, device), 100, 2, 3, false},
		{end_of(p, 100, 3996, device), 100, 3, 3, false},
		{end_of(p, 100, 3996, device), 100, 2, 3, true},
		{end_of(p, 0, 0, device), 8, 1000, 1000, true}, /* the same row again and again */
		{end_of(p, UINT64_MAX, 0, device), 1, 3, 1, false},
		{end_of(p, 1, UINT64_MAX / 2 + 1, device), 1, 1, 3, false},
		{end_of(p, 1, 1, device), UINT64_MAX, 1, 1, false},
		{end_of(0, 1, 1, device), 1, 1, 1, false},
		{end_of((uint64_t)(uintptr_t)host, 64, 64, device), 64, 1, 1, false},
		{end_of((uint64_t)(uintptr_t)host, 64, 64, any), 64, 1, 1, true},
		{end_of((uint64_t)(uintptr_t)host, 64, 64, on_host), 64, 1, 1, true},
		{end_of(p, 64, 64, on_host), 64, 1, 1,
			true}, /* a device address where the host's is expected, and good */
		{end_of(p + 8192, 64, 64, on_host), 64, 1, 1, false},
		{end_of(p + 8192, 64, 64, any), 64, 1, 1, false},
		{end_of(1, 64, 64, CKT_SOFT_PLACE_ARRAY), 64, 1, 1,
			true}, /* looked at when it was made */
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct ckt_soft_copy copy = {.width = table[i].width,
			.height = table[i].height,
			.depth = table[i].depth};
		CUresult result = ckt_soft_copy_check(&table[i].end, &copy, CKT_SOFT_PAGE_WRITE);
		if (result != (table[i].good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))
			fprintf(stderr, "copy check %zu\n", i);
		IS(result, table[i].good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	}
	OK(cuMemFree(p));
}

/* Byte for byte against three loops. */
static void test_run(void)
{
	static unsigned char from[600], to[600], want[600];
	/* width, rows, slices, pitches and slice sizes of source and target */
	static const unsigned shapes[][7] = {
		{7, 3, 2, 10, 11, 40, 50},
		{10, 4, 3, 10, 10, 40, 40},
		{10, 4, 3, 10, 10, 45, 50},
		{1, 20, 5, 2, 3, 50, 100},
		{600, 1, 1, 600, 600, 600, 600},
		{5, 4, 1, 0, 9, 0, 0},
	};
	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 31 + 1);
	for (size_t n = 0; n < COUNT(shapes); n++) {
		const unsigned *s = shapes[n];
		struct ckt_soft_copy copy = {
			.from = end_of((uint64_t)(uintptr_t)from, s[3], s[5], 0),
			.to = end_of((uint64_t)(uintptr_t)to, s[4], s[6], 0),
			.width = s[0],
			.height = s[1],
			.depth = s[2]};
		memset(to, 0, sizeof(to));
		memset(want, 0, sizeof(want));
		for (unsigned z = 0; z < s[2]; z++)
			for (unsigned y = 0; y < s[1]; y++)
				for (unsigned x = 0; x < s[0]; x++)
					want[z * s[6] + y * s[4] + x] =
						from[z * s[5] + y * s[3] + x];
		ckt_soft_copy_run(&copy);
		IS(memcmp(to, want, sizeof(to)), 0);
	}
	/* Rows that overlap their source are moved, not smeared. */
	struct ckt_soft_copy copy = {.from = end_of((uint64_t)(uintptr_t)from, 100, 100, 0),
		.to = end_of((uint64_t)(uintptr_t)from + 1, 100, 100, 0),
		.width = 100,
		.height = 1,
		.depth = 1};
	memcpy(want, from, 100);
	ckt_soft_copy_run(&copy);
	IS(memcmp(from + 1, want, 100), 0);
}

/*
 * A small pageable source is taken in the call, a pinned one is read when the stream comes to it.
 */
static void test_staging(void)
{
	CUdeviceptr p;
	uint32_t *pinned, pageable = 1;
	test_context();
	OK(cuMemAlloc(&p, 4096));
	OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
	*pinned = 1;
	CUstream stream = files_gated();
	OK(cuMemcpyHtoDAsync(p, &pageable, 4, stream));
	OK(cuMemcpyHtoDAsync(p + 4, pinned, 4, stream));
	pageable = *pinned = 2;
	CHECK_RESULT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	files_open();
	OK(cuStreamSynchronize(stream));
	IS(files_word(p), 1);
	IS(files_word(p + 4), 2);
	/* A pageable target is written when the call returns, also where the stream had work. */
	uint32_t back = 0;
	for (int i = 0; i < 50; i++)
		OK(cuMemsetD32Async(p, (unsigned)i, 1024, stream));
	OK(cuMemcpyDtoHAsync(&back, p, 4, stream));
	IS(back, 49);
	OK(cuStreamDestroy(stream));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(p));
}

static void test_nothing(void)
{
	test_context();
	CUDA_MEMCPY3D none = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 4,
		.Height = 4};
	OK(cuMemcpy3D(&none));
	OK(cuMemcpyDtoD(0, 0, 0));
	CHECK_RESULT(
		cuMemcpyDtoDAsync(0, 0, 0, (CUstream)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(softgpu / memory / copy, {"check", test_check}, {"run", test_run},
	{"staging", test_staging}, {"nothing", test_nothing})
