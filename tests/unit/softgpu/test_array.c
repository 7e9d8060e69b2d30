/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/array.c: arrays, textures and surfaces of the soft GPU: memory that is counted and
 * comes back, handles, ends of contexts, what outlives what.
 */
#include "soft_test.h"

static const char ptx[] = PTX_HEADER
	".visible .entry fetch(.param .u64 t, .param .u64 out)\n"
	"{ .reg .b64 h, a; .reg .f32 x; .reg .b32 v<5>; ld.param.u64 h, [t]; ld.param.u64 a, [out]; mov.f32 x, 0f3fc00000;\n"
	"tex.1d.v4.u32.f32 {v1, v2, v3, v4}, [h, {x}]; st.global.u32 [a], v1; ret; }\n"
	".visible .entry fetch_linear(.param .u64 t, .param .u64 out)\n"
	"{ .reg .b64 h, a; .reg .b32 x, v<5>; ld.param.u64 h, [t]; ld.param.u64 a, [out]; mov.b32 x, 1;\n"
	"tex.1d.v4.u32.s32 {v1, v2, v3, v4}, [h, {x}]; st.global.u32 [a], v1; ret; }\n"
	".visible .entry store(.param .u64 s)\n"
	"{ .reg .b64 h; .reg .b32 x, v; ld.param.u64 h, [s]; mov.b32 x, 4; mov.b32 v, 9; sust.b.1d.b32.trap [h, {x}], {v}; ret; }\n";

static CUarray words(size_t width, size_t height, size_t depth, unsigned flags)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1,
		.Flags = flags};
	OK(cuArray3DCreate(&array, &d));
	return array;
}

static CUtexObject texture_of(const CUDA_RESOURCE_DESC *resource)
{
	CUtexObject t = 0;
	CUDA_TEXTURE_DESC d = {
		.flags = CU_TRSF_READ_AS_INTEGER, .addressMode = {CU_TR_ADDRESS_MODE_CLAMP}};
	OK(cuTexObjectCreate(&t, resource, &d, NULL));
	return t;
}

static CUtexObject texture(CUarray array)
{
	return texture_of(&(CUDA_RESOURCE_DESC){
		.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array});
}

