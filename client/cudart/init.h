/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's base: the driver, the devices, and each thread's state.
 *
 * The CUDA runtime is written over the documented driver API.  Every exported function runs on any
 * thread.  A function that fails records the error as the thread's last error (ckt_rt_return in
 * error.h).  A function that needs a device first needs a current context (ckt_rt_enter).  This
 * context is the one that the program made current through the driver API.  If there is none, it is
 * the primary context of the thread's device.  Nothing happens before the first such call.
 *
 * Errors have the driver's numbers everywhere.  CUDA keeps both enumerations equal, so a CUresult
 * is a cudaError_t.
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
	/* launches nested in the arguments of a launch; deeper nesting uses the heap */
	CKT_RT_CALLS_INLINE = 3,
};

/* The configuration that <<<>>> passes to the kernel's host stub. */
struct ckt_rt_call {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

/* One for each thread, in static TLS, so it must stay small. */
struct ckt_rt_thread {
	uint32_t epoch; /* ckt_rt_epoch when the fields below were set; 0: never */
	int device;
	CUcontext context; /* the current context at the last check */
	cudaError_t last_error;
	bool primary; /* context is the device's primary context */
	bool chosen;  /* cudaSetDevice chose the device */
	uint8_t calls_inline;
	struct ckt_rt_call_more *more; /* owned; NULL unless launches are deeply nested */
	struct ckt_rt_call calls[CKT_RT_CALLS_INLINE];
};

extern _Thread_local struct ckt_rt_thread ckt_rt_thread __attribute__((tls_model("initial-exec")));
/*
 * Grows whenever a thread's cached context may be wrong: after a reset of a device or a fork.
 * Never 0.
 */
extern _Atomic uint32_t ckt_rt_epoch;

struct ckt_rt_device {
	CUdevice handle;
	pthread_mutex_t lock;
	_Atomic bool retained; /* the context below is retained */
	/*
	 * reset after a kernel failed: the driver gives this process no second context (seen on an
	 * H200)
	 */
	_Atomic bool lost;
	CUcontext context;
	/* owned until the process ends; NULL before the first query */
	struct cudaDeviceProp *_Atomic properties;
};

extern struct ckt_rt_device ckt_rt_devices[CKT_DEVICES_MAX];
extern int ckt_rt_device_count;

/* These functions do not record their errors. */
cudaError_t ckt_rt_driver(void); /* cuInit and the list of devices; 0, or always the same error */
/* the error of ckt_rt_driver if it was called; never initialises the driver */
cudaError_t ckt_rt_driver_error(void);
cudaError_t ckt_rt_enter_slow(void);
cudaError_t ckt_rt_primary(int device, CUcontext *ret_context); /* retains it at first use */
cudaError_t ckt_rt_check_device(int device);
void ckt_rt_log_init(void);
/* Logs the name once.  Always records and returns cudaErrorNotSupported. */
int ckt_rt_unsupported(const char *name, bool *once);

/* Ensures that this thread has a current context, and finds the context's device. */
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
