/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/device.c: devices and their description.  CRICKET_SOFT_DEVICES is read once, so
 * each list is tried in a process of its own.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "soft_test.h"

static int in_child(const char *devices, int (*body)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		setenv("CRICKET_SOFT_DEVICES", devices, 1);
		_exit(body());
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int init_result(void)
{
	return (int)cuInit(0);
}

static void test_lists(void)
{
	static const char *const good[] = {"12.0:8G", "9.0", "7.5:512M,8.0:1T", "12.0:16M"};
	static const char *const bad[] = {"12", "12.9:8G", "12.0:", "12.0:8X", "12.0:8GB",
		"12.0,,9.0", "12.0:1M", "12.0:99999T", "banana", "9.0 "};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		CU_ASSERT_EQUAL(in_child(good[i], init_result), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int result = in_child(bad[i], init_result);
		/* "12" alone is capability 12.0. */
		CU_ASSERT_EQUAL(result, i == 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
	}
}

static int two_devices(void)
{
	int count = 0, major = 0, peer = 0;
	size_t bytes = 0;
	CUuuid first, second;
	char bus[20];
	CUdevice device = -1;
	if (cuInit(0) || cuDeviceGetCount(&count) || count != 2)
		return 1;
	if (cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1) ||
		major != 9)
		return 2;
	if (cuDeviceTotalMem(&bytes, 1) || bytes != 512u << 20)
		return 3;
	if (cuDeviceGetUuid(&first, 0) || cuDeviceGetUuid(&second, 1) ||
		!memcmp(&first, &second, sizeof(first)))
		return 4;
	if (cuDeviceGetPCIBusId(bus, sizeof(bus), 1) || cuDeviceGetByPCIBusId(&device, bus) ||
		device != 1)
		return 5;
	if (cuDeviceCanAccessPeer(&peer, 0, 1) || !peer || cuDeviceCanAccessPeer(&peer, 0, 0) ||
		peer)
		return 6;
	if (cuDeviceGet(&device, 2) != CUDA_ERROR_INVALID_DEVICE)
		return 7;
	return 0;
}

static void test_two(void)
{
	CU_ASSERT_EQUAL(in_child("12.0:1G,9.0:512M", two_devices), 0);
}

static void test_before_init(void)
{
	int count;
	size_t bytes;
	CHECK_RESULT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_RESULT(cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_RESULT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

static void test_attributes(void)
{
	OK(cuInit(0));
	int value = -1;
	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		OK(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0));
	CHECK_RESULT(
		cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 9),
		CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	CU_ASSERT_EQUAL(value, 32);
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
	CU_ASSERT_EQUAL(value, 1);
	char name[64];
	OK(cuDeviceGetName(name, sizeof(name), 0));
	CU_ASSERT_STRING_EQUAL(name, "Cricket Soft GPU");
}

static int child_of_user(void)
{
	int count;
	return cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
			cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
		? 0
		: 1;
}

static void test_fork(void)
{
	test_context();
	CU_ASSERT_EQUAL(in_child("", child_of_user), 0);
}

static void test_errors(void)
{
	const char *text = NULL;
	OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CU_ASSERT_STRING_EQUAL(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CU_ASSERT_STRING_EQUAL(text, "out of memory");
	CHECK_RESULT(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_PTR_NULL(text);
	const void *table = &text;
	CHECK_RESULT(cuGetExportTable(&table, NULL), CUDA_ERROR_NOT_SUPPORTED);
	CU_ASSERT_PTR_NULL(table);
}

static void test_proc_address(void)
{
	void *old = NULL, *now = NULL, *per_thread = NULL;
	CUdriverProcAddressQueryResult status;
	OK(cuGetProcAddress("cuCtxCreate", &old, 3020, 0, NULL));
	OK(cuGetProcAddress("cuCtxCreate", &now, 13000, 0, &status));
	CU_ASSERT_PTR_NOT_EQUAL(old, now);
	CU_ASSERT_PTR_EQUAL(now, (void *)cuCtxCreate);
	CU_ASSERT_EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress(
		"cuStreamSynchronize", &now, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
	OK(cuGetProcAddress("cuStreamSynchronize", &per_thread, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	CU_ASSERT_PTR_EQUAL(now, (void *)cuStreamSynchronize);
	CU_ASSERT_PTR_NOT_EQUAL(now, per_thread);
	OK(cuGetProcAddress("cuLaunchKernelEx", &now, 11000, 0, &status));
	CU_ASSERT_PTR_NULL(now);
	CU_ASSERT_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress("cuBanana", &now, 13000, 0, &status));
	CU_ASSERT_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK_RESULT(cuGetProcAddress("cuInit", &now, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	static const struct soft_test tests[] = {
		{"before cuInit", test_before_init},
		{"device lists", test_lists},
		{"two devices", test_two},
		{"attributes", test_attributes},
		{"forked child", test_fork},
		{"errors", test_errors},
		{"cuGetProcAddress", test_proc_address},
	};
	return RUN_TESTS("soft device", tests);
}
