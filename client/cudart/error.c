/* SPDX-License-Identifier: Apache-2.0 */
/* The last error of a thread, and the names of errors. */
#include "client/cudart/error.h"
#include "client/cudart/api.h"
#include "client/cudart/error_table.h"

/* Errors that destroy the context, so that every later call fails. */
static bool is_sticky(cudaError_t error)
{
	switch (error) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorExternalDevice:
	case cudaErrorTensorMemoryLeak:
		return true;
	default:
		return false;
	}
}

cudaError_t ckt_rt_fault(void)
{
	cudaError_t error = (cudaError_t)cuMemFree(0);
	return is_sticky(error) ? error : cudaSuccess;
}

cudaError_t ckt_rt_failed(cudaError_t error)
{
	/*
	 * Seen on an H200 with CUDA 13.0: cudaErrorNotReady is not recorded, and the error of a
	 * dead context takes precedence over cudaErrorInvalidValue.
	 */
	if (error == cudaErrorNotReady)
		return error;
	if (error == cudaErrorInvalidValue && ckt_rt_thread.context) {
		cudaError_t fault = ckt_rt_fault();
		error = fault ? fault : error;
	}
	return ckt_rt_thread.last_error = error;
}

CKT_RT_API cudaError_t cudaPeekAtLastError(void)
{
	cudaError_t error = ckt_rt_driver_error();
	return error ? error : ckt_rt_thread.last_error;
}

/*
 * Clears the error even if the context is dead: the next call returns it again.  If the driver
 * could not be initialised, its error stays (seen with NVIDIA's library, where the error is 35).
 */
CKT_RT_API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = cudaPeekAtLastError();
	ckt_rt_thread.last_error = cudaSuccess;
	return error;
}

static const struct ckt_rt_error_text *find_text(cudaError_t error)
{
	unsigned low = 0, high = ckt_rt_error_text_count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (ckt_rt_error_texts[middle].number == (int)error)
			return &ckt_rt_error_texts[middle];
		if (ckt_rt_error_texts[middle].number < (int)error)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

CKT_RT_API const char *cudaGetErrorName(cudaError_t error)
{
	const struct ckt_rt_error_text *text = find_text(error);
	return text ? text->name : "unrecognized error code";
}

CKT_RT_API const char *cudaGetErrorString(cudaError_t error)
{
	const struct ckt_rt_error_text *text = find_text(error);
	return text ? text->text : "unrecognized error code";
}
