/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of devices other than attributes: affinity, atomic operations over a link. */
#include <string.h>

#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "cudacommon/interface.h"

/* Only MPS has contexts on a part of a device. */
CKT_EXPORT CUresult cuDeviceGetExecAffinitySupport(
	int *can, CUexecAffinityType type, CUdevice device)
{
	CUresult result;
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	*can = 0;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
	struct ckt_context *context;
	if (!param)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	*param = (CUexecAffinityParam){.type = type};
	param->param.smCount.val = (unsigned)ckt_client_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	return CUDA_SUCCESS;
}

/* Clears the capabilities, also if it then refuses an invalid operation (measured on an H200). */
static CUresult no_atomics(
	unsigned *capabilities, const CUatomicOperation *operations, unsigned count)
{
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	memset(capabilities, 0, count * sizeof *capabilities);
	for (unsigned i = 0; i < count; i++)
		if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult ask_host_atomic(
	CUatomicOperation operation, CUdevice device, unsigned *ret_capabilities)
{
	struct ckt_reply reply;
	struct ckt_device_host_atomic_res res;
	CKT_ROUTE_DEVICE(device);
	CUresult result = CKT_WAITED(device_host_atomic, DEVICE_HOST_ATOMIC, CKT_CALL_F_ANYWAY,
		&reply, .operation = operation, .device = ckt_call_device((unsigned)device));
	if (result)
		return result;
	if (ckt_device_host_atomic_res_get(&reply.results, &res))
		*ret_capabilities = res.capabilities;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/*
 * The atomic operations of the device on its host's memory.  A program on another host has only a
 * copy of such memory there, which running kernels do not share with the program.  So there are
 * none, as CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED says.
 */
CKT_EXPORT CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice device)
{
	CUresult result;
	if (!ckt_client_device_get(device, &result))
		return result;
	result = no_atomics(capabilities, operations, count);
	if (result ||
		!ckt_client_device_attribute(
			device, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED))
		return result;
	for (unsigned i = 0; i < count && !result; i++)
		result = ask_host_atomic(operations[i], device, &capabilities[i]);
	return result;
}

static CUresult ask_atomic(
	CUatomicOperation operation, CUdevice from, CUdevice to, unsigned *ret_capabilities)
{
	struct ckt_reply reply;
	struct ckt_device_p2p_atomic_res res;
	if (ckt_conn_count > 1 &&
		ckt_call_conn_of((unsigned)from) != ckt_call_conn_of((unsigned)to)) {
		*ret_capabilities = 0;
		return CUDA_SUCCESS;
	}
	CKT_ROUTE_DEVICE(from);
	CUresult result = CKT_WAITED(device_p2p_atomic, DEVICE_P2P_ATOMIC, CKT_CALL_F_ANYWAY,
		&reply, .operation = operation, .device = ckt_call_device((unsigned)from),
		.peer = ckt_call_device((unsigned)to));
	if (result)
		return result;
	if (ckt_device_p2p_atomic_res_get(&reply.results, &res))
		*ret_capabilities = res.capabilities;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice from, CUdevice to)
{
	CUresult result;
	if (!ckt_client_device_get(from, &result) || !ckt_client_device_get(to, &result))
		return result;
	result = no_atomics(capabilities, operations, count);
	if (!result && from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	for (unsigned i = 0; i < count && !result; i++)
		result = ask_atomic(operations[i], from, to, &capabilities[i]);
	return result;
}
