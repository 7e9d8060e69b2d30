/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: their table, creation and end, what is not asked of the library each time, and its
 * version.
 */
#include <stdlib.h>

#include "base/fork.h"
#include "client/libs/cufft/cufft.h"
#include "client/libs/major.h"

/*
 * More than any program keeps; one that never destroys plans hears of it before it has taken the
 * host's memory.
 */
#define PLANS_MAX (1 << 20)

static CKT_LOCK(lock);
static struct ckt_cufft_plan **plans; /* the handle less one is the index */
static size_t plan_count;

static struct ckt_lib_opened opened;

cufftResult ckt_cufft_failed(CUresult result)
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

CUresult ckt_cufft_enter(void)
{
	return ckt_lib_open(&opened, "cufft",
		CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_CUFFT_OPEN), ckt_lib_major * 1000);
}

int ckt_cufft_unsupported(const char *name, bool *once)
{
	const struct ckt_client_table *client = ckt_client();
	if (client)
		client->unsupported(name, once);
	return CUFFT_NOT_SUPPORTED;
}

/* Precondition: locked. */
static struct ckt_cufft_plan *find(cufftHandle handle)
{
	return handle >= 1 && (size_t)handle <= plan_count && plans[handle - 1]->object.id
		? plans[handle - 1]
		: NULL;
}

struct ckt_cufft_plan *ckt_cufft_plan_of(cufftHandle handle)
{
	pthread_mutex_lock(&lock);
	struct ckt_cufft_plan *plan = find(handle);
	pthread_mutex_unlock(&lock);
	return plan;
}

struct ckt_lib_object *ckt_cufft_take_plan(cufftHandle handle)
{
	struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	return plan ? &plan->object : NULL;
}

/* Precondition: locked.  NULL: there is no room. */
static struct ckt_cufft_plan *free_plan(cufftHandle *ret_handle)
{
	for (size_t i = 0; i < plan_count; i++) {
		if (!plans[i]->object.id) {
			*ret_handle = (cufftHandle)(i + 1);
			return plans[i];
		}
	}
	/* Doubled where the count is a power of two. */
	if (!(plan_count & (plan_count - 1))) {
		size_t more = plan_count ? 2 * plan_count : 1;
		struct ckt_cufft_plan **grown = more <= PLANS_MAX
			? reallocarray(plans, more, sizeof(struct ckt_cufft_plan *))
			: NULL;
		if (!grown)
			return NULL;
		plans = grown;
	}
	struct ckt_cufft_plan *plan = calloc(1, sizeof(*plan));
	if (!plan)
		return NULL;
	plans[plan_count++] = plan;
	*ret_handle = (cufftHandle)plan_count;
	return plan;
}

static cufftResult keep(uint64_t id, uint64_t context, cufftHandle *ret_handle)
{
	pthread_mutex_lock(&lock);
	struct ckt_cufft_plan *plan = free_plan(ret_handle);
	if (plan)
		*plan = (struct ckt_cufft_plan){.object = {.magic = CKT_LIB_OBJECT_MAGIC,
							.lib = CKT_LIB_CUFFT,
							.id = id,
							.context = context}};
	pthread_mutex_unlock(&lock);
	return plan ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED;
}

static cufftResult drop(uint64_t id)
{
	const struct ckt_client_table *client = ckt_client();
	struct ckt_call call;
	const struct ckt_cufftDestroy_args args = {.plan = id};
	CUresult result = ckt_cufft_enter();
	if (!result)
		result = client->begin(&call,
			CKT_LIB_PROC(CKT_LIB_CUFFT, CKT_CUFFT_PROC_CUFFTDESTROY),
			ckt_cufftDestroy_args_size(&args), CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_cufftDestroy_args_put(call.p, &args);
		result = client->queue(&call);
	}
	client->object_drop(id);
	return ckt_cufft_failed(result);
}

CKT_LIB_EXPORT cufftResult cufftCreate(cufftHandle *handle)
{
	struct ckt_cufftCreate_res res;
	if (!handle)
		return CUFFT_INVALID_VALUE;
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	const struct ckt_client_table *client = ckt_client();
	struct ckt_cufftCreate_args args = {.plan = client->object_make()};
	if (!args.plan)
		return CUFFT_ALLOC_FAILED;
	cufftResult status = CKT_CUFFT_WAIT(CUFFTCREATE, cufftCreate, &args, &res);
	if (status != CUFFT_SUCCESS) {
		client->object_drop(args.plan);
		return status;
	}
	status = keep(args.plan, client->context(), handle);
	if (status != CUFFT_SUCCESS)
		drop(args.plan);
	return status;
}

CKT_LIB_EXPORT cufftResult cufftDestroy(cufftHandle handle)
{
	uint64_t id = 0;
	struct ckt_cufft_client_gpus *gpus = NULL;
	if (handle == CUFFT_PLAN_NULL)
		return CUFFT_SUCCESS;
	pthread_mutex_lock(&lock);
	struct ckt_cufft_plan *plan = find(handle);
	if (plan) {
		id = plan->object.id;
		gpus = plan->gpus;
		plan->object.id = 0;
		plan->gpus = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(gpus);
	return id ? drop(id) : CUFFT_INVALID_PLAN;
}

CKT_LIB_EXPORT cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
	struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->stream = stream;
	return CUFFT_SUCCESS;
}

/* One area a GPU. */
CKT_LIB_EXPORT cufftResult cufftXtSetWorkArea(cufftHandle handle, void **workArea)
{
	struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!workArea)
		return CUFFT_INVALID_VALUE;
	return plan->gpus ? ckt_cufft_set_work_areas(plan, workArea)
			  : cufftSetWorkArea(handle, workArea[0]);
}

/* Where the size goes may be NULL. */
CKT_LIB_EXPORT cufftResult cufftXtSetWorkAreaPolicy(
	cufftHandle handle, cufftXtWorkAreaPolicy policy, size_t *workSize)
{
	struct ckt_cufftXtSetWorkAreaPolicy_res res;
	const struct ckt_cufft_plan *plan = ckt_cufft_plan_of(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	CUresult result = ckt_cufft_enter();
	if (result)
		return ckt_cufft_failed(result);
	const struct ckt_cufftXtSetWorkAreaPolicy_args args = {.plan = plan->object.id,
		.policy = (int32_t)policy,
		.given = workSize != NULL,
		.bytes = workSize ? *workSize : 0};
	cufftResult status =
		CKT_CUFFT_WAIT(CUFFTXTSETWORKAREAPOLICY, cufftXtSetWorkAreaPolicy, &args, &res);
	if (status == CUFFT_SUCCESS && workSize)
		*workSize = res.bytes;
	return status;
}

/* The library told it when it was opened. */
CKT_LIB_EXPORT cufftResult cufftGetVersion(int *version)
{
	if (!version)
		return CUFFT_INVALID_VALUE;
	CUresult result = ckt_cufft_enter();
	if (!result)
		*version = (int)opened.version;
	return ckt_cufft_failed(result);
}

/* A version is major * 1000 + minor * 100 + patch. */
CKT_LIB_EXPORT cufftResult cufftGetProperty(libraryPropertyType type, int *value)
{
	int version;
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CUFFT_INVALID_VALUE;
	cufftResult status = cufftGetVersion(&version);
	if (status == CUFFT_SUCCESS)
		*value = type == MAJOR_VERSION  ? version / 1000
			: type == MINOR_VERSION ? version % 1000 / 100
						: version % 100;
	return status;
}
