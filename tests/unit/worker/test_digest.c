/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BLAKE3 kernel on the soft GPU against the CPU's BLAKE3, of every shape that its tree can
 * have.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/format/blake3.h"
#include "checkpoint/kernels/digest.h"
#include "server/worker/driver.h"

/*
 * In KiB: one leaf, odd rows, whole rows, one more and one less than the row that shared memory
 * holds, the largest.
 */
static const size_t sizes[] = {
	1, 2, 3, 4, 5, 31, 255, 257, 1023, 1024, 1025, 1027, 1536, 2047, 2048};
enum { COUNT = sizeof sizes / sizeof *sizes };

static CUfunction function;

static void open_driver(void)
{
	CUcontext context;
	CUmodule module;
	CUdevice device;
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuInit(0), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuDeviceGet(&device, 0), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuDevicePrimaryCtxRetain(&context, device), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuCtxSetCurrent(context), 0);
	CU_ASSERT_EQUAL_FATAL(
		ckt_driver.cuModuleLoadDataEx(&module, ckt_digest_kernel(), 0, NULL, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuModuleGetFunction(&function, module, "ckt_digest"), 0);
}

static void test_equal(void)
{
	CUdeviceptr memory, scratch;
	struct ckt_hash_item items[COUNT];
	struct ckt_digest digests[COUNT];
	size_t total = 0;
	open_driver();
	for (unsigned i = 0; i < COUNT; i++)
		total += sizes[i] << 10;
	uint8_t *data = malloc(total);
	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	for (size_t i = 0; i < total; i++)
		data[i] = (uint8_t)(rand() >> 7);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuMemAlloc_v2(&memory, total), 0);
	CU_ASSERT_EQUAL_FATAL(
		ckt_driver.cuMemAlloc_v2(&scratch, COUNT * (sizeof *items + sizeof *digests)), 0);
	CU_ASSERT_EQUAL_FATAL(ckt_driver.cuMemcpyHtoD_v2(memory, data, total), 0);
	for (size_t i = 0, at = 0; i < COUNT; at += sizes[i++] << 10)
		items[i] = (struct ckt_hash_item){memory + at, sizes[i] << 10};
	CU_ASSERT_EQUAL_FATAL(ckt_digest_launch(function, NULL, scratch, items, COUNT, digests), 0);
	for (size_t i = 0, at = 0; i < COUNT; at += sizes[i++] << 10) {
		uint8_t sum[32];
		ckt_blake3(data + at, sizes[i] << 10, sum);
		CU_ASSERT_EQUAL(memcmp(sum, digests[i].sum, sizeof sum), 0);
	}
	free(data);
}

static void test_takes(void)
{
	/* Nothing, as long as no kernel is loaded. */
	CU_ASSERT_FALSE(ckt_digest_takes(0, 0x200000000000, 2 << 20));
}

int main(int argc, char **argv)
{
	char message[256];
	if (argc != 2 || ckt_driver_open(argv[1], message, sizeof message))
		return 2;
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("digest", NULL, NULL);
	CU_add_test(suite, "equal to the CPU's", test_equal);
	CU_add_test(suite, "takes", test_takes);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures() + (CU_get_error() != CUE_SUCCESS);
	CU_cleanup_registry();
	return failed != 0;
}
