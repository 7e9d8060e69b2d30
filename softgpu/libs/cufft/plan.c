/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the soft GPU's cuFFT: their table, their work areas, and their work on streams. */
#include "softgpu/libs/cufft/plan.h"

#include <pthread.h>
#include <stdlib.h>

#include "softgpu/libs/common/driver.h"

/*
 * The same limit as the client's (docs/libraries.md).  A program that never destroys its plans gets
 * an error there.
 */
#define MAX_PLANS (1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_plan **plans; /* index: the handle minus 1 */
static size_t plan_count;

void ckt_soft_cufft_shape_hold(struct ckt_shape *shape)
{
	atomic_fetch_add(&shape->holders, 1);
}

void ckt_soft_cufft_shape_release(struct ckt_shape *shape)
{
	if (!shape || atomic_fetch_sub(&shape->holders, 1) != 1)
		return;
	ckt_soft_cufft_layout_fini(&shape->layout);
	free(shape);
}

/* Finds a free index; -1 if there is none.  Precondition: locked. */
static ssize_t free_index(void)
{
	for (size_t i = 0; i < plan_count; i++)
		if (!plans[i])
			return (ssize_t)i;
	size_t more = plan_count ? 2 * plan_count : 16;
	struct ckt_plan **grown =
		more <= MAX_PLANS ? reallocarray(plans, more, sizeof(*plans)) : NULL;
	if (!grown)
		return -1;
	plans = grown;
	for (size_t i = plan_count; i < more; i++)
		plans[i] = NULL;
	size_t index = plan_count;
	plan_count = more;
	return (ssize_t)index;
}

cufftResult ckt_soft_cufft_plan_create(cufftHandle *ret_handle)
{
	CUcontext context;
	if (!ret_handle)
		return CUFFT_INVALID_VALUE;
	if (ckt_softlib_context(&context) != CUDA_SUCCESS)
		return CUFFT_SETUP_FAILED;
	struct ckt_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return CUFFT_ALLOC_FAILED;
	plan->auto_allocate = true;
	pthread_mutex_lock(&lock);
	ssize_t index = free_index();
	if (index >= 0) {
		plans[index] = plan;
		*ret_handle = (cufftHandle)(index + 1);
	}
	pthread_mutex_unlock(&lock);
	if (index < 0)
		free(plan);
	return index < 0 ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
}

struct ckt_plan *ckt_soft_cufft_plan_lock(cufftHandle handle)
{
	pthread_mutex_lock(&lock);
	if (handle >= 1 && (size_t)handle <= plan_count && plans[handle - 1])
		return plans[handle - 1];
	pthread_mutex_unlock(&lock);
	return NULL;
}

void ckt_soft_cufft_plan_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

cufftResult ckt_soft_cufft_plan_destroy(cufftHandle handle)
{
	struct ckt_plan *plan = ckt_soft_cufft_plan_lock(handle);
	if (!plan)
		return CUFFT_INVALID_PLAN;
	plans[handle - 1] = NULL;
	ckt_soft_cufft_plan_unlock();
	/* The driver frees this memory after the work that uses it. */
	bool freed =
		!plan->own_work || ckt_softlib_driver()->mem_free(plan->own_work) == CUDA_SUCCESS;
	ckt_soft_cufft_shape_release(plan->shape);
	free(plan);
	return freed ? CUFFT_SUCCESS : CUFFT_INTERNAL_ERROR;
}

static cufftResult make_shape(struct ckt_plan *plan, struct ckt_layout *layout)
{
	CUdeviceptr work = 0;
	struct ckt_shape *shape = malloc(sizeof *shape);
	if (!shape)
		return CUFFT_ALLOC_FAILED;
	atomic_init(&shape->holders, 1);
	shape->layout = *layout;
	/*
	 * Allocate device memory first.  If the device cannot hold the shape, its transforms must
	 * not take as much of the host's memory.
	 */
	bool allocated = !plan->auto_allocate || plan->work ||
		ckt_softlib_driver()->mem_alloc(&work, ckt_soft_cufft_layout_work_bytes(layout)) ==
			CUDA_SUCCESS;
	if (allocated && ckt_soft_cufft_layout_make(&shape->layout) == CUFFT_SUCCESS) {
		plan->shape = shape;
		plan->own_work = work;
		plan->work = work ? work : plan->work;
		return CUFFT_SUCCESS;
	}
	if (work)
		ckt_softlib_driver()->mem_free(work);
	free(shape);
	/* As the genuine library has it of the device's memory. */
	return allocated ? CUFFT_ALLOC_FAILED : CUFFT_INTERNAL_ERROR;
}

