/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_texture.c: textures and surfaces: filters, address modes, formats,
 * layers, cubemaps, what is outside.
 */
#include "harness.h"

#define HEAD                                                                                                                         \
	UNIT_HEAD                                                                                                                    \
	".visible .entry k(.param .u64 ph, .param .u64 pin, .param .u64 pout)\n{\n"                                                  \
	".reg .b64 h, in, out; .reg .f32 x, y, z, a, b, c, d; .reg .b32 i, j, l, p, q, r, s; .reg .b16 v;\n"                         \
	"ld.param.u64 h, [ph]; ld.param.u64 in, [pin]; ld.param.u64 out, [pout];\n"                                                  \
	"ld.global.f32 x, [in]; ld.global.f32 y, [in+4]; ld.global.f32 z, [in+8]; ld.global.u32 i, [in]; ld.global.u32 j, [in+4];\n" \
	"ld.global.u32 l, [in+12];\n"
#define TAIL_F "st.global.v4.f32 [out], {a, b, c, d}; ret; }\n"
#define TAIL_I "st.global.v4.u32 [out], {p, q, r, s}; ret; }\n"

static float *in, *out;
static struct ckt_ptx_image image;
static struct ckt_ptx_texture texture;

static struct ckt_ptx_module *load(const char *text)
{
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	return module;
}

