/* The last error of a thread, and what errors are called. */
#include "cudart.h"

/*
 * Errors after which the context is dead and every later call fails: they stay the last error, others are forgotten once asked for.
 * A driver that could not be initialised answers likewise for ever (seen with NVIDIA's library, where the error is 35).
 */
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

CKT_RT_API cudaError_t cudaPeekAtLastError(void)
{
	cudaError_t error = ckt_rt_driver_error();
	return error ? error : ckt_rt_thread.last_error;
}

CKT_RT_API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = cudaPeekAtLastError();
	if (!is_sticky(error))
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
