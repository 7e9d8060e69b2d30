/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of array.c: arrays whose memory comes later or in tiles, and those of several planes. */
#pragma once

/* Arrays whose memory comes later, and what they will need. */
CASE(deferred)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUarray array = NULL;
	CUmipmappedArray mipmap = NULL;
	start();
	memset(&d, 0, sizeof(d));
	d.Width = 256;
	d.Height = 128;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	d.NumChannels = 4;
	d.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
	if (!CALL(cuArray3DCreate_v2, &array, &d)) {
		memset(&needs, 0xff, sizeof(needs));
		CALL(cuArrayGetMemoryRequirements, &needs, array, 0);
		YES("enough",
			needs.size >= 256 * 128 * 4 && needs.alignment &&
				needs.size % needs.alignment == 0);
		CALL(cuArrayGetMemoryRequirements, &needs, array, 999);
		CALL(cuArrayDestroy, array);
	}
	if (!CALL(cuMipmappedArrayCreate, &mipmap, &d, 3)) {
		memset(&needs, 0xff, sizeof(needs));
		CALL(cuMipmappedArrayGetMemoryRequirements, &needs, mipmap, 0);
		YES("enough",
			needs.size >= 256 * 128 * 5 && needs.alignment &&
				needs.size % needs.alignment == 0);
		CALL(cuMipmappedArrayDestroy, mipmap);
	}
}

CASE(sparse)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUarray array = NULL;
	CUmipmappedArray mipmap = NULL;
	start();
	memset(&d, 0, sizeof(d));
	d.Width = d.Height = 1024;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	d.NumChannels = 4;
	d.Flags = CUDA_ARRAY3D_SPARSE;
	if (!CALL(cuArray3DCreate_v2, &array, &d)) {
		memset(&tiles, 0xff, sizeof(tiles));
		CALL(cuArrayGetSparseProperties, &tiles, array);
		NUMBER("width", tiles.tileExtent.width);
		NUMBER("height", tiles.tileExtent.height);
		NUMBER("depth", tiles.tileExtent.depth);
		CALL(cuArrayDestroy, array);
	}
	if (!CALL(cuMipmappedArrayCreate, &mipmap, &d, 3)) {
		memset(&tiles, 0xff, sizeof(tiles));
		CALL(cuMipmappedArrayGetSparseProperties, &tiles, mipmap);
		NUMBER("width", tiles.tileExtent.width);
		NUMBER("first", tiles.miptailFirstLevel);
		CALL(cuMipmappedArrayDestroy, mipmap);
	}
}

/* Pictures of several planes. */
CASE(planes)
{
	CUDA_ARRAY3D_DESCRIPTOR d, said;
	CUarray array = NULL, plane = NULL;
	start();
	memset(&d, 0, sizeof(d));
	d.Width = 64;
	d.Height = 32;
	d.Format = CU_AD_FORMAT_NV12;
	d.NumChannels = 3;
	if (CALL(cuArray3DCreate_v2, &array, &d))
		return;
	for (unsigned i = 0; i < 3; i++) {
		memset(&said, 0xff, sizeof(said));
		if (CALL(cuArrayGetPlane, &plane, array, i))
			continue;
		YES("another", plane != array);
		CALL(cuArray3DGetDescriptor_v2, &said, plane);
		NUMBER("width", (long long)said.Width);
		NUMBER("height", (long long)said.Height);
		NUMBER("format", said.Format);
		NUMBER("channels", said.NumChannels);
	}
	CALL(cuArrayDestroy, array);
}

/* Formats of several planes, by size, channels and flags. */
CASE(planes_forms)
{
	static const struct {
		unsigned format, channels, flags;
		size_t width, height, depth;
	} list[] = {
		{CU_AD_FORMAT_NV12, 3, 0, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 1, 0, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 2, 0, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 4, 0, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 3, CUDA_ARRAY3D_SURFACE_LDST, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 3, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 64, 32, 0},
		{CU_AD_FORMAT_NV12, 3, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE | CUDA_ARRAY3D_SURFACE_LDST,
			256, 128, 0},
		{CU_AD_FORMAT_NV12, 3, 0, 1024, 1024, 0},
		{CU_AD_FORMAT_P010, 3, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 256, 128, 0},
		{CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 3, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, 256, 128,
			0},
	};
	start();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		CUDA_ARRAY3D_DESCRIPTOR d;
		CUarray array = NULL, plane = NULL;
		memset(&d, 0, sizeof(d));
		d.Width = list[i].width;
		d.Height = list[i].height;
		d.Depth = list[i].depth;
		d.Format = (CUarray_format)list[i].format;
		d.NumChannels = list[i].channels;
		d.Flags = list[i].flags;
		if (CALL(cuArray3DCreate_v2, &array, &d))
			continue;
		for (unsigned k = 0; k < 3; k++) {
			if (CALL(cuArrayGetPlane, &plane, array, k))
				continue;
			CALL(cuArray3DGetDescriptor_v2, &d, plane);
			NUMBER("width", (long long)d.Width);
			NUMBER("height", (long long)d.Height);
			NUMBER("format", d.Format);
			NUMBER("channels", d.NumChannels);
		}
		CALL(cuArrayDestroy, array);
	}
}