static enum ckt_ptx_fault run(struct ckt_ptx_module *module, float x, float y, float z, int layer)
{
	in[0] = x;
	in[1] = y;
	in[2] = z;
	memcpy(&in[3], &layer, 4);
	struct unit_launch u = {.kernel = "k",
		.grid = 1,
		.block = 1,
		.args = {1, (uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out}};
	return unit_run(module, &u);
}

static float at(struct ckt_ptx_module *module, float x, float y, float z, int layer)
{
	CU_ASSERT_EQUAL(run(module, x, y, z, layer), CKT_PTX_FAULT_NONE);
	return out[0];
}

/* 4 x 3 x depth floats: element (x, y, z) is x + 10 y + 100 z. */
static void fresh(enum ckt_ptx_texture_shape shape, uint32_t depth)
{
	float *memory = unit_alloc(4096);
	in = unit_alloc(64);
	out = unit_alloc(64);
	image = (struct ckt_ptx_image){.memory = (uint8_t *)memory,
		.width = 4,
		.height = 3,
		.depth = depth,
		.row_bytes = 32,
		.slice_bytes = 128};
	for (uint32_t n = 0; n < depth * 12; n++)
		memory[n / 12 * 32 + n / 4 % 3 * 8 + n % 4] =
			(float)(n % 4 + n / 4 % 3 * 10 + n / 12 * 100);
	texture = (struct ckt_ptx_texture){.shape = shape,
		.n_levels = 1,
		.levels = &image,
		.channels = 1,
		.channel_bytes = 4,
		.channel = CKT_PTX_CHANNEL_FLOAT,
		.address = {CKT_PTX_ADDRESS_CLAMP, CKT_PTX_ADDRESS_CLAMP, CKT_PTX_ADDRESS_CLAMP},
		.mipmap_most = 10};
	unit_textures[0] = &texture;
}

static void test_2d(void)
{
	fresh(CKT_PTX_TEXTURE_2D, 1);
	struct ckt_ptx_module *m =
		load(HEAD "tex.2d.v4.f32.f32 {a, b, c, d}, [h, {x, y}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 2.9f, 1.2f, 0, 0), 12);
	CU_ASSERT_EQUAL(at(m, -5, 7, 0, 0), 20); /* clamped */
	texture.filter = CKT_PTX_FILTER_LINEAR;
	CU_ASSERT_EQUAL(at(m, 1.5f, 1.5f, 0, 0), 11); /* the middle of a texel is the texel */
	CU_ASSERT_EQUAL(at(m, 1.75f, 2, 0, 0), 16.25f);
	texture.address[0] = CKT_PTX_ADDRESS_BORDER;
	texture.border[0] = 100;
	CU_ASSERT_EQUAL(at(m, 0, 0.5f, 0, 0), 50);
	texture.filter = CKT_PTX_FILTER_POINT;
	texture.normalized_coordinates = true;
	texture.address[0] = CKT_PTX_ADDRESS_WRAP;
	texture.address[1] = CKT_PTX_ADDRESS_MIRROR;
	CU_ASSERT_EQUAL(at(m, 1.3f, 0.5f, 0, 0), 11);
	CU_ASSERT_EQUAL(at(m, -0.1f, 1.1f, 0, 0), 23);
	CU_ASSERT_EQUAL(at(m, 0.1f, 1.9f, 0, 0), 0);
	ckt_ptx_module_destroy(m);
	texture.normalized_coordinates = false;
	m = load(HEAD "tld4.r.2d.v4.f32.f32 {a, b, c, d}, [h, {x, y}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 2, 1, 0, 0), 11);
	CU_ASSERT_TRUE(out[1] == 12 && out[2] == 2 && out[3] == 1);
	ckt_ptx_module_destroy(m);
}

static void test_shapes(void)
{
	fresh(CKT_PTX_TEXTURE_3D, 5);
	struct ckt_ptx_module *m =
		load(HEAD "tex.3d.v4.f32.f32 {a, b, c, d}, [h, {x, y, z, z}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 3, 2, 4, 0), 423);
	texture.filter = CKT_PTX_FILTER_LINEAR;
	CU_ASSERT_EQUAL(at(m, 1, 1, 1, 0), 55.5f);
	ckt_ptx_module_destroy(m);
	fresh(CKT_PTX_TEXTURE_2D_LAYERED, 5);
	m = load(HEAD "tex.a2d.v4.f32.f32 {a, b, c, d}, [h, {l, x, y, y}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 1, 1, 0, 3), 311);
	CU_ASSERT_EQUAL(at(m, 1, 1, 0, 9), 411);
	ckt_ptx_module_destroy(m);
	fresh(CKT_PTX_TEXTURE_CUBEMAP, 6);
	image.width = image.height = 3;
	texture.normalized_coordinates = true;
	m = load(HEAD "tex.cube.v4.f32.f32 {a, b, c, d}, [h, {x, y, z, z}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 1, 0, 0, 0), 11);
	CU_ASSERT_EQUAL(at(m, -2, 0, 0, 0), 111);
	CU_ASSERT_EQUAL(at(m, 0, 3, 0, 0), 211);
	CU_ASSERT_EQUAL(at(m, 0, 0, -1, 0), 511);
	CU_ASSERT_EQUAL(at(m, 1, 0.9f, 0, 0), 1); /* upwards is the first row of the side */
	ckt_ptx_module_destroy(m);
}

static void test_formats(void)
{
	static const uint8_t bytes[] = {0, 51, 128, 255};
	fresh(CKT_PTX_TEXTURE_LINEAR, 1);
	memcpy(image.memory, bytes, 4);
	texture.channel_bytes = 1;
	texture.channel = CKT_PTX_CHANNEL_UNSIGNED;
	struct ckt_ptx_module *m = load(
		HEAD "cvt.rzi.s32.f32 i, x; tex.1d.v4.u32.s32 {p, q, r, s}, [h, {i}];\n" TAIL_I);
	at(m, 1, 0, 0, 0);
	CU_ASSERT_EQUAL(((uint32_t *)out)[0], 51);
	at(m, 4, 0, 0, 0);
	/* behind its end linear memory reads as zero */
	CU_ASSERT_EQUAL(((uint32_t *)out)[0], 0);
	texture.channel = CKT_PTX_CHANNEL_SIGNED;
	at(m, 2, 0, 0, 0);
	CU_ASSERT_EQUAL(((int32_t *)out)[0], -128);
	ckt_ptx_module_destroy(m);
	texture.normalized_read = true;
	m = load(HEAD "cvt.rzi.s32.f32 i, x; tex.1d.v4.f32.s32 {a, b, c, d}, [h, {i}];\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 2, 0, 0, 0), -1);
	texture.channel = CKT_PTX_CHANNEL_UNSIGNED;
	CU_ASSERT_EQUAL(at(m, 1, 0, 0, 0), 0.2f);
	ckt_ptx_module_destroy(m);
}

static void test_surface(void)
{
	fresh(CKT_PTX_TEXTURE_2D, 1);
	struct ckt_ptx_module *m = load(HEAD
		"cvt.rzi.s32.f32 i, x; cvt.rzi.s32.f32 j, y; shl.b32 i, i, 2; "
		"suld.b.2d.b32.trap p, [h, {i, j}]; suq.width.b32 q, [h]; mov.b32 r, 0; mov.b32 s, 0;\n"
		"sust.b.2d.b32.zero [h, {i, j}], q;\n" TAIL_I);
	CU_ASSERT_EQUAL(at(m, 2, 1, 0, 0), 12);
	CU_ASSERT_EQUAL(((uint32_t *)out)[1], 4);
	CU_ASSERT_EQUAL(((uint32_t *)image.memory)[8 + 2], 4);
	CU_ASSERT_EQUAL(run(m, 4, 0, 0, 0), CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	unit_textures[0] = NULL;
	CU_ASSERT_EQUAL(run(m, 0, 0, 0, 0), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION);
	ckt_ptx_module_destroy(m);
}

static void test_levels(void)
{
	fresh(CKT_PTX_TEXTURE_2D, 2);
	struct ckt_ptx_image levels[2] = {image, image};
	levels[1].memory += 128;
	levels[1].width = 2;
	levels[1].height = 1;
	texture.levels = levels;
	texture.n_levels = 2;
	struct ckt_ptx_module *m =
		load(HEAD "tex.level.2d.v4.f32.f32 {a, b, c, d}, [h, {x, y}], z;\n" TAIL_F);
	CU_ASSERT_EQUAL(at(m, 1, 0, 0, 0), 1);
	CU_ASSERT_EQUAL(at(m, 1, 0, 1, 0), 101);
	texture.mipmap_filter = CKT_PTX_FILTER_LINEAR;
	CU_ASSERT_EQUAL(at(m, 1, 0, 0.25f, 0), 26);
	ckt_ptx_module_destroy(m);
}

/*
 * A kernel that reads by another shape than the texture has, or memory that is gone, finds zeros.
 */
static void test_mismatch(void)
{
	fresh(CKT_PTX_TEXTURE_2D, 1);
	struct ckt_ptx_module *m =
		load(HEAD "tex.cube.v4.f32.f32 {a, b, c, d}, [h, {x, y, z, z}];\n" TAIL_F);
	out[0] = 5;
	CU_ASSERT_EQUAL(at(m, -1, 0.1f, 0.1f, 0), 0);
	ckt_ptx_module_destroy(m);
	m = load(HEAD "tex.acube.v4.f32.f32 {a, b, c, d}, [h, {l, x, y, z}];\n" TAIL_F);
	out[0] = 5;
	CU_ASSERT_EQUAL(at(m, 1, 0.1f, 0.1f, 3), 0);
	ckt_ptx_module_destroy(m);
	m = load(HEAD "tex.2d.v4.f32.f32 {a, b, c, d}, [h, {x, y}];\n" TAIL_F);
	texture.checked = true;
	CU_ASSERT_EQUAL(at(m, 2.5f, 1.5f, 0, 0), 12);
	image.memory = (uint8_t *)0x10000;
	CU_ASSERT_EQUAL(at(m, 2.5f, 1.5f, 0, 0), 0);
	ckt_ptx_module_destroy(m);
}

/*
 * Gradients on a cube count as they move the place on its face: three levels of 4, 2 and 1 texels,
 * each full of its number.
 */
static void test_cube_gradients(void)
{
	fresh(CKT_PTX_TEXTURE_CUBEMAP, 6);
	static float memory[3][6 * 16];
	static struct ckt_ptx_image levels[3];
	for (unsigned level = 0; level < 3; level++) {
		uint32_t size = 4u >> level;
		for (unsigned n = 0; n < 6 * 16; n++)
			memory[level][n] = (float)level;
		levels[level] = (struct ckt_ptx_image){.memory = (uint8_t *)memory[level],
			.width = size,
			.height = size,
			.depth = 6,
			.row_bytes = size * 4,
			.slice_bytes = size * size * 4};
	}
	texture.levels = levels;
	texture.n_levels = 3;
	texture.normalized_coordinates = true;
	texture.mipmap_filter = CKT_PTX_FILTER_LINEAR;
	struct ckt_ptx_module *m = load(HEAD
		"ld.global.f32 a, [in+16]; ld.global.f32 b, [in+20]; mov.f32 c, 0f00000000;\n"
		"tex.grad.cube.v4.f32.f32 {a, b, c, d}, [h, {x, y, z}], {a, c, b, c}, {c, a, b, c};\n" TAIL_F);
	/*
	 * A texel of level 0 is a quarter of the face, so half of the way from the middle to its
	 * edge: slope, along the axis, level
	 */
	static const float cases[][3] = {{0.25f, 0, 0}, {0.5f, 0, 0}, {1, 0, 1}, {2, 0, 2},
		{8, 0, 2}, {2, 1, 1}, {1, -0.5f, 2}};
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
		in[4] = cases[k][0];
		in[5] = cases[k][1];
		CU_ASSERT_DOUBLE_EQUAL(at(m, 0, 0, 1, 0), cases[k][2], 1e-6);
	}
	in[4] = 1;
	in[5] = -1; /* to the middle of the cube, where there is no place */
	CU_ASSERT_EQUAL(at(m, 0, 0, 1, 0), 0);
	ckt_ptx_module_destroy(m);
}

/* What lies outside of a surface: zero or the nearest, a fault, or nothing at all is written. */
static void test_outside(void)
{
	static const struct {
		const char *mode;
		float x, y;
		uint32_t want;
		enum ckt_ptx_fault fault;
	} loads[] = {
		{"zero", 4, 1, 0, CKT_PTX_FAULT_NONE},
		{"zero", 1, 3, 0, CKT_PTX_FAULT_NONE},
		{"zero", -1, 0, 0, CKT_PTX_FAULT_NONE},
		{"clamp", 9, 1, 13, CKT_PTX_FAULT_NONE},
		{"clamp", -2, 9, 20, CKT_PTX_FAULT_NONE},
		{"trap", 3, 2, 23, CKT_PTX_FAULT_NONE},
		{"trap", 4, 2, 0, CKT_PTX_FAULT_ILLEGAL_ADDRESS},
	};
	for (size_t k = 0; k < sizeof loads / sizeof *loads; k++) {
		char text[2048];
		fresh(CKT_PTX_TEXTURE_2D, 1);
		for (unsigned n = 0; n < 24; n++) /* the same numbers as integers */
			((uint32_t *)image.memory)[n] = n % 8 + n / 8 * 10;
		snprintf(text, sizeof text,
			HEAD
			"cvt.rzi.s32.f32 i, x; cvt.rzi.s32.f32 j, y; shl.b32 i, i, 2; mov.b32 q, 0; "
			"mov.b32 r, 0; mov.b32 s, 0; suld.b.2d.b32.%s p, [h, {i, j}];\n" TAIL_I,
			loads[k].mode);
		struct ckt_ptx_module *m = load(text);
		CU_ASSERT_EQUAL(run(m, loads[k].x, loads[k].y, 0, 0), loads[k].fault);
		if (loads[k].fault == CKT_PTX_FAULT_NONE)
			CU_ASSERT_EQUAL(((uint32_t *)out)[0], loads[k].want);
		ckt_ptx_module_destroy(m);
	}
	fresh(CKT_PTX_TEXTURE_2D, 1);
	struct ckt_ptx_module *m = load(HEAD
		"mov.b32 p, 77; mov.b32 q, 0; mov.b32 r, 0; mov.b32 s, 0; cvt.rzi.s32.f32 i, x; "
		"cvt.rzi.s32.f32 j, y; sust.b.2d.b32.zero [h, {i, j}], p;\n" TAIL_I);
	uint32_t before = ((uint32_t *)image.memory)[8];
	CU_ASSERT_EQUAL(run(m, 16, 0, 0, 0), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(((uint32_t *)image.memory)[4], 0);
	CU_ASSERT_EQUAL(((uint32_t *)image.memory)[8], before);
	CU_ASSERT_EQUAL(run(m, 12, 1, 0, 0), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(((uint32_t *)image.memory)[11], 77);
	ckt_ptx_module_destroy(m);
}

/* The sizes of what a handle names, of textures and surfaces. */
static void test_queries(void)
{
	fresh(CKT_PTX_TEXTURE_3D, 5);
	struct ckt_ptx_module *m = load(HEAD
		"txq.width.b32 p, [h]; txq.height.b32 q, [h]; txq.depth.b32 r, [h]; suq.height.b32 s, [h];\n"
		"" TAIL_I);
	CU_ASSERT_EQUAL(run(m, 0, 0, 0, 0), CKT_PTX_FAULT_NONE);
	const uint32_t *words = (const uint32_t *)out;
	CU_ASSERT_TRUE(words[0] == 4 && words[1] == 3 && words[2] == 5 && words[3] == 3);
	unit_textures[0] = NULL;
	CU_ASSERT_EQUAL(run(m, 0, 0, 0, 0), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION);
	ckt_ptx_module_destroy(m);
	REFUSED_BODY("tex.2d.v4.f32.f32 {f1, f2, f3, f4}, [x1, {f1}];", "");
	REFUSED_BODY("tex.5d.v4.f32.f32 {f1, f2, f3, f4}, [x1, {f1, f2}];", "");
	REFUSED_BODY("suld.b.2d.b32.banana r1, [x1, {r2, r3}];", "");
	REFUSED_BODY("tex.2d.v4.f32.f32 {f1, f2, f3, f4}, [x1, x2, {f1, f2}];", "");
}

static const struct unit_test tests[] = {{"2d", test_2d}, {"shapes", test_shapes},
	{"formats", test_formats}, {"surface", test_surface}, {"levels", test_levels},
	{"mismatch", test_mismatch}, {"cube gradients", test_cube_gradients},
	{"outside", test_outside}, {"queries", test_queries}};
UNIT_MAIN("ptx textures", tests)
