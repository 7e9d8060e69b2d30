/* SPDX-License-Identifier: Apache-2.0 */
/* ckt_driver_open: a driver, something that is no driver, nothing at all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "rpc/gen/cuda_driver.h"

static const char *fake_driver;

static void test_failures(void)
{
	char message[512] = "";
	CU_ASSERT_EQUAL(
		ckt_driver_open("/nonexistent/libcuda.so.1", message, sizeof(message)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "/nonexistent/libcuda.so.1"));
	CU_ASSERT_EQUAL(ckt_driver_open("libm.so.6", message, sizeof(message)), -ENOEXEC);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "libm.so.6 is not a CUDA driver"));
	CU_ASSERT_PTR_NULL(ckt_driver.cuInit);
	char tiny[8];
	CU_ASSERT_EQUAL(ckt_driver_open("/nonexistent/libcuda.so.1", tiny, sizeof(tiny)), -ENOENT);
	CU_ASSERT_EQUAL(strnlen(tiny, sizeof(tiny)), sizeof(tiny) - 1);
}

static void test_open(void)
{
	char message[512] = "";
	int error = ckt_driver_open(fake_driver, message, sizeof(message));
	CU_ASSERT_EQUAL_FATAL(error, 0);
	CU_ASSERT_EQUAL(ckt_driver.cuInit(0), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_driver.cuInit(1), CUDA_ERROR_INVALID_VALUE);
	CUdeviceptr address = 0;
	CU_ASSERT_EQUAL(ckt_driver.cuMemAlloc_v2(&address, 41), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, 42);
	CU_ASSERT_PTR_NULL(ckt_driver.cuMemAlloc);
	CU_ASSERT_PTR_NULL(ckt_driver.cuProfilerStop);
}

int main(int argc, char **argv)
{
	if (argc != 2 || CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	fake_driver = argv[1];
	CU_pSuite suite = CU_add_suite("driver", NULL, NULL);
	CU_add_test(suite, "libraries that are no driver", test_failures);
	CU_add_test(suite, "a driver with two functions", test_open);
	CU_basic_run_tests();
	return CU_get_number_of_failures() > 0 || CU_get_number_of_tests_run() == 0;
}