/* Physical memory for arrays; NULL where it cannot be had. */
static CUmemGenericAllocationHandle tiles(size_t size)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.allocFlags = {.usage = CU_MEM_CREATE_USAGE_TILE_POOL}};
	CUmemGenericAllocationHandle piece = 0;
	CALL(cuMemCreate, &piece, size, &prop, 0);
	return piece;
}

static CUDA_ARRAY3D_DESCRIPTOR square(unsigned side, unsigned flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = side,
		.Height = side,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
		.Flags = flags};
}

static CUarrayMapInfo map_info(CUarray array, CUmemGenericAllocationHandle piece, unsigned x,
	unsigned y, unsigned width, unsigned height, uint64_t offset)
{
	CUarrayMapInfo info;
	memset(&info, 0, sizeof(info));
	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresource.sparseLevel.offsetX = x;
	info.subresource.sparseLevel.offsetY = y;
	info.subresource.sparseLevel.extentWidth = width;
	info.subresource.sparseLevel.extentHeight = height;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memOperationType = piece ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
	info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info.memHandle.memHandle = piece;
	info.offset = offset;
	info.deviceBitMask = 1;
	return info;
}

/* Rows with the host of a square array of four bytes an element. */
static CUDA_MEMCPY2D square_copy(CUarray array, void *host, unsigned side, int to_array)
{
	CUDA_MEMCPY2D copy;
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
	copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
	copy.srcHost = copy.dstHost = host;
	copy.srcArray = copy.dstArray = array;
	copy.srcPitch = copy.dstPitch = side * 4;
	copy.WidthInBytes = side * 4;
	copy.Height = side;
	return copy;
}

