/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT with the program's code inside of a transform: loaded values are scaled by a number on the device, about the mid point.  The code is
 * compiled here, by NVRTC, and linked into the plan's kernels where the library runs.  The soft GPU's cuFFT has no callbacks, and says so.
 */
#include "common.h"

#include <cufftXt.h>
#include <nvrtc.h>

static const char source[] = "extern \"C\" __device__ float2 load_scaled(void *in, unsigned long long offset, void *info, void *shared)\n"
			     "{\n"
			     "	float2 v = ((float2 *)in)[offset];\n"
			     "	const float scale = *(const float *)info;\n"
			     "	return make_float2(v.x * scale, v.y * scale);\n"
			     "}\n";

static std::vector<char> compiled()
{
	nvrtcProgram program;
	const char *options[] = {"-dlto", "--relocatable-device-code=true", "-arch=compute_75"};
	size_t size;
	TRY(nvrtcCreateProgram(&program, source, "callback.cu", 0, NULL, NULL));
	TRY(nvrtcCompileProgram(program, 3, options));
	TRY(nvrtcGetLTOIRSize(program, &size));
	std::vector<char> code(size);
	TRY(nvrtcGetLTOIR(program, code.data()));
	TRY(nvrtcDestroyProgram(&program));
	return code;
}

int main()
{
	enum { N = 4096, BATCH = 4 };
	cufftHandle plan;
	size_t bytes = 0;
	std::vector<char> code = compiled();
	float *scale = device(std::vector<float>{3});
	cufftComplex *from = (cufftComplex *)device(numbers(2 * N * BATCH, 5)), *to = device<cufftComplex>(N * BATCH);
	void *info[] = {scale};
	TRY(cufftCreate(&plan));
	printf("no name: %d\n", (int)cufftXtSetJITCallback(plan, NULL, code.data(), code.size(), CUFFT_CB_LD_COMPLEX, info));
	printf("no code: %d\n", (int)cufftXtSetJITCallback(plan, "load_scaled", NULL, 0, CUFFT_CB_LD_COMPLEX, info));
	printf("no such type: %d\n", (int)cufftXtSetJITCallback(plan, "load_scaled", code.data(), code.size(), (cufftXtCallbackType)8, info));
	printf("set: %d\n", (int)cufftXtSetJITCallback(plan, "load_scaled", code.data(), code.size(), CUFFT_CB_LD_COMPLEX, info));
	printf("made: %d\n", (int)cufftMakePlan1d(plan, N, CUFFT_C2C, BATCH, &bytes));
	for (int half = 0; half < 2; half++) {
		printf("executed: %d\n", (int)cufftExecC2C(plan, from, to, CUFFT_FORWARD));
		hash("scaled", to, N * BATCH * sizeof(*to));
		if (!half)
			phase();
		/* The callback reads it at each execution. */
		CHECK(cudaMemcpy(scale, std::vector<float>{0.5f}.data(), sizeof(float), cudaMemcpyHostToDevice));
	}
	TRY(cufftDestroy(plan));
	return finish();
}
