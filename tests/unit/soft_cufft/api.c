/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/soft_cufft/api.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16 };

void api_context(void)
{
	static CUcontext context;
	if (!context) {
		MUST(cuInit(0), CUDA_SUCCESS);
		MUST(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	}
	MUST(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

void api_judge(cufftHandle plan, const struct shape *s, bool inverse, CUstream stream)
{
	CUdeviceptr in, out;
	unsigned char *host_in = malloc(BYTES), *host_out = malloc(BYTES),
		      *expected = malloc(BYTES);
	MUST(cuMemAlloc(&in, BYTES), CUDA_SUCCESS);
	MUST(cuMemAlloc(&out, BYTES), CUDA_SUCCESS);
	reference_fill(s->precision, host_in, BYTES, 11);
	reference_fill(s->precision, expected, BYTES, 12);
	MUST(cuMemcpyHtoD(in, host_in, BYTES), CUDA_SUCCESS);
	MUST(cuMemcpyHtoD(out, expected, BYTES), CUDA_SUCCESS);
	IS(cufftXtExec(plan, (void *)in, (void *)out, inverse ? CUFFT_INVERSE : CUFFT_FORWARD),
		CUFFT_SUCCESS);
	MUST(cuStreamSynchronize(stream), CUDA_SUCCESS);
	MUST(cuMemcpyDtoH(host_out, out, BYTES), CUDA_SUCCESS);
	reference_run(s, host_in, expected, inverse);
	YES(reference_difference(s->precision, host_out, expected, BYTES) <=
		reference_tolerance(s->precision));
	cuMemFree(in);
	cuMemFree(out);
	free(host_in);
	free(host_out);
	free(expected);
}
