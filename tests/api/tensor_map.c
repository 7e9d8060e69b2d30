/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: every argument is in the map that comes out, which is not empty. */
#include "driver.h"

enum { RANK = 5 };

/* What a map is made of; a case changes one of it after the other. */
static struct {
	CUtensorMapDataType type;
	unsigned rank;
	char *base;
	cuuint64_t dims[RANK], strides[RANK];
	cuuint32_t box[RANK], steps[RANK], channels, pixels;
	int lower[RANK], upper[RANK];
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
	CUtensorMapIm2ColWideMode mode;
} t,
	plain = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (char *)0x7f0000000000, {64, 32, 8, 4},
		{256, 8192, 65536}, {16, 8, 2, 2}, {1, 1, 1, 1}, 16, 32, {-1, -1}, {1, 1},
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W};
static CUtensorMap before __attribute__((aligned(64))), map __attribute__((aligned(64)));

enum kind { TILED, IM2COL, WIDE };

static void encode(enum kind kind, const char *what)
{
	static const char empty[sizeof(map)];
	memset(&map, 0, sizeof(map));
	if (kind == TILED)
		CALL_OF(what, cuTensorMapEncodeTiled, &map, t.type, t.rank, t.base, t.dims,
			t.strides, t.box, t.steps, CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle,
			t.promotion, t.fill);
	else if (kind == IM2COL)
		CALL_OF(what, cuTensorMapEncodeIm2col, &map, t.type, t.rank, t.base, t.dims,
			t.strides, t.lower, t.upper, t.channels, t.pixels, t.steps,
			CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle, t.promotion, t.fill);
	else
		CALL_OF(what, cuTensorMapEncodeIm2colWide, &map, t.type, t.rank, t.base, t.dims,
			t.strides, t.lower[0], t.upper[0], t.channels, t.pixels, t.steps,
			CU_TENSOR_MAP_INTERLEAVE_NONE, t.mode, t.swizzle, t.promotion, t.fill);
	YES("empty", !memcmp(&map, empty, sizeof(map)));
	YES("as the plain one", !memcmp(&map, &before, sizeof(map)));
	t = plain;
}

static void all(enum kind kind)
{
	if (kind == WIDE) {
		plain.lower[0] = -2;
		plain.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
		plain.channels = 64;
	}
	t = plain;
	start();
	encode(kind, "plain");
	before = map;
	encode(kind, "again");
	t.type = CU_TENSOR_MAP_DATA_TYPE_UINT16, encode(kind, "type");
	t.base += 4096, encode(kind, "address");
	for (unsigned i = 0; i < 4; i++) {
		t.dims[i] += 2,
			encode(kind, (const char *[]){"size 0", "size 1", "size 2", "size 3"}[i]);
		t.steps[i] = 2,
		encode(kind, (const char *[]){"step 0", "step 1", "step 2", "step 3"}[i]);
		if (i < 3)
			t.strides[i] += 1024,
				encode(kind,
					(const char *[]){"stride 0", "stride 1", "stride 2"}[i]);
		if (kind == TILED && i)
			t.box[i]++,
				encode(kind, (const char *[]){"", "box 1", "box 2", "box 3"}[i]);
		if (kind != TILED && i < (kind == IM2COL ? 2 : 1)) {
			t.lower[i]--, encode(kind, (const char *[]){"lower 0", "lower 1"}[i]);
			t.upper[i]++, encode(kind, (const char *[]){"upper 0", "upper 1"}[i]);
		}
	}
	if (kind == TILED)
		t.box[0] = 8, encode(kind, "box 0");
	if (kind != TILED) {
		t.channels = 8, encode(kind, "channels");
		t.pixels = 64, encode(kind, "pixels");
	}
	t.swizzle = kind == WIDE ? CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B : CU_TENSOR_MAP_SWIZZLE_64B,
	encode(kind, "swizzle");
	t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B, encode(kind, "promotion");
	t.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, encode(kind, "fill");
	if (kind == WIDE)
		t.mode = CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, encode(kind, "mode");
	t.rank = 3, encode(kind, "rank");
}

CASE(tiled)
{
	all(TILED);
}
CASE(im2col)
{
	all(IM2COL);
}
CASE(wide)
{
	all(WIDE);
}
