/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT: every type, layouts, in place and out of place, twice with the same plans about the mid point; then what the genuine library says
 * to wrong calls (docs/libraries.md).
 */
#include "common.h"

#include <cufftXt.h>

#define SAY(call) printf("%s: %d\n", #call, (int)(call))

static void wrong(void)
{
	cufftHandle plan, empty;
	size_t bytes = 0;
	int n[] = {8}, zero[] = {0};
	void *p = device<char>(1 << 16);
	SAY(cufftPlan1d(&plan, 0, CUFFT_C2C, 1));
	SAY(cufftPlan1d(&plan, -1, CUFFT_C2C, 1));
	SAY(cufftPlan1d(&plan, 8, CUFFT_C2C, 0));
	SAY(cufftPlan1d(&plan, 8, (cufftType)7, 1));
	SAY(cufftPlan1d(NULL, 8, CUFFT_C2C, 1));
	SAY(cufftPlanMany(&plan, 0, n, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1));
	SAY(cufftPlanMany(&plan, 4, n, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1));
	SAY(cufftPlanMany(&plan, 1, NULL, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1));
	SAY(cufftPlanMany(&plan, 1, n, n, 0, 8, n, 1, 8, CUFFT_C2C, 1));
	SAY(cufftPlanMany(&plan, 1, n, zero, 1, 8, n, 1, 8, CUFFT_C2C, 1));
	TRY(cufftCreate(&empty));
	SAY(cufftGetSize(empty, &bytes));
	SAY(cufftSetWorkArea(empty, p));
	SAY(cufftExecC2C(empty, (cufftComplex *)p, (cufftComplex *)p, CUFFT_FORWARD));
	SAY(cufftMakePlan1d(empty, 8, CUFFT_C2C, 1, NULL));
	TRY(cufftPlan1d(&plan, 8, CUFFT_C2C, 1));
	SAY(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &bytes));
	SAY(cufftSetAutoAllocation(plan, 0));
	SAY(cufftExecC2C(plan, (cufftComplex *)p, (cufftComplex *)p, 0));
	SAY(cufftXtExec(plan, p, p, 5));
	SAY(cufftExecR2C(plan, (cufftReal *)p, (cufftComplex *)p));
	SAY(cufftExecZ2Z(plan, (cufftDoubleComplex *)p, (cufftDoubleComplex *)p, CUFFT_FORWARD));
	SAY(cufftGetPlanPropertyInt64(plan, (cufftProperty)9, NULL));
	TRY(cufftDestroy(plan));
	SAY(cufftDestroy(plan));
	SAY(cufftSetStream(plan, 0));
	SAY(cufftDestroy(CUFFT_PLAN_NULL));
	long long odd = 12;
	SAY(cufftXtMakePlanMany(empty, 1, &odd, NULL, 1, 12, CUDA_C_16F, NULL, 1, 12, CUDA_C_16F, 1, &bytes, CUDA_C_16F));
	SAY(cufftXtSetCallback(empty, &p, CUFFT_CB_LD_COMPLEX, &p));
	SAY(cufftXtClearCallback(empty, CUFFT_CB_LD_COMPLEX));
	SAY(cufftXtSetCallbackSharedSize(empty, CUFFT_CB_LD_COMPLEX, 16));
	SAY(cufftDestroy(empty));
}

int main()
{
	enum { PLANS = 7 };
	cufftHandle plans[PLANS];
	int n[] = {30, 37}, in[] = {32, 40}, out[] = {31, 41};
	int version;
	TRY(cufftGetVersion(&version));
	TRY(cufftPlan1d(&plans[0], 1009, CUFFT_C2C, 4));
	TRY(cufftPlan2d(&plans[1], 60, 64, CUFFT_Z2Z));
	TRY(cufftPlan3d(&plans[2], 12, 10, 14, CUFFT_C2C));
	TRY(cufftPlan1d(&plans[3], 4096, CUFFT_R2C, 8));
	TRY(cufftPlan1d(&plans[4], 4096, CUFFT_C2R, 8));
	TRY(cufftPlanMany(&plans[5], 2, n, in, 2, 2600, out, 1, 1300, CUFFT_C2C, 3));
	TRY(cufftPlan2d(&plans[6], 50, 51, CUFFT_D2Z));
	char *from = (char *)device(numbers(1 << 16, 2)), *to = device<char>(1 << 18);
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < PLANS; i++) {
			char name[32];
			CHECK(cudaMemset(to, 0, 1 << 18));
			TRY(cufftXtExec(plans[i], from, to, i == 4 ? CUFFT_INVERSE : CUFFT_FORWARD));
			snprintf(name, sizeof name, "plan %d", i);
			hash(name, to, 1 << 18);
		}
		TRY(cufftExecC2C(plans[0], (cufftComplex *)to, (cufftComplex *)to, CUFFT_INVERSE));
		hash("in place", to, 1 << 18);
		if (!half)
			phase();
	}
	wrong();
	for (int i = 0; i < PLANS; i++)
		TRY(cufftDestroy(plans[i]));
	return finish();
}
