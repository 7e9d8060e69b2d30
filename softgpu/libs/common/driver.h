/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the soft GPU's libraries share: access to the driver, and work on its streams.
 *
 * The libraries call the soft GPU only as libcuda.so.1, through the driver's documented functions,
 * because a worker has a pass-through library in between.  They rely on one more fact: a device
 * address of the soft GPU is a CPU address.  So work is a function that runs on the CPU.
 *
 * Any thread may call these functions.
 */
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stddef.h>

struct ckt_softlib_driver {
	PFN_cuInit_v2000 init;
	PFN_cuCtxGetCurrent_v4000 ctx_get_current;
	PFN_cuCtxSetCurrent_v4000 ctx_set_current;
	PFN_cuCtxGetDevice_v2000 ctx_get_device;
	PFN_cuDevicePrimaryCtxRetain_v7000 primary_retain;
	PFN_cuStreamSynchronize_v2000 stream_synchronize;
	PFN_cuStreamGetCaptureInfo_v11030 stream_capture_info;
	PFN_cuLaunchHostFunc_v10000 launch_host_func;
	PFN_cuMemAlloc_v3020 mem_alloc;
	PFN_cuMemFree_v3020 mem_free;
	PFN_cuMemcpy2DUnaligned_v3020 memcpy_2d;
	PFN_cuMemcpy2DAsync_v3020 memcpy_2d_async;
	PFN_cuPointerGetAttribute_v4000 pointer_get_attribute;
	PFN_cuUserObjectCreate_v11030 user_object_create;
	PFN_cuUserObjectRelease_v11030 user_object_release;
	PFN_cuGraphRetainUserObject_v11030 graph_retain_user_object;
	PFN_cuEventCreate_v2000 event_create;
	PFN_cuEventRecord_v2000 event_record;
	PFN_cuEventDestroy_v4000 event_destroy;
	PFN_cuStreamWaitEvent_v3020 stream_wait_event;
};

/*
 * The process's libcuda.so.1.  NULL if there is none, or if it lacks a function, which is logged
 * once.  It stays loaded as long as the process lives.
 */
const struct ckt_softlib_driver *ckt_softlib_driver(void);

/* Finds a function of the driver; NULL if this driver lacks it. */
void *ckt_softlib_symbol(const char *name);
/*
 * The calling thread's context.  If there is none, the first device's primary context becomes
 * current, as in the CUDA runtime.
 */
CUresult ckt_softlib_context(CUcontext *ret_context);

/*
 * Runs `run` with a copy of size bytes of data, in stream order.  A stream that captures gets a
 * node with a copy instead, which lives as long as the graphs that contain the node. `run` must not
 * call the driver.
 */
CUresult ckt_softlib_enqueue(
	CUstream stream, void (*run)(const void *data), const void *data, size_t size);

/* Waits until all work of the stream is done; an error during a capture. */
CUresult ckt_softlib_wait(CUstream stream);

/* Logs once for each name that the function is not supported.  name: a string constant. */
void ckt_softlib_unsupported(const char *name);

/*
 * Reports an error of work that already runs, when no call can return it.  The error is logged, and
 * a later call returns it.
 */
void ckt_softlib_fail(const char *name, const char *cause);
/* Whether a later call must return such an error.  Each error is returned once. */
bool ckt_softlib_failed(void);
