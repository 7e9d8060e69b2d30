/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the soft GPU's libraries share: the driver beneath them, and work on its streams.
 *
 * The libraries know the soft GPU only as libcuda.so.1, by the driver's documented calls, since in
 * a worker a pass-through library stands between.  One thing they do know: a device address of the
 * soft GPU is the address itself, so work is a function that runs on the CPU. All may be called
 * from any thread.
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
 * The process's libcuda.so.1; NULL if there is none, or if it lacks a function, which is logged
 * once.  Lives as long as the process.
 */
const struct ckt_softlib_driver *ckt_softlib_driver(void);

/* One of its functions that not every driver has. */
void *ckt_softlib_symbol(const char *name);
/*
 * The calling thread's context; without one it becomes the first device's primary context, as in
 * the CUDA runtime.
 */
CUresult ckt_softlib_context(CUcontext *ret_context);

/*
 * Runs `run` with a copy of size bytes of data, in the stream's order.  A stream that captures gets
 * a node instead, with a copy that lives as long as the graphs that hold the node.  `run` must not
 * call the driver.
 */
CUresult ckt_softlib_enqueue(
	CUstream stream, void (*run)(const void *data), const void *data, size_t size);

/* Waits until all work of the stream has run; an error in a capture. */
CUresult ckt_softlib_wait(CUstream stream);

/*
 * Logs once for each name that something is not supported.  Names are kept for ever: string
 * constants.
 */
void ckt_softlib_unsupported(const char *name);

/*
 * For work that is already running: an error that no status can report any more.  It is logged, and
 * the next calls return it.
 */
void ckt_softlib_fail(const char *name, const char *cause);
/* Whether such an error was reported, once for each. */
bool ckt_softlib_failed(void);
