/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's beginning: the driver, the devices, and what a thread has current.
 *
 * The CUDA runtime is written over the documented driver API.  Every exported function runs on any
 * thread.  It records its own failure as the thread's last error (ckt_rt_return in error.h) and
 * needs, where it reaches for a device, a current context first (ckt_rt_enter): the one that the
 * program made current through the driver API, else the primary context of the thread's device.
 * Nothing happens before the first such call.
 *
 * Errors have the driver's numbers throughout: CUDA keeps both enumerations equal, so a CUresult is
 * a cudaError_t.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/bounds.h"

enum {
	/* launches nested in the arguments of a launch; deeper ones use the heap */
	CKT_RT_CALLS_INLINE = 3,
};

/* What <<<>>> leaves for the kernel's host stub. */
struct ckt_rt_call {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

/* One a thread, in static TLS: keep it small. */
struct ckt_rt_thread {
	uint32_t epoch; /* ckt_rt_epoch when the fields below were set; 0: never */
	int device;
	CUcontext context; /* current when last looked */
	cudaError_t last_error;
	bool primary; /* context is the device's primary one */
	bool chosen;  /* cudaSetDevice named the device */
	uint8_t calls_inline;
	struct ckt_rt_call_more *more; /* owned; NULL but while deeply nested */
	struct ckt_rt_call calls[CKT_RT_CALLS_INLINE];
};

extern _Thread_local struct ckt_rt_thread ckt_rt_thread __attribute__((tls_model("initial-exec")));
/* Grows whenever a thread's cached context may be wrong: reset of a device, fork. Never 0. */
extern _Atomic uint32_t ckt_rt_epoch;

struct ckt_rt_device {
	CUdevice handle;
	pthread_mutex_t lock;
	_Atomic bool retained; /* context below is ours to use */
	/*
	 * reset after a kernel failed: a driver gives this process no second context (seen on an
	 * H200)
	 */
	_Atomic bool lost;
	CUcontext context;
	struct cudaDeviceProp *_Atomic properties; /* owned, for ever; NULL until asked for */
};

extern struct ckt_rt_device ckt_rt_devices[CKT_DEVICES_MAX];
extern int ckt_rt_device_count;

/* All return without recording. */
cudaError_t ckt_rt_driver(void); /* cuInit, the list of devices; 0, or always the same error */
/* the error of ckt_rt_driver, if it was called; never initialises */
cudaError_t ckt_rt_driver_error(void);
cudaError_t ckt_rt_enter_slow(void);
cudaError_t ckt_rt_primary(int device, CUcontext *ret_context); /* retains it at first use */
cudaError_t ckt_rt_check_device(int device);
void ckt_rt_log_init(void);
/* Logs the name once; always cudaErrorNotSupported, recorded. */
int ckt_rt_unsupported(const char *name, bool *once);

/* Makes sure that this thread has a current context and knows its device. */
static inline cudaError_t ckt_rt_enter(void)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	CUcontext current;
	if (__builtin_expect(
		    thread->epoch == atomic_load_explicit(&ckt_rt_epoch, memory_order_relaxed),
		    1) &&
		__builtin_expect(
			cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == thread->context, 1))
		return cudaSuccess;
	return ckt_rt_enter_slow();
}