cufftResult ckt_soft_cufft_plan_make(
	struct ckt_plan *plan, const struct ckt_layout_request *request, size_t *ret_work_bytes)
{
	struct ckt_layout layout;
	CUcontext context;
	if (plan->shape)
		return CUFFT_INVALID_PLAN;
	cufftResult result = ckt_soft_cufft_layout_init(&layout, request);
	/* With several GPUs, embeds are not supported. */
	if (result == CUFFT_SUCCESS && plan->gpu_count && !layout.basic)
		result = CUFFT_NOT_SUPPORTED;
	if (result == CUFFT_SUCCESS && ckt_softlib_context(&context) != CUDA_SUCCESS)
		result = CUFFT_SETUP_FAILED;
	if (result == CUFFT_SUCCESS)
		result = make_shape(plan, &layout);
	if (result == CUFFT_SUCCESS) {
		*ret_work_bytes = ckt_soft_cufft_layout_work_bytes(&layout);
		ckt_plan_spread_size(plan, ret_work_bytes);
	}
	return result;
}

void ckt_plan_spread_size(const struct ckt_plan *plan, size_t *sizes)
{
	for (unsigned i = 1; i < plan->gpu_count; i++)
		sizes[i] = sizes[0];
}

struct job {
	struct ckt_shape *shape;
	void *in, *out, *work;
	bool inverse, once;
};

static void run_job(const void *data)
{
	const struct job *job = data;
	ckt_soft_cufft_layout_run(&job->shape->layout, job->in, job->out, job->inverse, job->work);
	if (job->once)
		ckt_soft_cufft_shape_release(job->shape);
}

bool ckt_plan_is_memory(const void *first, size_t bytes)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	unsigned int type;
	CUdeviceptr address = (CUdeviceptr)first;
	return d->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
		CUDA_SUCCESS &&
		d->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			address + bytes - 1) == CUDA_SUCCESS;
}

static void CUDA_CB release_with_graph(void *shape)
{
	ckt_soft_cufft_shape_release(shape);
}

/* A captured execution runs as often as its graph, so the graph holds the shape. */
static bool hold_with_graph(struct ckt_shape *shape, CUgraph graph)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUuserObject object;
	if (d->user_object_create(&object, shape, release_with_graph, 1,
		    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS)
		return false;
	ckt_soft_cufft_shape_hold(shape);
	if (d->graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) ==
		CUDA_SUCCESS)
		return true;
	d->user_object_release(object, 1);
	return false;
}

cufftResult ckt_soft_cufft_plan_run(struct ckt_plan *plan, void *in, void *out, bool inverse)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	struct job job = {.shape = plan->shape,
		.in = in,
		.out = out,
		.work = (void *)plan->work,
		.inverse = inverse};
	const struct ckt_layout *layout = &job.shape->layout;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUgraph graph = NULL;
	if (!in || !out)
		return CUFFT_INVALID_VALUE;
	if (!plan->work)
		return CUFFT_NO_WORKSPACE;
	if (!ckt_plan_is_memory(in, ckt_soft_cufft_layout_extent(layout, true, in == out)) ||
		!ckt_plan_is_memory(out, ckt_soft_cufft_layout_extent(layout, false, in == out)) ||
		!ckt_plan_is_memory(job.work, ckt_soft_cufft_layout_work_bytes(layout)))
		return CUFFT_EXEC_FAILED;
	if (d->stream_capture_info(plan->stream, &status, NULL, &graph, NULL, NULL) != CUDA_SUCCESS)
		return CUFFT_EXEC_FAILED;
	job.once = status != CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (job.once)
		ckt_soft_cufft_shape_hold(job.shape);
	else if (!hold_with_graph(job.shape, graph))
		return CUFFT_EXEC_FAILED;
	if (ckt_softlib_enqueue(plan->stream, run_job, &job, sizeof job) == CUDA_SUCCESS)
		return CUFFT_SUCCESS;
	if (job.once)
		ckt_soft_cufft_shape_release(job.shape);
	return CUFFT_EXEC_FAILED;
}
