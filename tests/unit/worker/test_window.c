/* server/worker/window.c: the window: slices of devices, memory mapped and given back, and nothing left where the driver refuses. */
#include <string.h>

#include "tests/unit/worker/inside.h"

static uint64_t free_bytes(void)
{
	size_t bytes = 0, total;
	IS(ckt_driver.cuMemGetInfo_v2(&bytes, &total), CUDA_SUCCESS);
	return bytes;
}

static void test_slices(void)
{
	IS(ckt_worker.device_count, 2);
	IS(ckt_worker.slice_size % CKT_MEMORY_EXTENT, 0);
	YES(ckt_worker.slice_size * 2 <= CKT_WINDOW_SIZE);
	for (unsigned d = 0; d < 2; d++) {
		IS(ckt_worker.devices[d].memory.base, CKT_WINDOW_BASE + d * ckt_worker.slice_size);
		IS(ckt_worker.devices[d].memory.size, ckt_worker.slice_size);
		YES(ckt_worker_device_of(&ckt_worker, ckt_worker.devices[d].memory.base) == &ckt_worker.devices[d]);
		YES(ckt_worker_device_of(&ckt_worker, ckt_worker.devices[d].memory.base + ckt_worker.slice_size - 1) == &ckt_worker.devices[d]);
	}
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, CKT_WINDOW_BASE - 1));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, CKT_WINDOW_BASE + CKT_WINDOW_SIZE));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, 0));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, UINT64_MAX));
	CU_ASSERT_PTR_NULL(ckt_worker_device_find(&ckt_worker, 2));
	/* It is taken, so nobody gets it again; whoever asks is told what may be wrong. */
	char message[CKT_MESSAGE_MAX] = "";
	YES(ckt_window_reserve(&ckt_worker, message, sizeof message) != CUDA_SUCCESS);
	HAS(message, "ulimit -v");
}

static void test_map(void)
{
	uint64_t before = free_bytes(), piece = 0, other = 0, at = CKT_SCRATCH_BASE + ((uint64_t)64 << 20);
	enum { SIZE = 4 << 20 };
	IS(ckt_window_map(&ckt_worker, 0, at, SIZE, &piece), CUDA_SUCCESS);
	IS(free_bytes(), before - SIZE);
	inside_fill(at, 9, SIZE);
	IS(inside_word(at + SIZE - 4), 9);
	/* Taken, not reserved at all, no size: refused, and no memory is kept. */
	YES(ckt_window_map(&ckt_worker, 0, at, SIZE, &other) != CUDA_SUCCESS);
	YES(ckt_window_map(&ckt_worker, 0, 0x10000000000, SIZE, &other) != CUDA_SUCCESS);
	YES(ckt_window_map(&ckt_worker, 0, at + SIZE, 0, &other) != CUDA_SUCCESS);
	IS(ckt_window_create(&ckt_worker, 0, (uint64_t)1 << 40, &other), CUDA_ERROR_OUT_OF_MEMORY);
	IS(free_bytes(), before - SIZE);
	IS(ckt_window_create(&ckt_worker, 0, SIZE, &other), CUDA_SUCCESS);
	IS(free_bytes(), before - 2 * SIZE);
	ckt_driver.cuMemRelease(other);
	ckt_window_unmap(at, SIZE, piece);
	IS(free_bytes(), before);
	uint32_t word;
	YES(ckt_driver.cuMemcpyDtoH_v2(&word, at, 4) != CUDA_SUCCESS);
}

UNIT_SUITE(window, {"slices", test_slices}, {"map", test_map})
