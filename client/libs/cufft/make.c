/* Plans that are created and made in one call. */
#include "client/libs/cufft/cufft.h"

static void made(struct ckt_lib_object *object, bool real)
{
	struct ckt_cufft_plan *plan = (struct ckt_cufft_plan *)object;
	plan->real = real;
	plan->made = true;
}

void ckt_cufft_made(struct ckt_lib_object *plan, cufftType type)
{
	made(plan, type != CUFFT_C2C && type != CUFFT_Z2Z);
}

void ckt_cufft_made_of(struct ckt_lib_object *plan, cudaDataType input, cudaDataType output)
{
	made(plan, input != output);
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
