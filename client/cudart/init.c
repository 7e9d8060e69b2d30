/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialises the driver, retains primary contexts, and keeps each thread's state.  Loading the
 * library does nothing.  The first call that needs the driver runs cuInit.  The first call that
 * needs a device retains its primary context.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cudart/init.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/refusal_log.h"
#include "client/cudart/device.h"
#include "client/cudart/error.h"

_Thread_local struct ckt_rt_thread ckt_rt_thread __attribute__((tls_model("initial-exec")));
_Atomic uint32_t ckt_rt_epoch = 1;
struct ckt_rt_device ckt_rt_devices[CKT_DEVICES_MAX];
int ckt_rt_device_count;

enum { INIT_NONE = 0, INIT_BEGUN, INIT_DONE, INIT_FAILED };
static _Atomic int init_state;
static cudaError_t init_error;
static _Atomic bool forked;
static CKT_LOCK(init_lock);

/*
 * A child has no CUDA if its parent had initialised CUDA or another thread was about to, as with
 * NVIDIA's runtime.  Every call in such a child returns cudaErrorInitializationError.
 */
static void after_fork_in_child(void)
{
	ckt_fork_renew();
	for (int i = 0; i < ckt_rt_device_count; i++)
		pthread_mutex_init(&ckt_rt_devices[i].lock, NULL);
	int state = atomic_load(&init_state);
	if (state == INIT_NONE || state == INIT_FAILED)
		return;
	atomic_store(&forked, true);
	atomic_fetch_add(&ckt_rt_epoch, 1);
	ckt_rt_thread.context = NULL;
	ckt_rt_thread.epoch = 0;
}

/* Runs before any of our locks can be held.  Loading the library does nothing else. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

void ckt_rt_log_init(void)
{
	const char *setting = getenv("CRICKET_LOG");
	if (!setting)
		return;
	char level_name[16];
	const char *file = strchr(setting, ':');
	size_t length = file ? (size_t)(file - setting) : strlen(setting);
	enum ckt_log_level level;
	if (length >= sizeof level_name)
		return;
	memcpy(level_name, setting, length);
	level_name[length] = '\0';
	if (ckt_log_level_parse(level_name, &level) == 0)
		ckt_log_init("libcudart", level, file ? file + 1 : NULL);
}

static cudaError_t initialise(void)
{
	int version = 0;
	int count = 0;
	ckt_rt_log_init();
	CUresult result = cuInit(0);
	if (result)
		return (cudaError_t)result;
	result = cuDriverGetVersion(&version);
	if (result)
		return (cudaError_t)result;
	/*
	 * Within a major version every driver supports every runtime, so the minor number is not
	 * checked.
	 */
	if (version / 1000 < CUDART_VERSION / 1000) {
		ckt_log_user("the driver supports CUDA %d.%d, but this program needs %d.0",
			version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
		return cudaErrorInsufficientDriver;
	}
	result = cuDeviceGetCount(&count);
	if (result)
		return (cudaError_t)result;
	if (count <= 0)
		return cudaErrorNoDevice;
	if (count > CKT_DEVICES_MAX)
		count = CKT_DEVICES_MAX;
	for (int i = 0; i < count; i++) {
		result = cuDeviceGet(&ckt_rt_devices[i].handle, i);
		if (result)
			return (cudaError_t)result;
		pthread_mutex_init(&ckt_rt_devices[i].lock, NULL);
	}
	ckt_rt_device_count = count;
	return cudaSuccess;
}

cudaError_t ckt_rt_driver(void)
{
	if (CKT_RT_UNLIKELY(atomic_load_explicit(&forked, memory_order_relaxed)))
		return cudaErrorInitializationError;
	int state = atomic_load_explicit(&init_state, memory_order_acquire);
	if (__builtin_expect(state == INIT_DONE, 1))
		return cudaSuccess;
	if (state == INIT_FAILED)
		return init_error;
	pthread_mutex_lock(&init_lock);
	if (atomic_load(&init_state) == INIT_NONE) {
		atomic_store(&init_state, INIT_BEGUN);
		init_error = initialise();
		ckt_debug(
			"driver initialised: %d, %d devices", (int)init_error, ckt_rt_device_count);
		atomic_store_explicit(
			&init_state, init_error ? INIT_FAILED : INIT_DONE, memory_order_release);
	}
	pthread_mutex_unlock(&init_lock);
	return init_error;
}

