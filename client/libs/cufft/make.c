/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that are created and made in one call. */
#include "client/libs/cufft/cufft.h"

static void made(struct ckt_lib_object *object, bool real, unsigned complex_bytes)
{
	struct ckt_cufft_plan *plan = (struct ckt_cufft_plan *)object;
	plan->real = real;
	plan->complex_bytes = complex_bytes;
	plan->made = true;
}

void ckt_cufft_made(struct ckt_lib_object *plan, cufftType type)
{
	bool single = type == CUFFT_C2C || type == CUFFT_R2C || type == CUFFT_C2R;
	made(plan, type != CUFFT_C2C && type != CUFFT_Z2Z,
		single ? sizeof(cufftComplex) : sizeof(cufftDoubleComplex));
}

void ckt_cufft_made_of(struct ckt_lib_object *plan, cudaDataType input, cudaDataType output)
{
	bool single = input == CUDA_C_32F || input == CUDA_R_32F;
	bool wide = input == CUDA_C_64F || input == CUDA_R_64F;
	made(plan, input != output,
		single         ? sizeof(cufftComplex)
			: wide ? sizeof(cufftDoubleComplex)
			       : 0);
}

void ckt_cufft_shaped(struct ckt_lib_object *object, uint64_t rows, uint64_t length)
{
	struct ckt_cufft_plan *plan = (struct ckt_cufft_plan *)object;
	uint64_t numbers, bytes;
	bool fits = !__builtin_mul_overflow(rows, plan->real ? length / 2 + 1 : length, &numbers) &&
		!__builtin_mul_overflow(numbers, plan->complex_bytes, &bytes);
	plan->host_bytes = fits ? bytes : 0;
}

/* The program's variable is written only where the plan was made. */
static cufftResult created(cufftResult status, cufftHandle handle, cufftHandle *ret_handle)
{
	if (status == CUFFT_SUCCESS)
		*ret_handle = handle;
	else
		cufftDestroy(handle);
	return status;
}

/* Creates a plan, and makes it by the call; `bytes` is a variable for the size of its work area. */
#define CREATE_AND_MAKE(ret_handle, handle, call)                                              \
	({                                                                                     \
		cufftHandle handle = 0;                                                        \
		size_t bytes;                                                                  \
		cufftResult status_ = ret_handle ? cufftCreate(&handle) : CUFFT_INVALID_VALUE; \
		status_ == CUFFT_SUCCESS ? created(call, handle, ret_handle) : status_;        \
	})

CKT_LIB_EXPORT cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch)
{
	return CREATE_AND_MAKE(plan, handle, cufftMakePlan1d(handle, nx, type, batch, &bytes));
}

CKT_LIB_EXPORT cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type)
{
	return CREATE_AND_MAKE(plan, handle, cufftMakePlan2d(handle, nx, ny, type, &bytes));
}

CKT_LIB_EXPORT cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type)
{
	return CREATE_AND_MAKE(plan, handle, cufftMakePlan3d(handle, nx, ny, nz, type, &bytes));
}

CKT_LIB_EXPORT cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed,
	int istride, int idist, int *onembed, int ostride, int odist, cufftType type, int batch)
{
	return CREATE_AND_MAKE(plan, handle,
		cufftMakePlanMany(handle, rank, n, inembed, istride, idist, onembed, ostride, odist,
			type, batch, &bytes));
}
