/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing devices, their flags, limits, attributes and names on the bus. */
#include <string.h>

#include "client/cudart/device.h"
#include "base/fork.h"
#include "client/cudart/api.h"
#include "client/cudart/array.h"
#include "client/cudart/registration.h"

/*
 * cudaSetValidDevices: the order in which a thread tries devices if it chose none.  Empty: all
 * devices in their order.
 */
static CKT_LOCK(valid_lock);
static int valid_devices[CKT_DEVICES_MAX];
static int valid_count;

CKT_RT_API cudaError_t cudaGetDeviceCount(int *count)
{
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(count, cudaErrorInvalidValue);
	*count = ckt_rt_device_count;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetDevice(int *device)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	CUcontext current = NULL;
	CKT_RT_REQUIRE(device, cudaErrorInvalidValue);
	if (__builtin_expect(
		    thread->epoch == atomic_load_explicit(&ckt_rt_epoch, memory_order_relaxed),
		    1) &&
		__builtin_expect(
			cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == thread->context,
			1)) {
		*device = thread->device;
		return cudaSuccess;
	}
	CKT_RT_DRIVER();
	/*
	 * Returns the device of a context that the program made current through the driver API.
	 * The query creates no context.
	 */
	if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
		CKT_RT_ENTER();
	*device = thread->device;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaSetDevice(int device)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	CUcontext context = NULL;
	uint32_t epoch = atomic_load(&ckt_rt_epoch);
	cudaError_t error = ckt_rt_check_device(device);
	if (error)
		return ckt_rt_return(error);
	if (thread->epoch == epoch && thread->primary && thread->device == device &&
		thread->chosen && cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
		context == thread->context)
		return cudaSuccess;
	error = ckt_rt_primary(device, &context);
	if (error)
		return ckt_rt_return(error);
	CUresult result = cuCtxSetCurrent(context);
	if (result)
		return ckt_rt_cu(result);
	thread->device = device;
	thread->chosen = true;
	thread->context = context;
	thread->primary = true;
	thread->epoch = epoch;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	CUcontext context;
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	/* Other bits of flags have no effect (seen on an H200). */
	if (flags & cudaInitDeviceFlagsAreValid) {
		CUresult result = cuDevicePrimaryCtxSetFlags(
			ckt_rt_devices[device].handle, deviceFlags & ~(unsigned)cudaDeviceMapHost);
		CKT_RT_REQUIRE(!result, (cudaError_t)result);
	}
	return ckt_rt_return(ckt_rt_primary(device, &context));
}

CKT_RT_API cudaError_t cudaSetValidDevices(int *device_arr, int len)
{
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(len >= 0 && len <= ckt_rt_device_count && (device_arr || !len),
		cudaErrorInvalidValue);
	for (int i = 0; i < len; i++)
		CKT_RT_REQUIRE(device_arr[i] >= 0 && device_arr[i] < ckt_rt_device_count,
			cudaErrorInvalidDevice);
	pthread_mutex_lock(&valid_lock);
	valid_count = len;
	if (len)
		memcpy(valid_devices, device_arr, (size_t)len * sizeof *device_arr);
	pthread_mutex_unlock(&valid_lock);
	return cudaSuccess;
}

cudaError_t ckt_rt_choose_valid(CUcontext *ret_context)
{
	int order[CKT_DEVICES_MAX];
	cudaError_t error = cudaErrorDevicesUnavailable;
	pthread_mutex_lock(&valid_lock);
	int count = valid_count ? valid_count : ckt_rt_device_count;
	for (int i = 0; i < count; i++)
		order[i] = valid_count ? valid_devices[i] : i;
	pthread_mutex_unlock(&valid_lock);
	for (int i = 0; i < count; i++) {
		error = ckt_rt_primary(order[i], ret_context);
		if (!error) {
			ckt_rt_thread.device = order[i];
			break;
		}
	}
	return error;
}

CKT_RT_API cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	const unsigned known = cudaDeviceScheduleMask | cudaDeviceMapHost |
		cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;
	unsigned schedule = flags & cudaDeviceScheduleMask;
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(!(flags & ~known), cudaErrorInvalidValue);
	/* At most one scheduling bit may be set. */
	CKT_RT_REQUIRE(!(schedule & (schedule - 1)), cudaErrorInvalidValue);
	/*
	 * Mapping of host memory is always on.  The driver API no longer has a flag for it on a
	 * primary context.
	 */
	return ckt_rt_cu(cuDevicePrimaryCtxSetFlags(
		ckt_rt_devices[ckt_rt_thread.device].handle, flags & ~(unsigned)cudaDeviceMapHost));
}

CKT_RT_API cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	int active;
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(flags, cudaErrorInvalidValue);
	CUresult result = cuDevicePrimaryCtxGetState(
		ckt_rt_devices[ckt_rt_thread.device].handle, flags, &active);
	if (result == CUDA_SUCCESS)
		*flags |= cudaDeviceMapHost;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaDeviceSynchronize(void)
{
	CKT_RT_CALL(cuCtxSynchronize());
}

