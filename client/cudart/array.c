/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays and mipmapped arrays.  A cudaArray_t is a CUarray, and a cudaMipmappedArray_t is a
 * CUmipmappedArray.  Only the description of formats differs.  The runtime describes the bits of
 * each channel and a kind; the driver describes a format and a number of channels.
 */
#include "client/cudart/array.h"
#include "client/cudart/api.h"

/* Kinds other than signed, unsigned and float name a whole format. */
static const struct {
	uint16_t kind;
	uint16_t format;
	uint8_t channels;
	uint8_t bits[4];
} named_formats[] = {
	{cudaChannelFormatKindNV12, CU_AD_FORMAT_NV12, 3, {8, 8, 8, 0}},
	{cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, {8, 0, 0, 0}},
	{cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 2, {8, 8, 0, 0}},
	{cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 1, {16, 0, 0, 0}},
	{cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 2,
		{16, 16, 0, 0}},
	{cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 4,
		{16, 16, 16, 16}},
	{cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, {8, 0, 0, 0}},
	{cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 2, {8, 8, 0, 0}},
	{cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 1, {16, 0, 0, 0}},
	{cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 2, {16, 16, 0, 0}},
	{cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 4,
		{16, 16, 16, 16}},
	{cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed1SRGB, CU_AD_FORMAT_BC1_UNORM_SRGB, 4,
		{8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed2, CU_AD_FORMAT_BC2_UNORM, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed2SRGB, CU_AD_FORMAT_BC2_UNORM_SRGB, 4,
		{8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed3, CU_AD_FORMAT_BC3_UNORM, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed3SRGB, CU_AD_FORMAT_BC3_UNORM_SRGB, 4,
		{8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed4, CU_AD_FORMAT_BC4_UNORM, 1, {8, 0, 0, 0}},
	{cudaChannelFormatKindSignedBlockCompressed4, CU_AD_FORMAT_BC4_SNORM, 1, {8, 0, 0, 0}},
	{cudaChannelFormatKindUnsignedBlockCompressed5, CU_AD_FORMAT_BC5_UNORM, 2, {8, 8, 0, 0}},
	{cudaChannelFormatKindSignedBlockCompressed5, CU_AD_FORMAT_BC5_SNORM, 2, {8, 8, 0, 0}},
	{cudaChannelFormatKindUnsignedBlockCompressed6H, CU_AD_FORMAT_BC6H_UF16, 3,
		{16, 16, 16, 0}},
	{cudaChannelFormatKindSignedBlockCompressed6H, CU_AD_FORMAT_BC6H_SF16, 3, {16, 16, 16, 0}},
	{cudaChannelFormatKindUnsignedBlockCompressed7, CU_AD_FORMAT_BC7_UNORM, 4, {8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedBlockCompressed7SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB, 4,
		{8, 8, 8, 8}},
	{cudaChannelFormatKindUnsignedNormalized1010102, CU_AD_FORMAT_UNORM_INT_101010_2, 4,
		{10, 10, 10, 2}},
};

static const struct {
	uint8_t kind;
	uint8_t bits;
	uint8_t format;
} plain_formats[] = {
	{cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
	{cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
	{cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
	{cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
	{cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
	{cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
	{cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
	{cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

cudaError_t ckt_rt_format(const struct cudaChannelFormatDesc *desc, CUarray_format *ret_format,
	unsigned *ret_channels)
{
	const int bits[] = {desc->x, desc->y, desc->z, desc->w};
	unsigned channels = 0;
	for (unsigned i = 0; i < sizeof named_formats / sizeof *named_formats; i++) {
		if (named_formats[i].kind == (unsigned)desc->f) {
			*ret_format = (CUarray_format)named_formats[i].format;
			*ret_channels = named_formats[i].channels;
			return cudaSuccess;
		}
	}
	while (channels < 4 && bits[channels])
		channels++;
	/* Only one, two or four channels of equal width, without a gap, are valid. */
	for (unsigned i = 0; i < 4; i++) {
		if (bits[i] != (i < channels ? bits[0] : 0))
			return cudaErrorInvalidChannelDescriptor;
	}
	if (channels != 1 && channels != 2 && channels != 4)
		return cudaErrorInvalidChannelDescriptor;
	for (unsigned i = 0; i < sizeof plain_formats / sizeof *plain_formats; i++) {
		if (plain_formats[i].kind == (unsigned)desc->f &&
			plain_formats[i].bits == bits[0]) {
			*ret_format = (CUarray_format)plain_formats[i].format;
			*ret_channels = channels;
			return cudaSuccess;
		}
	}
	return cudaErrorInvalidChannelDescriptor;
}

cudaError_t ckt_rt_channel(
	CUarray_format format, unsigned channels, struct cudaChannelFormatDesc *ret_desc)
{
	int bits[4] = {0};
	int kind = -1;
	for (unsigned i = 0; i < sizeof plain_formats / sizeof *plain_formats; i++) {
		if (plain_formats[i].format != (unsigned)format)
			continue;
		kind = plain_formats[i].kind;
		for (unsigned c = 0; c < 4 && c < channels; c++)
			bits[c] = plain_formats[i].bits;
	}
	for (unsigned i = 0; i < sizeof named_formats / sizeof *named_formats; i++) {
		if (named_formats[i].format != (unsigned)format)
			continue;
		kind = named_formats[i].kind;
		for (unsigned c = 0; c < 4; c++)
			bits[c] = named_formats[i].bits[c];
	}
	if (kind < 0)
		return cudaErrorInvalidChannelDescriptor;
	*ret_desc = (struct cudaChannelFormatDesc){
		bits[0], bits[1], bits[2], bits[3], (enum cudaChannelFormatKind)kind};
	return cudaSuccess;
}

cudaError_t ckt_rt_array_element(cudaArray_const_t array, size_t *ret_bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct cudaChannelFormatDesc desc;
	CUresult result = cuArray3DGetDescriptor(&descriptor, (CUarray)array);
	if (result)
		return (cudaError_t)result;
	cudaError_t error = ckt_rt_channel(descriptor.Format, descriptor.NumChannels, &desc);
	if (!error)
		*ret_bytes = (size_t)(desc.x + desc.y + desc.z + desc.w) / 8;
	return error;
}

CKT_RT_API struct cudaChannelFormatDesc cudaCreateChannelDesc(
	int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

static cudaError_t describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	*ret = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Flags = flags};
	/* The flags have the same bits in both APIs. */
	return ckt_rt_format(desc, &ret->Format, &ret->NumChannels);
}

CKT_RT_API cudaError_t cudaMalloc3DArray(cudaArray_t *array,
	const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(array && desc, cudaErrorInvalidValue);
	cudaError_t error = describe(desc, extent, flags, &descriptor);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuArray3DCreate((CUarray *)array, &descriptor));
}

CKT_RT_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	size_t width, size_t height, unsigned int flags)
{
	return cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

CKT_RT_API cudaError_t cudaFreeArray(cudaArray_t array)
{
	CKT_RT_ENTER();
	return array ? ckt_rt_cu(cuArrayDestroy((CUarray)array)) : cudaSuccess;
}

CKT_RT_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
	const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int numLevels,
	unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(mipmappedArray && desc, cudaErrorInvalidValue);
	cudaError_t error = describe(desc, extent, flags, &descriptor);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(
		cuMipmappedArrayCreate((CUmipmappedArray *)mipmappedArray, &descriptor, numLevels));
}

CKT_RT_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	CKT_RT_ENTER();
	return mipmappedArray ? ckt_rt_cu(cuMipmappedArrayDestroy((CUmipmappedArray)mipmappedArray))
			      : cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetMipmappedArrayLevel(
	cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray, unsigned int level)
{
	CKT_RT_CALL(cuMipmappedArrayGetLevel(
		(CUarray *)levelArray, (CUmipmappedArray)mipmappedArray, level));
}

CKT_RT_API cudaError_t cudaGetChannelDesc(
	struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(desc, cudaErrorInvalidValue);
	CUresult result = cuArray3DGetDescriptor(&descriptor, (CUarray)array);
	CKT_RT_REQUIRE(!result, (cudaError_t)result);
	return ckt_rt_return(ckt_rt_channel(descriptor.Format, descriptor.NumChannels, desc));
}

CKT_RT_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc,
	struct cudaExtent *extent, unsigned int *flags, cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CKT_RT_ENTER();
	CUresult result = cuArray3DGetDescriptor(&descriptor, (CUarray)array);
	CKT_RT_REQUIRE(!result, (cudaError_t)result);
	if (desc) {
		cudaError_t error = ckt_rt_channel(descriptor.Format, descriptor.NumChannels, desc);
		CKT_RT_REQUIRE(!error, error);
	}
	if (extent)
		*extent =
			(struct cudaExtent){descriptor.Width, descriptor.Height, descriptor.Depth};
	if (flags)
		*flags = descriptor.Flags;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaArrayGetPlane(
	cudaArray_t *pPlaneArray, cudaArray_t hArray, unsigned int planeIdx)
{
	CKT_RT_CALL(cuArrayGetPlane((CUarray *)pPlaneArray, (CUarray)hArray, planeIdx));
}

CKT_RT_API cudaError_t cudaArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array, int device)
{
	_Static_assert(sizeof(struct cudaArrayMemoryRequirements) ==
			sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
		"one layout");
	CKT_RT_ENTER();
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(
		cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements,
			(CUarray)array, ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaMipmappedArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaMipmappedArray_t mipmap,
	int device)
{
	CKT_RT_ENTER();
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuMipmappedArrayGetMemoryRequirements(
		(CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements, (CUmipmappedArray)mipmap,
		ckt_rt_devices[device].handle));
}

CKT_RT_API cudaError_t cudaArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaArray_t array)
{
	_Static_assert(
		sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES),
		"one layout");
	CKT_RT_CALL(cuArrayGetSparseProperties(
		(CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties, (CUarray)array));
}

CKT_RT_API cudaError_t cudaMipmappedArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaMipmappedArray_t mipmap)
{
	CKT_RT_CALL(cuMipmappedArrayGetSparseProperties(
		(CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties, (CUmipmappedArray)mipmap));
}
