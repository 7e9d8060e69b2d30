/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of copies, and 3D copies between contexts: each becomes an ordinary copy of the library.
 */
#include "cudacommon/interface.h"

static bool order_is_known(CUmemcpySrcAccessOrder order)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
		order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/*
 * Every copy reads its source in the stream's order, or at once if host memory requires it.  Each
 * of CUDA's source orders allows both.
 */
CKT_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,
	size_t count, CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
	CUstream stream)
{
	if (!targets || !sources || !sizes || !count || !attributes || !indices ||
		!attribute_count || attribute_count > count || indices[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < attribute_count; k++)
		if (indices[k] >= count || (k && indices[k] <= indices[k - 1]) ||
			!order_is_known(attributes[k].srcAccessOrder))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!targets[i] || !sources[i] || !sizes[i])
			return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_stream_check_batch(stream);
	for (size_t i = 0; i < count && !result; i++)
		result = cuMemcpyAsync(targets[i], sources[i], sizes[i], stream);
	return result;
}

/* The first version reports the index of the failed copy, or SIZE_MAX if no single copy failed. */
CKT_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,
	size_t count, CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
	size_t *failed, CUstream stream)
{
	CUresult result = cuMemcpyBatchAsync_v2(
		targets, sources, sizes, count, attributes, indices, attribute_count, stream);
	if (failed)
		*failed = SIZE_MAX;
	return result;
}

/* ---- Boxes */

static CUresult element_bytes(const CUmemcpy3DOperand *operand, size_t *ret_bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_SUCCESS;
	CUresult result = cuArray3DGetDescriptor_v2(&descriptor, operand->op.array.array);
	if (result)
		return result;
	unsigned bytes = ckt_cudacommon_element_bytes(descriptor.Format, descriptor.NumChannels);
	if (!bytes || (*ret_bytes && *ret_bytes != bytes))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = bytes;
	return CUDA_SUCCESS;
}

struct operand {
	CUmemorytype type;
	CUdeviceptr address;
	CUarray array;
	size_t pitch, height, x, y, z;
};

static CUresult read_operand(
	const CUmemcpy3DOperand *from, const CUextent3D *extent, size_t bytes, struct operand *ret)
{
	if (from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		*ret = (struct operand){.type = CU_MEMORYTYPE_ARRAY,
			.array = from->op.array.array,
			.x = from->op.array.offset.x * bytes,
			.y = from->op.array.offset.y,
			.z = from->op.array.offset.z};
		return CUDA_SUCCESS;
	}
	size_t row = from->op.ptr.rowLength ? from->op.ptr.rowLength : extent->width;
	size_t height = from->op.ptr.layerHeight ? from->op.ptr.layerHeight : extent->height;
	if (from->type != CU_MEMCPY_OPERAND_TYPE_POINTER || row < extent->width ||
		height < extent->height)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct operand){.type = CU_MEMORYTYPE_UNIFIED,
		.address = from->op.ptr.ptr,
		.pitch = row * bytes,
		.height = height};
	return CUDA_SUCCESS;
}

static CUresult copy_box(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
	struct operand src, dst;
	size_t bytes = 0;
	if (!op->extent.width || !op->extent.height || !op->extent.depth ||
		!order_is_known(op->srcAccessOrder))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = element_bytes(&op->src, &bytes);
	if (!result)
		result = element_bytes(&op->dst, &bytes);
	if (result)
		return result;
	if (!bytes)
		bytes = 1;
	result = read_operand(&op->src, &op->extent, bytes, &src);
	if (!result)
		result = read_operand(&op->dst, &op->extent, bytes, &dst);
	if (result)
		return result;
	CUDA_MEMCPY3D copy = {.srcMemoryType = src.type,
		.srcDevice = src.address,
		.srcArray = src.array,
		.srcPitch = src.pitch,
		.srcHeight = src.height,
		.srcXInBytes = src.x,
		.srcY = src.y,
		.srcZ = src.z,
		.dstMemoryType = dst.type,
		.dstDevice = dst.address,
		.dstArray = dst.array,
		.dstPitch = dst.pitch,
		.dstHeight = dst.height,
		.dstXInBytes = dst.x,
		.dstY = dst.y,
		.dstZ = dst.z,
		.WidthInBytes = op->extent.width * bytes,
		.Height = op->extent.height,
		.Depth = op->extent.depth};
	return cuMemcpy3DAsync_v2(&copy, stream);
}

static CUresult copy_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream)
{
	size_t at = SIZE_MAX;
	CUresult result =
		ops && count && !flags ? ckt_stream_check_batch(stream) : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		if ((result = copy_box(&ops[i], stream)))
			at = i;
	if (failed)
		*failed = at;
	return result;
}

CKT_EXPORT CUresult cuMemcpy3DBatchAsync_v2(
	size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream)
{
	return copy_boxes(count, ops, NULL, flags, stream);
}

CKT_EXPORT CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream)
{
	return copy_boxes(count, ops, failed, flags, stream);
}

/* ---- Between contexts: the address alone determines the memory. */

static CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER *copy)
{
	return (CUDA_MEMCPY3D){.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcZ = copy->srcZ,
		.srcLOD = copy->srcLOD,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcPitch = copy->srcPitch,
		.srcHeight = copy->srcHeight,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstZ = copy->dstZ,
		.dstLOD = copy->dstLOD,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstPitch = copy->dstPitch,
		.dstHeight = copy->dstHeight,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = copy->Depth};
}

CKT_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D plain = without_contexts(copy);
	/* Host memory belongs to no context. */
	CUcontext src = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? NULL : copy->srcContext;
	CUcontext dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? NULL : copy->dstContext;
	CUresult result = ckt_copy_join(dst, src, true);
	if (!result)
		result = cuMemcpy3D_v2(&plain);
	return result ? result : ckt_copy_join(dst, src, false);
}

CKT_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D plain = without_contexts(copy);
	return cuMemcpy3DAsync_v2(&plain, stream);
}
