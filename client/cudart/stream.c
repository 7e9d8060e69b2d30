/* SPDX-License-Identifier: Apache-2.0 */
/* Streams.  A cudaStream_t is a CUstream, including the constants for default streams. */
#include "client/cudart/api.h"
#include "client/cudart/variants.h"

CKT_RT_API cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	CKT_RT_CALL(cuStreamCreate(pStream, CU_STREAM_DEFAULT));
}

CKT_RT_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	CKT_RT_CALL(cuStreamCreate(pStream, flags));
}

CKT_RT_API cudaError_t cudaStreamCreateWithPriority(
	cudaStream_t *pStream, unsigned int flags, int priority)
{
	CKT_RT_CALL(cuStreamCreateWithPriority(pStream, flags, priority));
}

CKT_RT_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	CKT_RT_ENTER();
	/* The default streams cannot be destroyed. */
	CKT_RT_REQUIRE(
		(uintptr_t)stream > (uintptr_t)cudaStreamPerThread, cudaErrorInvalidResourceHandle);
	return ckt_rt_cu(cuStreamDestroy(stream));
}

CKT_RT_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	CKT_RT_CALL(cuStreamSynchronize(stream));
}

/* cudaErrorNotReady does not become the last error (ckt_rt_failed). */
CKT_RT_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	CKT_RT_CALL(cuStreamQuery(stream));
}

CKT_RT_API cudaError_t cudaStreamWaitEvent(
	cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	CKT_RT_CALL(cuStreamWaitEvent(stream, event, flags));
}

CKT_RT_API cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
	CKT_RT_CALL(cuStreamGetPriority(hStream, priority));
}

CKT_RT_API cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
	CKT_RT_CALL(cuStreamGetFlags(hStream, flags));
}

CKT_RT_API cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
	CKT_RT_CALL(cuStreamGetId(hStream, streamId));
}

CKT_RT_API cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	CUdevice handle;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(device, cudaErrorInvalidValue);
	CUresult result = cuStreamGetDevice(hStream, &handle);
	for (int i = 0; result == CUDA_SUCCESS && i < ckt_rt_device_count; i++) {
		if (ckt_rt_devices[i].handle == handle) {
			*device = i;
			return cudaSuccess;
		}
	}
	return ckt_rt_return(result ? (cudaError_t)result : cudaErrorUnknown);
}

CKT_RT_API cudaError_t cudaStreamCopyAttributes(cudaStream_t dstStream, cudaStream_t srcStream)
{
	CKT_RT_CALL(cuStreamCopyAttributes(dstStream, srcStream));
}

CKT_RT_API cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t dst, cudaStream_t src)
{
	return cudaStreamCopyAttributes(
		dst ? dst : cudaStreamPerThread, src ? src : cudaStreamPerThread);
}

/* Attributes and their values have the same types under other names. */
CKT_RT_API cudaError_t cudaStreamGetAttribute(
	cudaStream_t stream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value)
{
	_Static_assert(
		sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "one layout");
	CKT_RT_CALL(cuStreamGetAttribute(stream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value));
}

CKT_RT_API cudaError_t cudaStreamSetAttribute(
	cudaStream_t stream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *param)
{
	CKT_RT_CALL(cuStreamSetAttribute(
		stream, (CUstreamAttrID)attr, (const CUstreamAttrValue *)param));
}

CKT_RT_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	CKT_RT_CALL(cuLaunchHostFunc(stream, fn, userData));
}

CKT_RT_API cudaError_t cudaStreamAddCallback(
	cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags)
{
	/* Both callbacks take (stream, int, pointer), and errors have the same numbers. */
	CKT_RT_CALL(cuStreamAddCallback(
		stream, (CUstreamCallback)(void (*)(void))callback, userData, flags));
}
