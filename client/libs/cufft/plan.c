/* Plans: their table, creation and end, settings, and the library's version. */
#include "client/libs/cufft/cufft.h"

#include <stdlib.h>

#include "rpc/fork.h"

/* More than any program keeps; one that never destroys plans hears of it before it has taken the host's memory. */
#define PLANS_MAX (1 << 20)

static CKT_LOCK(lock);
static struct ckt_fft_plan *plans;	/* the handle less one is the index */
static size_t plan_count;

static struct ckt_lib_opened opened;

cufftResult ckt_fft_failed(CUresult result)
{
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return CUFFT_NOT_SUPPORTED;
	switch (result) {
	case CUDA_SUCCESS:
		return CUFFT_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUFFT_ALLOC_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
		return CUFFT_SETUP_FAILED;
	default:
		return CUFFT_INTERNAL_ERROR;
	}
}

cufftResult ckt_fft_enter(const struct ckt_client_table **ret_client)
{
	CUresult result = ckt_lib_open(&opened, "cufft", CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_FFT_OPEN), CKT_FFT_SHIM_MAJOR * 1000);
	*ret_client = ckt_client();
	return ckt_fft_failed(result);
}

uint32_t ckt_fft_version(void)
{
	return opened.version;
}

cufftResult ckt_fft_begin(const struct ckt_client_table **ret_client, struct ckt_call *call, uint32_t proc, size_t bytes, unsigned flags)
{
	cufftResult status = ckt_fft_enter(ret_client);
	if (status != CUFFT_SUCCESS)
		return status;
	return ckt_fft_failed((*ret_client)->begin(call, CKT_LIB_PROC(CKT_LIB_CUFFT, proc), bytes, flags));
}

/* Precondition: locked. */
static struct ckt_fft_plan *find(cufftHandle handle)
{
	return handle >= 1 && (size_t)handle <= plan_count && plans[handle - 1].id ? &plans[handle - 1] : NULL;
}

bool ckt_fft_plan_get(cufftHandle handle, struct ckt_fft_plan *ret_plan)
{
	pthread_mutex_lock(&lock);
	const struct ckt_fft_plan *plan = find(handle);
	if (plan)
		*ret_plan = *plan;
	pthread_mutex_unlock(&lock);
	return plan != NULL;
}

void ckt_fft_plan_put(cufftHandle handle, const struct ckt_fft_plan *changed)
{
	pthread_mutex_lock(&lock);
	struct ckt_fft_plan *plan = find(handle);
	if (plan && plan->id == changed->id)
		*plan = *changed;
	pthread_mutex_unlock(&lock);
}

/* Precondition: locked.  -1: there is no room. */
static ssize_t free_index(void)
{
	for (size_t i = 0; i < plan_count; i++)
		if (!plans[i].id)
			return (ssize_t)i;
	size_t more = plan_count ? 2 * plan_count : 16;
	struct ckt_fft_plan *grown = more <= PLANS_MAX ? reallocarray(plans, more, sizeof(*plans)) : NULL;
	if (!grown)
		return -1;
	for (size_t i = plan_count; i < more; i++)
		grown[i] = (struct ckt_fft_plan){0};
	size_t index = plan_count;
	plans = grown;
	plan_count = more;
	return (ssize_t)index;
}

static cufftResult keep(uint64_t id, uint64_t context, cufftHandle *ret_handle)
{
	pthread_mutex_lock(&lock);
	ssize_t index = free_index();
	if (index >= 0) {
		plans[index] = (struct ckt_fft_plan){.id = id, .context = context};
		*ret_handle = (cufftHandle)(index + 1);
	}
	pthread_mutex_unlock(&lock);
	return index < 0 ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
}

static cufftResult drop(uint64_t id)
{
	const struct ckt_client_table *client = ckt_client();
	struct ckt_fft_destroy_args args = {.plan = id};
	cufftResult status = CKT_FFT_QUEUE(FFT_DESTROY, fft_destroy, &args);
	client->object_drop(id);
	return status;
}

cufftResult cufftCreate(cufftHandle *handle)
{
	const struct ckt_client_table *client;
	struct ckt_fft_create_res res;
	if (!handle)
		return CUFFT_INVALID_VALUE;
	cufftResult status = ckt_fft_enter(&client);
	if (status != CUFFT_SUCCESS)
		return status;
	struct ckt_fft_create_args args = {.plan = client->object_make()};
	if (!args.plan)
		return CUFFT_ALLOC_FAILED;
	status = CKT_FFT_WAIT(FFT_CREATE, fft_create, &args, &res, CKT_CALL_F_NUMBERED);
	if (status != CUFFT_SUCCESS) {
		client->object_drop(args.plan);
		return status;
	}
	status = keep(args.plan, client->context(), handle);
	if (status != CUFFT_SUCCESS)
		drop(args.plan);
	return status;
}