CASE(deferred_mapped)
{
	enum { SIDE = 256 };
	static unsigned char bytes[SIDE * SIDE * 4];
	CUDA_ARRAY3D_DESCRIPTOR d = square(SIDE, CUDA_ARRAY3D_DEFERRED_MAPPING), said;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUarray array = NULL;
	CUmemGenericAllocationHandle piece;
	CUarrayMapInfo info;
	CUDA_MEMCPY2D copy;
	int value = -7;
	start();
	CALL(cuDeviceGetAttribute, &value,
		CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 0);
	NUMBER("deferred", value);
	CALL(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0);
	NUMBER("sparse", value);
	QUIET(cuArray3DCreate_v2, &array, &d);
	CALL(cuArray3DGetDescriptor_v2, &said, array);
	HEX("flags", said.Flags);
	QUIET(cuArrayGetMemoryRequirements, &needs, array, 0);
	YES("alignment of 64 KiB", needs.alignment == 65536);
	piece = tiles((needs.size + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1));
	info = map_info(array, piece, 0, 0, 0, 0, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	CALL(cuStreamSynchronize, NULL);
	numbers(bytes, sizeof(bytes), 3);
	copy = square_copy(array, bytes, SIDE, 1);
	CALL(cuMemcpy2D_v2, &copy);
	memset(bytes, 0, sizeof(bytes));
	copy = square_copy(array, bytes, SIDE, 0);
	CALL(cuMemcpy2D_v2, &copy);
	BYTES("array", bytes, sizeof(bytes));
	info = map_info(array, 0, 0, 0, 0, 0, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	CALL(cuStreamSynchronize, NULL);
	CALL(cuArrayDestroy, array);
	CALL(cuMemRelease, piece);
}

/* An array whose memory never comes. */
CASE(deferred_not_mapped)
{
	CUDA_ARRAY3D_DESCRIPTOR d = square(64, CUDA_ARRAY3D_DEFERRED_MAPPING);
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUarray array = NULL, plain = NULL;
	CUmipmappedArray mipmap = NULL;
	CUarray level = NULL;
	start();
	CALL(cuArray3DCreate_v2, &array, &d);
	CALL(cuArrayGetMemoryRequirements, NULL, array, 0);
	CALL(cuArrayDestroy, array);
	d.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SURFACE_LDST;
	CALL(cuArray3DCreate_v2, &array, &d);
	d.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE;
	CALL(cuArray3DCreate_v2, &array, &d);
	d.Flags = 0;
	QUIET(cuArray3DCreate_v2, &plain, &d);
	CALL(cuArrayGetMemoryRequirements, &needs, plain, 0);
	d.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
	CALL(cuMipmappedArrayCreate, &mipmap, &d, 3);
	CALL(cuMipmappedArrayGetLevel, &level, mipmap, 1);
	CALL(cuArrayGetMemoryRequirements, &needs, level, 0);
	d.Height = 0;
	CALL(cuArray3DCreate_v2, &array, &d);
}

/* 1024 x 1024 in tiles of 128 x 128: some have memory. */
CASE(sparse_mapped)
{
	enum { SIDE = 1024, TILE = 128, BYTES_OF_TILE = TILE * TILE * 4 };
	static unsigned char bytes[SIDE * SIDE * 4], tile[BYTES_OF_TILE];
	CUDA_ARRAY3D_DESCRIPTOR d = square(SIDE, CUDA_ARRAY3D_SPARSE);
	CUarray array = NULL;
	CUmemGenericAllocationHandle piece;
	CUarrayMapInfo infos[2];
	CUDA_MEMCPY2D copy;
	start();
	QUIET(cuArray3DCreate_v2, &array, &d);
	piece = tiles(2 << 20);
	infos[0] = map_info(array, piece, 0, 0, TILE, TILE, 0);
	infos[1] = map_info(array, piece, 3 * TILE, 2 * TILE, 2 * TILE, TILE, BYTES_OF_TILE);
	CALL(cuMemMapArrayAsync, infos, 2, NULL);
	CALL(cuStreamSynchronize, NULL);
	numbers(bytes, sizeof(bytes), 3);
	copy = square_copy(array, bytes, SIDE, 1);
	CALL(cuMemcpy2D_v2, &copy);
	memset(bytes, 0xcd, sizeof(bytes));
	copy = square_copy(array, bytes, SIDE, 0);
	CALL(cuMemcpy2D_v2, &copy);
	BYTES("array", bytes, sizeof(bytes));
	/* The tile of two places. */
	infos[0] = map_info(array, piece, 7 * TILE, 7 * TILE, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, infos, 1, NULL);
	copy = square_copy(array, tile, SIDE, 0);
	copy.dstPitch = copy.WidthInBytes = TILE * 4;
	copy.Height = TILE;
	copy.srcXInBytes = 7 * TILE * 4;
	copy.srcY = 7 * TILE;
	CALL(cuMemcpy2D_v2, &copy);
	BYTES("tile", tile, sizeof(tile));
	infos[0] = map_info(array, 0, 0, 0, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, infos, 1, NULL);
	copy.srcXInBytes = copy.srcY = 0;
	CALL(cuMemcpy2D_v2, &copy);
	BYTES("tile", tile, sizeof(tile));
	CALL(cuArrayDestroy, array);
	CALL(cuMemRelease, piece);
}

CASE(sparse_wrong)
{
	enum { SIDE = 1024, TILE = 128 };
	CUDA_ARRAY3D_DESCRIPTOR d = square(SIDE, CUDA_ARRAY3D_SPARSE);
	CUarray array = NULL, plain = NULL;
	CUmemGenericAllocationHandle piece, other = 0;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUarrayMapInfo info;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	start();
	QUIET(cuArray3DCreate_v2, &array, &d);
	CALL(cuArrayGetMemoryRequirements, &needs, array, 0);
	d.Flags = 0;
	QUIET(cuArray3DCreate_v2, &plain, &d);
	QUIET(cuMemCreate, &other, 2 << 20, &prop, 0);
	piece = tiles(2 << 20);
	info = map_info(array, other, 0, 0, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(plain, piece, 0, 0, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, piece, 1, 0, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, piece, 0, 0, TILE, TILE, 4096);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, piece, SIDE, 0, TILE, TILE, 0);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, piece, 0, 0, TILE, TILE, 2 << 20);
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info = map_info(array, piece, 0, 0, TILE, TILE, 0);
	info.deviceBitMask = 0;
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	info.deviceBitMask = 1;
	info.flags = 1;
	CALL(cuMemMapArrayAsync, &info, 1, NULL);
	CALL(cuMemMapArrayAsync, NULL, 1, NULL);
	CALL(cuMemMapArrayAsync, &info, 0, NULL);
	CALL(cuMemMapArrayAsync_ptsz, &info, 0, NULL);
	CALL(cuArrayDestroy, array);
	CALL(cuArrayDestroy, plain);
}

/* A tile pool is not mapped anywhere else. */
CASE(tile_pool)
{
	CUmemGenericAllocationHandle piece;
	CUmemAllocationProp said;
	CUdeviceptr p = 0;
	start();
	piece = tiles(2 << 20);
	memset(&said, 0, sizeof(said));
	CALL(cuMemGetAllocationPropertiesFromHandle, &said, piece);
	NUMBER("usage", said.allocFlags.usage);
	QUIET(cuMemAddressReserve, &p, 2 << 20, 0, 0, 0);
	CALL(cuMemMap, p, 2 << 20, 0, piece, 0);
	CALL(cuMemRelease, piece);
}
