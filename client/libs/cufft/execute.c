/* Executions: batched, on the plan's stream; what the library would refuse at once is refused here. */
#include "client/libs/cufft/cufft.h"

static cufftResult send(const struct ckt_fft_plan *plan, int function, void *in, void *out, int direction)
{
	const struct ckt_client_table *client;
	bool captured = false;
	uint64_t addresses[] = {(uintptr_t)in, (uintptr_t)out}, stream;
	cufftResult status = ckt_fft_enter(&client);
	if (status != CUFFT_SUCCESS)
		return status;
	if (client->context() != plan->context)
		return CUFFT_INVALID_DEVICE;
	if (client->stream((CUstream)plan->stream, &stream) != CUDA_SUCCESS)
		return CUFFT_EXEC_FAILED;
	CUresult result = client->before_work(stream, addresses, 2);
	struct ckt_fft_execute_args args = {.plan = plan->id, .function = (uint32_t)function, .stream = stream, .in = addresses[0], .out = addresses[1],
		.direction = direction};
	if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
		uint8_t bytes[64];
		size_t size = (size_t)(ckt_fft_execute_args_put(bytes, &args) - bytes);
		result = client->capture(stream, CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_FFT_EXECUTE), bytes, size, 0, &captured);
		/* Or another thread ended the capture in between. */
		return !result && captured ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
	}
	if (result)
		return CUFFT_EXEC_FAILED;
	status = CKT_FFT_QUEUE(FFT_EXECUTE, fft_execute, &args);
	/* What does not travel is work that was not done. */
	return status == CUFFT_INTERNAL_ERROR ? CUFFT_EXEC_FAILED : status;
}

/*
 * type: 0 for cufftXtExec, which does whatever the plan is for.  As the genuine library does, a plan of another type and null pointers are let
 * through: what becomes of them is an error of the GPU's, if any.
 */
static cufftResult execute(cufftHandle handle, int type, void *in, void *out, int direction)
{
	struct ckt_fft_plan plan;
	if (!ckt_fft_plan_get(handle, &plan) || !plan.made)
		return CUFFT_INVALID_PLAN;
	if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE && !plan.real)
		return CUFFT_INVALID_VALUE;
	return send(&plan, type, in, out, direction);
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction)
{
	return execute(plan, CUFFT_C2C, idata, odata, direction);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata)
{
	return execute(plan, CUFFT_R2C, idata, odata, CUFFT_FORWARD);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata)
{
	return execute(plan, CUFFT_C2R, idata, odata, CUFFT_INVERSE);
}

cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata, int direction)
{
	return execute(plan, CUFFT_Z2Z, idata, odata, direction);
}

cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata)
{
	return execute(plan, CUFFT_D2Z, idata, odata, CUFFT_FORWARD);
}

cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata)
{
	return execute(plan, CUFFT_Z2D, idata, odata, CUFFT_INVERSE);
}

cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction)
{
	return execute(plan, 0, input, output, direction);
}
