/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling memory.  The synchronous functions run in the order of the default stream and do not
 * wait, as in the driver.
 */
#include "client/cudart/api.h"
#include "client/cudart/variants.h"

static cudaError_t fill(void *address, int value, size_t count, cudaStream_t stream, bool async)
{
	CKT_RT_ENTER();
	if (!count)
		return cudaSuccess;
	if (async || stream)
		return ckt_rt_cu(cuMemsetD8Async(
			ckt_rt_address(address), (unsigned char)value, count, stream));
	return ckt_rt_cu(cuMemsetD8(ckt_rt_address(address), (unsigned char)value, count));
}

static cudaError_t fill_2d(void *address, size_t pitch, int value, size_t width, size_t height,
	cudaStream_t stream, bool async)
{
	CKT_RT_ENTER();
	if (!width || !height)
		return cudaSuccess;
	CKT_RT_REQUIRE(height == 1 || pitch >= width, cudaErrorInvalidValue);
	if (async || stream)
		return ckt_rt_cu(cuMemsetD2D8Async(ckt_rt_address(address), pitch,
			(unsigned char)value, width, height, stream));
	return ckt_rt_cu(
		cuMemsetD2D8(ckt_rt_address(address), pitch, (unsigned char)value, width, height));
}

static cudaError_t fill_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
	cudaStream_t stream, bool async)
{
	if (!extent.width || !extent.height || !extent.depth)
		return fill_2d(to.ptr, 0, value, 0, 0, stream, async);
	CKT_RT_REQUIRE(to.pitch >= extent.width && (extent.depth <= 1 || to.ysize >= extent.height),
		cudaErrorInvalidValue);
	/* Adjacent slices are filled as one plane. */
	if (extent.depth <= 1 || to.ysize == extent.height)
		return fill_2d(to.ptr, to.pitch, value, extent.width, extent.height * extent.depth,
			stream, async);
	for (size_t z = 0; z < extent.depth; z++) {
		char *slice = (char *)to.ptr + z * to.pitch * to.ysize;
		cudaError_t error =
			fill_2d(slice, to.pitch, value, extent.width, extent.height, stream, async);
		if (error)
			return error;
	}
	return cudaSuccess;
}

cudaError_t ckt_rt_cudaMemset(void *devPtr, int value, size_t count, cudaStream_t default_stream)
{
	return fill(devPtr, value, count, default_stream, false);
}

cudaError_t ckt_rt_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height,
	cudaStream_t default_stream)
{
	return fill_2d(devPtr, pitch, value, width, height, default_stream, false);
}

cudaError_t ckt_rt_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t default_stream)
{
	return fill_3d(pitchedDevPtr, value, extent, default_stream, false);
}

CKT_RT_API cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return fill(devPtr, value, count, stream, true);
}

CKT_RT_API cudaError_t cudaMemset2DAsync(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return fill_2d(devPtr, pitch, value, width, height, stream, true);
}

CKT_RT_API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t stream)
{
	return fill_3d(pitchedDevPtr, value, extent, stream, true);
}