cufftResult cufftDestroy(cufftHandle handle)
{
	uint64_t id = 0;
	if (handle == CUFFT_PLAN_NULL)
		return CUFFT_SUCCESS;
	pthread_mutex_lock(&lock);
	struct ckt_fft_plan *plan = find(handle);
	if (plan) {
		id = plan->id;
		plan->id = 0;
	}
	pthread_mutex_unlock(&lock);
	return id ? drop(id) : CUFFT_INVALID_PLAN;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
	struct ckt_fft_plan plan;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	plan.stream = stream;
	ckt_fft_plan_put(handle, &plan);
	return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int autoAllocate)
{
	struct ckt_fft_plan plan;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	struct ckt_fft_set_auto_allocation_args args = {.plan = plan.id, .allocate = autoAllocate};
	return CKT_FFT_QUEUE(FFT_SET_AUTO_ALLOCATION, fft_set_auto_allocation, &args);
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *workArea)
{
	struct ckt_fft_plan plan;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	struct ckt_fft_set_work_area_args args = {.plan = plan.id, .address = (uintptr_t)workArea};
	return CKT_FFT_QUEUE(FFT_SET_WORK_AREA, fft_set_work_area, &args);
}

/* One area a GPU, and a plan has one GPU. */
cufftResult cufftXtSetWorkArea(cufftHandle plan, void **workArea)
{
	return workArea ? cufftSetWorkArea(plan, workArea[0]) : CUFFT_INVALID_VALUE;
}

static cufftResult set_property(cufftHandle handle, cufftProperty property, bool reset, int64_t value)
{
	struct ckt_fft_plan plan;
	struct ckt_fft_set_property_res res;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	struct ckt_fft_set_property_args args = {.plan = plan.id, .property = (int32_t)property, .reset = reset, .value = value};
	return CKT_FFT_WAIT(FFT_SET_PROPERTY, fft_set_property, &args, &res, CKT_CALL_F_NUMBERED);
}

cufftResult cufftSetPlanPropertyInt64(cufftHandle plan, cufftProperty property, const long long int inputValueInt)
{
	return set_property(plan, property, false, inputValueInt);
}

cufftResult cufftResetPlanProperty(cufftHandle plan, cufftProperty property)
{
	return set_property(plan, property, true, 0);
}

cufftResult cufftGetPlanPropertyInt64(cufftHandle handle, cufftProperty property, long long int *returnPtrValue)
{
	struct ckt_fft_plan plan;
	struct ckt_fft_get_property_res res;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	if (!returnPtrValue)
		return CUFFT_INVALID_VALUE;
	struct ckt_fft_get_property_args args = {.plan = plan.id, .property = (int32_t)property};
	cufftResult status = CKT_FFT_WAIT(FFT_GET_PROPERTY, fft_get_property, &args, &res, 0);
	if (status == CUFFT_SUCCESS)
		*returnPtrValue = res.value;
	return status;
}

cufftResult cufftXtSetWorkAreaPolicy(cufftHandle handle, cufftXtWorkAreaPolicy policy, size_t *workSize)
{
	struct ckt_fft_plan plan;
	struct ckt_fft_set_policy_res res;
	if (!ckt_fft_plan_get(handle, &plan))
		return CUFFT_INVALID_PLAN;
	struct ckt_fft_set_policy_args args = {.plan = plan.id, .policy = (int32_t)policy, .given = workSize != NULL, .bytes = workSize ? *workSize : 0};
	cufftResult status = CKT_FFT_WAIT(FFT_SET_POLICY, fft_set_policy, &args, &res, CKT_CALL_F_NUMBERED);
	if (status == CUFFT_SUCCESS && workSize)
		*workSize = res.bytes;
	return status;
}

/* The library told it when it was opened. */
cufftResult cufftGetVersion(int *version)
{
	const struct ckt_client_table *client;
	if (!version)
		return CUFFT_INVALID_VALUE;
	cufftResult status = ckt_fft_enter(&client);
	if (status == CUFFT_SUCCESS)
		*version = (int)opened.version;
	return status;
}

/* A version is major * 1000 + minor * 100 + patch. */
cufftResult cufftGetProperty(libraryPropertyType type, int *value)
{
	int version;
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CUFFT_INVALID_VALUE;
	cufftResult status = cufftGetVersion(&version);
	if (status == CUFFT_SUCCESS)
		*value = type == MAJOR_VERSION ? version / 1000 : type == MINOR_VERSION ? version % 1000 / 100 : version % 100;
	return status;
}
