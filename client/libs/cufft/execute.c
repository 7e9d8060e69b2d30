/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stubs of executions ask of a plan.  What the library would refuse at once is refused
 * there.
 */
#include "client/libs/cufft/cufft.h"

/*
 * As the genuine library does, a plan of another type and null pointers are let through: what
 * becomes of them is an error of the GPU's, if any.
 */
cufftResult ckt_cufft_ready(const struct ckt_lib_object *object, uint64_t *ret_stream)
{
	const struct ckt_cufft_plan *plan = (const struct ckt_cufft_plan *)object;
	if (!plan->made)
		return CUFFT_INVALID_PLAN;
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	const struct ckt_client_table *client = ckt_client();
	if (client->context() != object->context)
		return CUFFT_INVALID_DEVICE;
	return client->stream((CUstream)plan->stream, ret_stream) ? CUFFT_EXEC_FAILED
								  : CUFFT_SUCCESS;
}

cufftResult ckt_cufft_executed(CUresult result, int status)
{
	cufftResult answer = ckt_cufft_answer(result, status);
	/* What does not travel is work that was not done. */
	return result && answer == CUFFT_INTERNAL_ERROR ? CUFFT_EXEC_FAILED : answer;
}
