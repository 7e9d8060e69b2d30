/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/context/device_queries.c: what devices are asked about beside their attributes. */
#include "relay.h"

static void test_notes(void)
{
	int can = 7, sms = 0;
	CUexecAffinityParam param;
	CUatomicOperation operations[2] = {0, 1};
	unsigned capabilities[2] = {9, 9};
	LOCAL(cuDeviceGetExecAffinitySupport(&can, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0),
		CUDA_SUCCESS);
	IS(can, 0);
	LOCAL(cuDeviceGetExecAffinitySupport(&can, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 99),
		CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), BAD);
	LOCAL(cuCtxGetExecAffinity(&param, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_SUCCESS);
	IS(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
	IS(param.param.smCount.val, sms);
	LOCAL(cuCtxGetExecAffinity(&param, CU_EXEC_AFFINITY_TYPE_MAX),
		CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
	LOCAL(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0), CUDA_SUCCESS);
	IS(capabilities[0] + capabilities[1], 0);
	operations[1] = CU_ATOMIC_OPERATION_MAX;
	LOCAL(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0), BAD);
	LOCAL(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 0),
		CUDA_ERROR_INVALID_DEVICE);
	/* the driver's to say */
	COST(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 1), CUDA_SUCCESS, 1,
		0);
}

UNIT_SUITE(device_notes, {"notes", test_notes})