CKT_RT_API cudaError_t cudaDeviceReset(void)
{
	struct ckt_rt_thread *thread = &ckt_rt_thread;
	CKT_RT_DRIVER();
	struct ckt_rt_device *device = &ckt_rt_devices[thread->device];
	bool lost = thread->context && ckt_rt_fault();
	pthread_mutex_lock(&device->lock);
	if (lost)
		atomic_store(&device->lost, true);
	/*
	 * Threads with the dead context notice the new epoch at their next call, and retain the
	 * context again.
	 */
	atomic_store(&device->retained, false);
	CUresult result = cuDevicePrimaryCtxReset(device->handle);
	ckt_rt_modules_reset(thread->device);
	atomic_fetch_add(&ckt_rt_epoch, 1);
	pthread_mutex_unlock(&device->lock);
	if (thread->primary)
		cuCtxSetCurrent(NULL);
	thread->epoch = 0;
	thread->context = NULL;
	/*
	 * A reset clears the error of a lost context.  The error of a refused call stays (seen on
	 * an H200).
	 */
	if (lost)
		thread->last_error = cudaSuccess;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
	CKT_RT_CALL(cuCtxGetLimit(pValue, (CUlimit)limit));
}

CKT_RT_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	CKT_RT_CALL(cuCtxSetLimit((CUlimit)limit, value));
}

CKT_RT_API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
	CUfunc_cache config;
	CKT_RT_REQUIRE(pCacheConfig, cudaErrorInvalidValue);
	CKT_RT_ENTER();
	CUresult result = cuCtxGetCacheConfig(&config);
	if (result == CUDA_SUCCESS)
		*pCacheConfig = (enum cudaFuncCache)config;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
	CKT_RT_CALL(cuCtxSetCacheConfig((CUfunc_cache)cacheConfig));
}

/*
 * Devices from compute capability 5.0 on have one bank size, and setting it has no effect.  CUDA
 * keeps the functions for old sources.
 */
CKT_RT_API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
	CKT_RT_REQUIRE(pConfig, cudaErrorInvalidValue);
	CKT_RT_ENTER();
	*pConfig = cudaSharedMemBankSizeFourByte;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	CKT_RT_REQUIRE((unsigned)config <= cudaSharedMemBankSizeEightByte, cudaErrorInvalidValue);
	CKT_RT_ENTER();
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	CKT_RT_CALL(cuCtxGetStreamPriorityRange(leastPriority, greatestPriority));
}

CKT_RT_API cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	CKT_RT_CALL(cuCtxResetPersistingL2Cache());
}

CKT_RT_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	/* Both enumerations have the same numbers. */
	return ckt_rt_cu(cuDeviceGetAttribute(
		value, (CUdevice_attribute)attr, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceGetPCIBusId(pciBusId, len, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
	CUdevice handle;
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(device && pciBusId, cudaErrorInvalidValue);
	CUresult result = cuDeviceGetByPCIBusId(&handle, pciBusId);
	for (int i = 0; result == CUDA_SUCCESS && i < ckt_rt_device_count; i++) {
		if (ckt_rt_devices[i].handle == handle) {
			*device = i;
			return cudaSuccess;
		}
	}
	return ckt_rt_return(result ? (cudaError_t)result : cudaErrorInvalidDevice);
}

CKT_RT_API cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, const struct cudaChannelFormatDesc *fmtDesc, int device)
{
	CUarray_format format;
	unsigned channels;
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(fmtDesc, cudaErrorInvalidValue);
	error = ckt_rt_format(fmtDesc, &format, &channels);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceGetTexture1DLinearMaxWidth(
		maxWidthInElements, format, channels, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(
	enum cudaFlushGPUDirectRDMAWritesTarget target,
	enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	CKT_RT_CALL(cuFlushGPUDirectRDMAWrites(
		(CUflushGPUDirectRDMAWritesTarget)target, (CUflushGPUDirectRDMAWritesScope)scope));
}

CKT_RT_API cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	CKT_RT_REQUIRE(runtimeVersion, cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	CKT_RT_REQUIRE(driverVersion, cudaErrorInvalidValue);
	/* Without a driver the version is 0, and the call succeeds. */
	if (cuDriverGetVersion(driverVersion) != CUDA_SUCCESS)
		*driverVersion = 0;
	return cudaSuccess;
}

/* The callback's argument is the driver's structure under another name. */
CKT_RT_API cudaError_t cudaDeviceRegisterAsyncNotification(int device,
	cudaAsyncCallback callbackFunc, void *userData, cudaAsyncCallbackHandle_t *callback)
{
	_Static_assert(sizeof(cudaAsyncNotificationInfo_t) == sizeof(CUasyncNotificationInfo),
		"one layout");
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceRegisterAsyncNotification(ckt_rt_devices[device].handle,
		(CUasyncCallback)(void (*)(void))callbackFunc, userData,
		(CUasyncCallbackHandle *)callback));
}

CKT_RT_API cudaError_t cudaDeviceUnregisterAsyncNotification(
	int device, cudaAsyncCallbackHandle_t callback)
{
	CKT_RT_REQUIRE(callback, cudaErrorInvalidValue);
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceUnregisterAsyncNotification(
		ckt_rt_devices[device].handle, (CUasyncCallbackHandle)callback));
}
