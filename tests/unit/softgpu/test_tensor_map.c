/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/memory/tensor_map.c: the documented bounds of tensor maps, one by one. */
#include "files.h"

struct tiled {
	CUtensorMapDataType type;
	unsigned rank;
	uint64_t address, dims[5], strides[4];
	uint32_t box[5], steps[5];
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static const struct tiled good = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
	.rank = 3,
	.address = 0x10000,
	.dims = {64, 32, 16},
	.strides = {256, 8192},
	.box = {16, 8, 4},
	.steps = {1, 1, 1}};
static CUtensorMap map;

static CUresult encode(const struct tiled *t)
{
	return cuTensorMapEncodeTiled(&map, t->type, t->rank, (void *)(uintptr_t)t->address,
		t->dims, t->strides, t->box, t->steps, t->interleave, t->swizzle, t->promotion,
		t->fill);
}

static void test_tiled(void)
{
	OK(cuInit(0));
	OK(encode(&good));
	/* What is changed, and whether that is still good. */
	for (unsigned i = 0; i < 31; i++) {
		struct tiled t = good;
		CUresult want = CUDA_ERROR_INVALID_VALUE;
		switch (i) {
		case 0:
			t.rank = 0;
			break;
		case 1:
			t.rank = 6;
			break;
		case 2:
			t.address += 8;
			break;
		case 3:
			t.address = 0;
			break;
		case 4:
			t.dims[1] = 0;
			break;
		case 5:
			t.dims[1] = 1ull << 32;
			want = CUDA_SUCCESS;
			break;
		case 6:
			t.dims[1] = (1ull << 32) + 1;
			break;
		case 7:
			t.strides[0] = 264;
			break;
		case 8:
			t.strides[0] = 1ull << 40;
			break;
		case 9:
			t.strides[1] = (1ull << 40) - 16;
			want = CUDA_SUCCESS;
			break;
		case 10:
			t.box[1] = 0;
			break;
		case 11:
			t.box[1] = 256;
			want = CUDA_SUCCESS;
			break;
		case 12:
			t.box[1] = 257;
			break;
		case 13:
			t.steps[2] = 0;
			break;
		case 14:
			t.steps[2] = 8;
			want = CUDA_SUCCESS;
			break;
		case 15:
			t.steps[2] = 9;
			break;
		case 16:
			t.box[0] = 15;
			break; /* 60 bytes are no multiple of 16 */
		case 17:
			t.box[0] = 4;
			want = CUDA_SUCCESS;
			break;
		case 18:
			t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
			break; /* 64 bytes inside 32 */
		case 19:
			t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
			want = CUDA_SUCCESS;
			break;
		case 20:
			t.swizzle = (CUtensorMapSwizzle)77;
			break;
		case 21:
			t.promotion = (CUtensorMapL2promotion)4;
			break;
		case 22:
			t.fill = (CUtensorMapFloatOOBfill)2;
			break;
		case 23:
			t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
			want = CUDA_SUCCESS;
			break;
		case 24:
			t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
			t.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
			break;
		case 25:
			t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
			t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
			want = CUDA_SUCCESS;
			break;
		/* asks for a swizzle of 32 */
		case 26:
			t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
			break;
		case 27:
			t.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
			t.rank = 2;
			break;
		case 28:
			t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
			t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
			t.address += 16;
			break;
		case 29:
			t.type = (CUtensorMapDataType)99;
			break;
		case 30:
			t.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
			want = CUDA_ERROR_NOT_SUPPORTED;
			break;
		}
		CUresult result = encode(&t);
		if (result != want)
			fprintf(stderr, "tensor map %u\n", i);
		IS(result, want);
	}
	CHECK_RESULT(
		cuTensorMapEncodeTiled((CUtensorMap *)(void *)((char *)&map + 16), good.type, 3,
			(void *)0x10000, good.dims, good.strides, good.box, good.steps, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTensorMapEncodeTiled(&map, good.type, 3, (void *)0x10000, NULL, good.strides,
			     good.box, good.steps, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTensorMapEncodeTiled(&map, good.type, 3, (void *)0x10000, good.dims, NULL,
			     good.box, good.steps, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTensorMapEncodeTiled(&map, good.type, 3, (void *)0x10000, good.dims,
			     good.strides, NULL, good.steps, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuTensorMapEncodeTiled(&map, good.type, 1, (void *)0x10000, good.dims, NULL, good.box,
		good.steps, 0, 0, 0, 0));
	/* Refused: the map is as it was. */
	CUtensorMap before = map;
	struct tiled bad = good;
	bad.box[2] = 0;
	CHECK_RESULT(encode(&bad), CUDA_ERROR_INVALID_VALUE);
	IS(memcmp(&before, &map, sizeof(map)), 0);
}

static CUresult im2col(
	unsigned rank, const int *lower, const int *upper, unsigned channels, unsigned pixels)
{
	static const uint64_t dims[] = {16, 8, 8, 4, 2}, strides[] = {64, 512, 4096, 16384};
	static const uint32_t steps[] = {1, 1, 1, 1, 1};
	return cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, (void *)0x10000,
		dims, strides, lower, upper, channels, pixels, steps, 0, 0, 0, 0);
}

static void test_im2col(void)
{
	static const struct {
		unsigned rank;
		int corner;
		CUresult lower, upper;
	} table[] = {
		{3, 32767, CUDA_SUCCESS, CUDA_SUCCESS},
		{3, -32768, CUDA_SUCCESS, CUDA_SUCCESS},
		{3, 32768, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{4, 127, CUDA_SUCCESS, CUDA_SUCCESS},
		{4, 128, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{4, -129, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{5, 15, CUDA_SUCCESS, CUDA_SUCCESS},
		{5, -16, CUDA_SUCCESS, CUDA_SUCCESS},
		{5, 16, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{2, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
	};
	static const int zero[3] = {0};
	OK(cuInit(0));
	for (size_t i = 0; i < COUNT(table); i++) {
		int corner[3] = {0};
		/* the last that counts */
		corner[table[i].rank > 2 ? table[i].rank - 3 : 0] = table[i].corner;
		CHECK_RESULT(im2col(table[i].rank, corner, zero, 16, 8), table[i].lower);
		CHECK_RESULT(im2col(table[i].rank, zero, corner, 16, 8), table[i].upper);
	}
	OK(im2col(4, zero, zero, 256, 1024));
	CHECK_RESULT(im2col(4, zero, zero, 260, 8), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(im2col(4, zero, zero, 16, 1025), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(im2col(4, zero, zero, 15, 8), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(im2col(4, NULL, zero, 16, 8), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(im2col(4, zero, NULL, 16, 8), CUDA_ERROR_INVALID_VALUE);
	static const uint64_t dims[] = {16, 8, 8}, strides[] = {64, 512};
	static const uint32_t steps[] = {1, 1, 1};
	OK(cuTensorMapEncodeIm2colWide(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)0x10000,
		dims, strides, -4, 4, 16, 8, steps, 0, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, 0, 0,
		0));
	CHECK_RESULT(cuTensorMapEncodeIm2colWide(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3,
			     (void *)0x10000, dims, strides, -4, 4, 16, 8, steps, 0,
			     (CUtensorMapIm2ColWideMode)2, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_address(void)
{
	CUtensorMap other;
	OK(cuInit(0));
	OK(encode(&good));
	other = map;
	OK(cuTensorMapReplaceAddress(&map, (void *)0x20000));
	YES(memcmp(&map, &other, sizeof(map)) != 0);
	OK(cuTensorMapReplaceAddress(&map, (void *)0x10000));
	IS(memcmp(&map, &other, sizeof(map)), 0);
	CHECK_RESULT(cuTensorMapReplaceAddress(&map, (void *)0x20008), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTensorMapReplaceAddress(&map, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTensorMapReplaceAddress(NULL, (void *)0x20000), CUDA_ERROR_INVALID_VALUE);
	/* Bytes that are no map. */
	memset(&map, 0, sizeof(map));
	CHECK_RESULT(cuTensorMapReplaceAddress(&map, (void *)0x20000), CUDA_ERROR_INVALID_VALUE);
	memset(&map, 0xff, sizeof(map));
	CHECK_RESULT(cuTensorMapReplaceAddress(&map, (void *)0x20000), CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(softgpu / memory / tensor_map, {"tiled", test_tiled}, {"im2col", test_im2col},
	{"address", test_address})
