/* SPDX-License-Identifier: Apache-2.0 */
/* Events.  A cudaEvent_t is a CUevent. */
#include "client/cudart/api.h"

CKT_RT_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	CKT_RT_CALL(cuEventCreate(event, CU_EVENT_DEFAULT));
}

CKT_RT_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	CKT_RT_CALL(cuEventCreate(event, flags));
}

CKT_RT_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	CKT_RT_CALL(cuEventRecord(event, stream));
}

CKT_RT_API cudaError_t cudaEventRecordWithFlags(
	cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	CKT_RT_CALL(cuEventRecordWithFlags(event, stream, flags));
}

CKT_RT_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
	CKT_RT_CALL(cuEventQuery(event));
}

CKT_RT_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	CKT_RT_CALL(cuEventSynchronize(event));
}

CKT_RT_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	CKT_RT_CALL(cuEventDestroy(event));
}

CKT_RT_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	CKT_RT_CALL(ms ? cuEventElapsedTime(ms, start, end) : CUDA_ERROR_INVALID_VALUE);
}
