/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three-dimensional copies.  If an array takes part in the copy, widths and x positions count its
 * elements; otherwise they count bytes.  A position inside pitched memory is in bytes only if no
 * array takes part.
 */
#include "client/cudart/memcpy3d.h"
#include "client/cudart/api.h"
#include "client/cudart/array.h"
#include "client/cudart/memcpy.h"
#include "client/cudart/variants.h"

cudaError_t ckt_rt_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret_copy)
{
	size_t element = 1, other;
	cudaError_t error = cudaSuccess;
	if ((unsigned)p->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	/* Each side is an array or pitched memory, not both. */
	if (!!p->srcArray == !!p->srcPtr.ptr || !!p->dstArray == !!p->dstPtr.ptr)
		return cudaErrorInvalidValue;
	if (p->srcArray)
		error = ckt_rt_array_element(p->srcArray, &element);
	if (!error && p->dstArray) {
		other = element;
		error = ckt_rt_array_element(p->dstArray, &element);
		if (!error && p->srcArray && other != element)
			error = cudaErrorInvalidValue;
	}
	if (error)
		return error;
	*ret_copy = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcPos.x * element,
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : ckt_rt_source_type(p->kind),
		.srcHost = p->srcPtr.ptr,
		.srcDevice = ckt_rt_address(p->srcPtr.ptr),
		.srcArray = (CUarray)p->srcArray,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x * element,
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType =
			p->dstArray ? CU_MEMORYTYPE_ARRAY : ckt_rt_destination_type(p->kind),
		.dstHost = p->dstPtr.ptr,
		.dstDevice = ckt_rt_address(p->dstPtr.ptr),
		.dstArray = (CUarray)p->dstArray,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width * element,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
	return cudaSuccess;
}

/*
 * As in two-dimensional copies, a pitch or height that a single row or slice does not need is not
 * checked.
 */
static bool pitch_is_valid(const struct cudaPitchedPtr *p, const CUDA_MEMCPY3D *copy)
{
	bool rows = copy->Height > 1 || copy->Depth > 1;
	return !p->ptr ||
		((!rows || p->pitch >= copy->WidthInBytes) &&
			(copy->Depth <= 1 || p->ysize >= copy->Height));
}

static cudaError_t copy(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool async)
{
	CUDA_MEMCPY3D driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(p, cudaErrorInvalidValue);
	if (!p->extent.width || !p->extent.height || !p->extent.depth)
		return cudaSuccess;
	cudaError_t error = ckt_rt_copy_3d(p, &driver);
	CKT_RT_REQUIRE(!error, error);
	CKT_RT_REQUIRE(pitch_is_valid(&p->srcPtr, &driver) && pitch_is_valid(&p->dstPtr, &driver),
		cudaErrorInvalidPitchValue);
	if (!async && !stream)
		return ckt_rt_cu(cuMemcpy3D(&driver));
	CUresult result = cuMemcpy3DAsync(&driver, stream);
	if (result == CUDA_SUCCESS && !async && p->kind != cudaMemcpyDeviceToDevice)
		result = cuStreamSynchronize(stream);
	return ckt_rt_cu(result);
}

cudaError_t ckt_rt_cudaMemcpy3D(const struct cudaMemcpy3DParms *p, cudaStream_t default_stream)
{
	return copy(p, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return copy(p, stream, true);
}

/*
 * Copies between devices: the same copy, with device memory on both sides.  Each side is in the
 * primary context of its device.
 */
static cudaError_t copy_peer(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool async)
{
	CUDA_MEMCPY3D plain;
	CUDA_MEMCPY3D_PEER driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(p, cudaErrorInvalidValue);
	struct cudaMemcpy3DParms local = {
		.srcArray = p->srcArray,
		.srcPos = p->srcPos,
		.srcPtr = p->srcPtr,
		.dstArray = p->dstArray,
		.dstPos = p->dstPos,
		.dstPtr = p->dstPtr,
		.extent = p->extent,
		.kind = cudaMemcpyDeviceToDevice,
	};
	cudaError_t error = ckt_rt_copy_3d(&local, &plain);
	if (!error)
		error = ckt_rt_check_device(p->srcDevice);
	if (!error)
		error = ckt_rt_check_device(p->dstDevice);
	CKT_RT_REQUIRE(!error, error);
	driver = (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = plain.srcXInBytes,
		.srcY = plain.srcY,
		.srcZ = plain.srcZ,
		.srcMemoryType = plain.srcMemoryType,
		.srcDevice = plain.srcDevice,
		.srcArray = plain.srcArray,
		.srcPitch = plain.srcPitch,
		.srcHeight = plain.srcHeight,
		.dstXInBytes = plain.dstXInBytes,
		.dstY = plain.dstY,
		.dstZ = plain.dstZ,
		.dstMemoryType = plain.dstMemoryType,
		.dstDevice = plain.dstDevice,
		.dstArray = plain.dstArray,
		.dstPitch = plain.dstPitch,
		.dstHeight = plain.dstHeight,
		.WidthInBytes = plain.WidthInBytes,
		.Height = plain.Height,
		.Depth = plain.Depth,
	};
	error = ckt_rt_primary(p->srcDevice, &driver.srcContext);
	if (!error)
		error = ckt_rt_primary(p->dstDevice, &driver.dstContext);
	CKT_RT_REQUIRE(!error, error);
	if (!async && !stream)
		return ckt_rt_cu(cuMemcpy3DPeer(&driver));
	return ckt_rt_cu(cuMemcpy3DPeerAsync(&driver, stream));
}

cudaError_t ckt_rt_cudaMemcpy3DPeer(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t default_stream)
{
	return copy_peer(p, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemcpy3DPeerAsync(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	return copy_peer(p, stream, true);
}

/* The operands have the same layout in both APIs. */
CKT_RT_API cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp *opList,
	unsigned long long flags, cudaStream_t stream)
{
	_Static_assert(
		sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "one layout");
	_Static_assert(offsetof(struct cudaMemcpy3DBatchOp, extent) ==
			offsetof(CUDA_MEMCPY3D_BATCH_OP, extent),
		"one layout");
	CKT_RT_CALL(cuMemcpy3DBatchAsync(numOps, (CUDA_MEMCPY3D_BATCH_OP *)opList, flags, stream));
}
