/* SPDX-License-Identifier: Apache-2.0 */
/* Access between devices. */
#include "client/cudart/api.h"

static cudaError_t both(int a, int b)
{
	cudaError_t error = ckt_rt_check_device(a);
	return error ? error : ckt_rt_check_device(b);
}

CKT_RT_API cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
	cudaError_t error = both(device, peerDevice);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(canAccessPeer, cudaErrorInvalidValue);
	return ckt_rt_cu(cuDeviceCanAccessPeer(
		canAccessPeer, ckt_rt_devices[device].handle, ckt_rt_devices[peerDevice].handle));
}

CKT_RT_API cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	CUcontext peer;
	CKT_RT_ENTER();
	cudaError_t error = ckt_rt_check_device(peerDevice);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(!flags, cudaErrorInvalidValue);
	CKT_RT_REQUIRE(peerDevice != ckt_rt_thread.device, cudaErrorPeerAccessUnsupported);
	error = ckt_rt_primary(peerDevice, &peer);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuCtxEnablePeerAccess(peer, flags));
}

CKT_RT_API cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
	CUcontext peer;
	CKT_RT_ENTER();
	cudaError_t error = ckt_rt_check_device(peerDevice);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(peerDevice != ckt_rt_thread.device, cudaErrorPeerAccessNotEnabled);
	error = ckt_rt_primary(peerDevice, &peer);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuCtxDisablePeerAccess(peer));
}

CKT_RT_API cudaError_t cudaDeviceGetP2PAttribute(
	int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice)
{
	cudaError_t error = both(srcDevice, dstDevice);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr,
		ckt_rt_devices[srcDevice].handle, ckt_rt_devices[dstDevice].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const enum cudaAtomicOperation *operations, unsigned int count, int srcDevice,
	int dstDevice)
{
	cudaError_t error = both(srcDevice, dstDevice);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceGetP2PAtomicCapabilities(capabilities,
		(const CUatomicOperation *)operations, count, ckt_rt_devices[srcDevice].handle,
		ckt_rt_devices[dstDevice].handle));
}

CKT_RT_API cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const enum cudaAtomicOperation *operations, unsigned int count, int device)
{
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuDeviceGetHostAtomicCapabilities(capabilities,
		(const CUatomicOperation *)operations, count, ckt_rt_devices[device].handle));
}

/* In the driver API, copies between devices name contexts. */
static cudaError_t copy_peer(void *dst, int dst_device, const void *src, int src_device,
	size_t count, cudaStream_t stream, bool async)
{
	CUcontext dst_context, src_context;
	CKT_RT_ENTER();
	if (!count)
		return cudaSuccess;
	cudaError_t error = both(dst_device, src_device);
	if (!error)
		error = ckt_rt_primary(dst_device, &dst_context);
	if (!error)
		error = ckt_rt_primary(src_device, &src_context);
	CKT_RT_REQUIRE(!error, error);
	if (async)
		return ckt_rt_cu(cuMemcpyPeerAsync(ckt_rt_address(dst), dst_context,
			ckt_rt_address(src), src_context, count, stream));
	return ckt_rt_cu(cuMemcpyPeer(
		ckt_rt_address(dst), dst_context, ckt_rt_address(src), src_context, count));
}

CKT_RT_API cudaError_t cudaMemcpyPeer(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
	return copy_peer(dst, dstDevice, src, srcDevice, count, NULL, false);
}

CKT_RT_API cudaError_t cudaMemcpyPeerAsync(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
	return copy_peer(dst, dstDevice, src, srcDevice, count, stream, true);
}