cudaError_t ckt_rt_driver_error(void)
{
	if (atomic_load_explicit(&forked, memory_order_relaxed))
		return cudaErrorInitializationError;
	return atomic_load_explicit(&init_state, memory_order_acquire) == INIT_FAILED ? init_error
										      : cudaSuccess;
}

cudaError_t ckt_rt_check_device(int device)
{
	cudaError_t error = ckt_rt_driver();
	if (error)
		return error;
	return device >= 0 && device < ckt_rt_device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t ckt_rt_primary(int device, CUcontext *ret_context)
{
	struct ckt_rt_device *d = &ckt_rt_devices[device];
	CUresult result = CUDA_SUCCESS;
	if (!atomic_load_explicit(&d->retained, memory_order_acquire)) {
		pthread_mutex_lock(&d->lock);
		if (atomic_load(&d->lost)) {
			result = (CUresult)cudaErrorDevicesUnavailable;
		} else if (!atomic_load(&d->retained)) {
			result = cuDevicePrimaryCtxRetain(&d->context, d->handle);
			if (result == CUDA_SUCCESS)
				atomic_store_explicit(&d->retained, true, memory_order_release);
		}
		pthread_mutex_unlock(&d->lock);
	}
	if (result == CUDA_SUCCESS)
		*ret_context = d->context;
	return (cudaError_t)result;
}

/* Records that `context` of `device` is current. */
static void remember(CUcontext context, int device, bool primary, uint32_t epoch)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	thread->context = context;
	thread->device = device;
	thread->primary = primary;
	thread->epoch = epoch;
}

/*
 * Handles a context that the program made current through the driver API, or this library before a
 * reset. cudaErrorDeviceUninitialized: the context is dead.
 */
static cudaError_t adopt(CUcontext current, uint32_t epoch)
{
	CUdevice handle;
	for (int i = 0; i < ckt_rt_device_count; i++) {
		struct ckt_rt_device *d = &ckt_rt_devices[i];
		pthread_mutex_lock(&d->lock);
		bool ours = d->context == current;
		bool alive = atomic_load(&d->retained);
		pthread_mutex_unlock(&d->lock);
		if (ours && alive)
			remember(current, i, true, epoch);
		if (ours)
			return alive ? cudaSuccess : cudaErrorDeviceUninitialized;
	}
	if (cuCtxGetDevice(&handle) != CUDA_SUCCESS)
		return cudaErrorDeviceUninitialized;
	for (int i = 0; i < ckt_rt_device_count; i++) {
		unsigned flags;
		int active = 0;
		CUcontext primary = NULL;
		if (ckt_rt_devices[i].handle != handle)
			continue;
		if (cuDevicePrimaryCtxGetState(handle, &flags, &active) == CUDA_SUCCESS && active)
			ckt_rt_primary(i, &primary);
		remember(current, i, current == primary, epoch);
		return cudaSuccess;
	}
	return cudaErrorDeviceUninitialized;
}

cudaError_t ckt_rt_enter_slow(void)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	uint32_t epoch = atomic_load(&ckt_rt_epoch);
	CUcontext current = NULL;
	cudaError_t error = ckt_rt_driver();
	if (error)
		return error;
	if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
		adopt(current, epoch) == cudaSuccess)
		return cudaSuccess;
	error = thread->chosen ? ckt_rt_primary(thread->device, &current)
			       : ckt_rt_choose_valid(&current);
	if (error)
		return error;
	CUresult result = cuCtxSetCurrent(current);
	if (result)
		return (cudaError_t)result;
	remember(current, thread->device, true, epoch);
	return cudaSuccess;
}

int ckt_rt_unsupported(const char *name, bool *once)
{
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED))
		ckt_refusal_say("%s is not supported", name);
	return ckt_rt_return(cudaErrorNotSupported);
}