static CUresult run(CUmodule module, const char *name, unsigned long long handle, CUdeviceptr out)
{
	CUfunction f;
	void *params[] = {&handle, &out};
	OK(cuModuleGetFunction(&f, module, name));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

static void test_memory(void)
{
	size_t before, now, total;
	CUmipmappedArray m;
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 256, .Height = 256, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
	test_context();
	OK(cuMemGetInfo(&before, &total));
	CUarray a = words(1024, 1024, 0, 0);
	OK(cuMemGetInfo(&now, &total));
	CU_ASSERT_EQUAL(before - now, 4 << 20);
	OK(cuMipmappedArrayCreate(&m, &d, 9));
	OK(cuMemGetInfo(&now, &total));
	CU_ASSERT_TRUE(before - now > (4 << 20) + (1 << 20) * 4 / 3);
	OK(cuArrayDestroy(a));
	CHECK_RESULT(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	CUarray level;
	OK(cuMipmappedArrayGetLevel(&level, m, 2));
	CHECK_RESULT(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMipmappedArrayDestroy(m));
	CHECK_RESULT(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuArray3DGetDescriptor(&d, level), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemGetInfo(&now, &total));
	CU_ASSERT_EQUAL(now, before);
	/* Too much. */
	d = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = 8192, .Height = 8192, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CHECK_RESULT(cuArray3DCreate(&a, &d), CUDA_ERROR_OUT_OF_MEMORY);
}

/* The lowest that is free, textures and surfaces out of one table. */
static void test_handles(void)
{
	test_context();
	CUarray a = words(16, 0, 0, CUDA_ARRAY3D_SURFACE_LDST);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
	CUsurfObject s;
	CUtexObject first = texture(a), second = texture(a);
	OK(cuSurfObjectCreate(&s, &r));
	CU_ASSERT_TRUE(second == first + 1 && s == first + 2);
	CHECK_RESULT(cuTexObjectDestroy(s), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuSurfObjectDestroy(first), CUDA_ERROR_INVALID_VALUE);
	OK(cuTexObjectDestroy(first));
	CHECK_RESULT(cuTexObjectDestroy(first), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(texture(a), first);
	CU_ASSERT_EQUAL(texture(a), s + 1);
	CHECK_RESULT(cuTexObjectDestroy(1ull << 40), CUDA_ERROR_INVALID_VALUE);
	OK(cuSurfObjectDestroy(s));
}

/*
 * What a texture reads may go before it: kernels read what was there, or zeros, and nothing else
 * happens.
 */
static void test_gone(void)
{
	CUmodule module;
	CUdeviceptr out, p;
	uint32_t data[16], value = 0;
	size_t before, now, total;
	test_context();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuMemAlloc(&out, 4));
	OK(cuMemGetInfo(&before, &total));
	for (int i = 0; i < 16; i++)
		data[i] = 100 + (uint32_t)i;
	CUarray a = words(16, 0, 0, 0);
	OK(cuMemcpyHtoA(a, 0, data, 64));
	CUtexObject t = texture(a);
	OK(run(module, "fetch", t, out));
	OK(cuMemcpyDtoH(&value, out, 4));
	CU_ASSERT_EQUAL(value, 101);
	OK(cuArrayDestroy(a));
	OK(run(module, "fetch", t, out));
	OK(cuMemcpyDtoH(&value, out, 4));
	CU_ASSERT_EQUAL(value, 101);
	OK(cuTexObjectDestroy(t));
	OK(cuMemGetInfo(&now, &total));
	CU_ASSERT_EQUAL(now, before);
	OK(cuMemAlloc(&p, 4096));
	OK(cuMemcpyHtoD(p, data, 64));
	t = texture_of(&(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = {p, CU_AD_FORMAT_UNSIGNED_INT32, 1, 64}});
	OK(run(module, "fetch_linear", t, out));
	OK(cuMemcpyDtoH(&value, out, 4));
	CU_ASSERT_EQUAL(value, 101);
	OK(cuMemFree(p));
	OK(run(module, "fetch_linear", t, out));
	OK(cuMemcpyDtoH(&value, out, 4));
	CU_ASSERT_EQUAL(value, 0);
	OK(cuTexObjectDestroy(t));
}

static void test_contexts(void)
{
	CUcontext mine;
	CUmodule module;
	size_t before, now, total;
	CUcontext primary = test_context();
	OK(cuMemGetInfo(&before, &total));
	CUtexObject theirs = texture(words(16, 0, 0, 0));
	OK(cuCtxCreate(&mine, NULL, 0, 0));
	OK(cuModuleLoadData(&module, ptx));
	/* Another context's objects are none here. */
	CHECK_RESULT(cuTexObjectDestroy(theirs), CUDA_ERROR_INVALID_VALUE);
	CUtexObject t = texture(words(64, 64, 0, 0));
	CHECK_RESULT(run(module, "store", t, 0), CUDA_ERROR_ILLEGAL_INSTRUCTION);
	OK(cuCtxDestroy(mine));
	OK(cuCtxSetCurrent(primary));
	OK(cuTexObjectDestroy(theirs));
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuMemGetInfo(&now, &total));
	CU_ASSERT_EQUAL(now, before);
	/* Everything went with the contexts. */
	CU_ASSERT_EQUAL(texture(words(16, 0, 0, 0)), 1);
}

int main(void)
{
	setenv("CRICKET_SOFT_DEVICES", "12.0:64M", 1);
	static const struct soft_test tests[] = {{"memory", test_memory}, {"handles", test_handles},
		{"gone", test_gone}, {"contexts", test_contexts}};
	return RUN_TESTS("soft arrays", tests);
}
