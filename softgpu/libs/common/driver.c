/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the driver beneath the soft GPU's libraries once, by its name. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/common/code.h"
#include "softgpu/libs/common/driver.h"

static struct ckt_softlib_driver driver;
static bool driver_found;
static void *driver_library;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t offset;
} driver_names[] = {
#define NAME(name, field)                                        \
	{                                                        \
		name, offsetof(struct ckt_softlib_driver, field) \
	}
	NAME("cuInit", init),
	NAME("cuCtxGetCurrent", ctx_get_current),
	NAME("cuCtxSetCurrent", ctx_set_current),
	NAME("cuCtxGetDevice", ctx_get_device),
	NAME("cuDevicePrimaryCtxRetain", primary_retain),
	NAME("cuStreamSynchronize", stream_synchronize),
	NAME("cuStreamGetCaptureInfo_v2", stream_capture_info),
	NAME("cuLaunchHostFunc", launch_host_func),
	NAME("cuMemAlloc_v2", mem_alloc),
	NAME("cuMemFree_v2", mem_free),
	NAME("cuMemcpy2DUnaligned_v2", memcpy_2d),
	NAME("cuMemcpy2DAsync_v2", memcpy_2d_async),
	NAME("cuPointerGetAttribute", pointer_get_attribute),
	NAME("cuUserObjectCreate", user_object_create),
	NAME("cuUserObjectRelease", user_object_release),
	NAME("cuGraphRetainUserObject", graph_retain_user_object),
	NAME("cuEventCreate", event_create),
	NAME("cuEventRecord", event_record),
	NAME("cuEventDestroy_v2", event_destroy),
	NAME("cuStreamWaitEvent", stream_wait_event),
#undef NAME
};

/*
 * A worker has its driver and the pass-through library.  Only the pass-through library's symbols
 * are global, and it is preferred.  Otherwise, the library of that name is used.
 */
static void find_driver(void)
{
	void *library = RTLD_DEFAULT;
	if (!dlsym(RTLD_DEFAULT, "cuLaunchHostFunc")) {
		library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			fprintf(stderr, "cricket: soft GPU libraries: no driver: %s\n", dlerror());
			return;
		}
	}
	for (size_t i = 0; i < sizeof driver_names / sizeof *driver_names; i++) {
		void *function = dlsym(library, driver_names[i].name);
		if (!function) {
			fprintf(stderr, "cricket: soft GPU libraries: libcuda.so.1 has no %s\n",
				driver_names[i].name);
			return;
		}
		memcpy((char *)&driver + driver_names[i].offset, &function, sizeof function);
	}
	driver_library = library;
	driver_found = true;
}

void *ckt_softlib_symbol(const char *name)
{
	return ckt_softlib_driver() ? dlsym(driver_library, name) : NULL;
}

const struct ckt_softlib_driver *ckt_softlib_driver(void)
{
	pthread_once(&driver_once, find_driver);
	return driver_found ? &driver : NULL;
}

CUresult ckt_softlib_context(CUcontext *ret_context)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	if (!d)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUcontext context = NULL;
	CUresult result = d->ctx_get_current(&context);
	if (result == CUDA_ERROR_NOT_INITIALIZED) {
		result = d->init(0);
		context = NULL;
	}
	if (result == CUDA_SUCCESS && !context) {
		result = d->primary_retain(&context, 0);
		if (result == CUDA_SUCCESS)
			result = d->ctx_set_current(context);
	}
	if (result != CUDA_SUCCESS)
		return result;
	static atomic_bool begun;
	if (!atomic_exchange(&begun, true))
		ckt_softlib_code_begin();
	*ret_context = context;
	return CUDA_SUCCESS;
}

struct work {
	void (*run)(const void *data);
	_Alignas(max_align_t) char data[];
};

static void CUDA_CB run_once(void *p)
{
	struct work *work = p;
	work->run(work->data);
	free(work);
}

/* A graph runs its node as often as the graph runs; the user object frees the work. */
static void CUDA_CB run_again(void *p)
{
	struct work *work = p;
	work->run(work->data);
}

static void CUDA_CB free_work(void *p)
{
	free(p);
}

/* Gives the work to the graph, which frees it.  The work is freed if this fails, too. */
static CUresult keep_with_graph(
	const struct ckt_softlib_driver *d, CUgraph graph, struct work *work)
{
	CUuserObject object;
	CUresult result = d->user_object_create(
		&object, work, free_work, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	if (result != CUDA_SUCCESS) {
		free(work);
		return result;
	}
	result = d->graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	if (result != CUDA_SUCCESS)
		d->user_object_release(object, 1);
	return result;
}

CUresult ckt_softlib_enqueue(
	CUstream stream, void (*run)(const void *data), const void *data, size_t size)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	if (!d)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUgraph graph = NULL;
	CUresult result = d->stream_capture_info(stream, &status, NULL, &graph, NULL, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	ckt_softlib_code_use(run);
	struct work *work = malloc(sizeof *work + size);
	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->run = run;
	memcpy(work->data, data, size);
	if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		result = keep_with_graph(d, graph, work);
		return result == CUDA_SUCCESS ? d->launch_host_func(stream, run_again, work)
					      : result;
	}
	result = d->launch_host_func(stream, run_once, work);
	if (result != CUDA_SUCCESS)
		free(work);
	return result;
}

CUresult ckt_softlib_wait(CUstream stream)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	return d ? d->stream_synchronize(stream) : CUDA_ERROR_NOT_INITIALIZED;
}

void ckt_softlib_unsupported(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *said[512];
	static size_t count;
	bool known = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && !known; i++)
		known = !strcmp(said[i], name);
	if (!known && count < sizeof said / sizeof *said)
		said[count++] = name;
	pthread_mutex_unlock(&lock);
	if (!known)
		fprintf(stderr, "cricket: soft GPU: %s is not supported\n", name);
}

static atomic_uint failures;

void ckt_softlib_fail(const char *name, const char *cause)
{
	fprintf(stderr, "cricket: soft GPU: %s: %s\n", name, cause);
	atomic_fetch_add(&failures, 1);
}

bool ckt_softlib_failed(void)
{
	unsigned now = atomic_load(&failures);
	while (now && !atomic_compare_exchange_weak(&failures, &now, now - 1))
		;
	return now > 0;
}
