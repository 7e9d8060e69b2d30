/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/obsolete.c: functions of before CUDA 3.2: there is no context that they could
 * be called in.
 */
#include <dlfcn.h>

#include "relay.h"

static void test_refused(void)
{
	static const char *const names[] = {"cuMemAlloc", "cuMemFree", "cuMemGetInfo",
		"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemsetD32", "cuMemAllocPitch", "cuMemcpy3D",
		"cuMemcpy2DAsync", "cuMemGetAddressRange"};
	for (size_t i = 0; i < COUNT(names); i++) {
		int (*old)(uint32_t *, uint32_t *, uint32_t, uint32_t) = (int (*)(
			uint32_t *, uint32_t *, uint32_t, uint32_t))dlsym(RTLD_DEFAULT, names[i]);
		uint32_t a = 7, b = 7;
		CU_ASSERT_PTR_NOT_NULL_FATAL(old);
		LOCAL(old(&a, &b, 0, 0), CUDA_ERROR_INVALID_CONTEXT);
	}
	int (*total)(unsigned *, int) =
		(int (*)(unsigned *, int))dlsym(RTLD_DEFAULT, "cuDeviceTotalMem");
	unsigned bytes = 0;
	LOCAL(total(&bytes, 0), CUDA_SUCCESS);
	IS(bytes, 2u << 30);
	LOCAL(total(NULL, 0), BAD);
	LOCAL(total(&bytes, 99), CUDA_ERROR_INVALID_DEVICE);
}

UNIT_SUITE(old, {"refused", test_refused})
