/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/launch.c: shapes, clusters, parameters and attributes that are refused, and which
 * fault becomes which error.
 */
#include "files.h"

static const char text[] =
	".visible .entry none()\n{\nret;\n}\n"
	".visible .entry two(.param .u64 p, .param .u32 v)\n{\n.reg .b64 a; .reg .b32 b;\n"
	"ld.param.u64 a, [p]; ld.param.u32 b, [v]; st.global.u32 [a], b; ret;\n}\n"
	".visible .entry exact() .reqntid 8, 4, 1\n{\nret;\n}\n"
	".visible .entry few() .maxntid 32, 1, 1\n{\nret;\n}\n"
	".visible .entry crowd()\n{\n.reg .b32 r; .shared .b8 room[40000];\nmov.u32 r, room; ret;\n}\n";

static CUresult shape(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, NULL, NULL);
}

static void test_shapes(void)
{
	test_context();
	CUfunction none = files_kernel(text, "none"), exact = files_kernel(text, "exact"),
		   few = files_kernel(text, "few"), crowd = files_kernel(text, "crowd");
	const struct {
		CUfunction f;
		unsigned g[3], b[3], shared;
		CUresult result;
	} table[] = {
		{none, {1, 65535, 1}, {1, 1, 1}, 0, CUDA_SUCCESS},
		{none, {1, 65536, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 65536}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1u << 31, 1, 1}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 0}, {1, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 1}, {1, 0, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 1}, {1024, 1, 1}, 0, CUDA_SUCCESS},
		{none, {1, 1, 1}, {1, 1024, 1}, 0, CUDA_SUCCESS},
		{none, {1, 1, 1}, {16, 1, 64}, 0, CUDA_SUCCESS},
		{none, {1, 1, 1}, {16, 2, 64}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 1}, {UINT32_MAX, UINT32_MAX, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{none, {1, 1, 1}, {1, 1, 1}, 48 << 10, CUDA_SUCCESS},
		{none, {1, 1, 1}, {1, 1, 1}, (48 << 10) + 1, CUDA_ERROR_INVALID_VALUE},
		{exact, {2, 1, 1}, {8, 4, 1}, 0, CUDA_SUCCESS},
		{exact, {2, 1, 1}, {4, 8, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{few, {1, 1, 1}, {32, 1, 1}, 0, CUDA_SUCCESS},
		{few, {1, 1, 1}, {33, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
		{crowd, {1, 1, 1}, {1, 1, 1}, (48 << 10) - 40000, CUDA_SUCCESS},
		{crowd, {1, 1, 1}, {1, 1, 1}, (48 << 10) - 39999, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++)
		CHECK_RESULT(shape(table[i].f, table[i].g[0], table[i].g[1], table[i].g[2],
				     table[i].b[0], table[i].b[1], table[i].b[2], table[i].shared),
			table[i].result);
	OK(cuCtxSynchronize());
}

static CUresult cluster(CUfunction f, unsigned grid, unsigned x, unsigned y, unsigned z)
{
	CUlaunchAttribute attribute = {
		.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {x, y, z}};
	CUlaunchConfig config = {.gridDimX = grid,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1};
	return cuLaunchKernelEx(&config, f, NULL, NULL);
}

static void test_clusters(void)
{
	test_context();
	CUfunction f = files_kernel(text, "none");
	OK(cluster(f, 8, 8, 1, 1));
	OK(cluster(f, 8, 1, 1, 1));
	CHECK_RESULT(cluster(f, 8, 3, 1, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	CHECK_RESULT(cluster(f, 8, 1, 2, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	CHECK_RESULT(cluster(f, 16, 16, 1, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	CHECK_RESULT(cluster(f, 8, 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	OK(cluster(f, 16, 16, 1, 1));
	CHECK_RESULT(cluster(f, 17, 17, 1, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	CUcontext second = files_second();
	f = files_kernel(text, "none");
	CHECK_RESULT(cluster(f, 8, 2, 1, 1), CUDA_ERROR_NOT_SUPPORTED); /* an 8.0 has none */
	files_second_end(second);
}

static void test_parameters(void)
{
	CUdeviceptr p;
	test_context();
	OK(cuMemAlloc(&p, 4));
	CUfunction f = files_kernel(text, "two");
	unsigned value = 7;
	struct {
		CUdeviceptr p;
		unsigned v;
	} packed = {p, 8};
	size_t size = 12;
	void *params[] = {&p, &value}, *missing[] = {&p, NULL},
	     *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER,
		     &packed, CU_LAUNCH_PARAM_END},
	     *strange[] = {(void *)7, &size, CU_LAUNCH_PARAM_END};
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	value = 99; /* taken in the call */
	IS(files_word(p), 7);
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	IS(files_word(p), 8);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, strange),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra + 4),
		CUDA_ERROR_INVALID_VALUE);
	size = 11;
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		CUDA_ERROR_INVALID_VALUE);
	IS(files_word(p), 8);
	CHECK_RESULT(cuLaunchKernelEx(NULL, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.numAttrs = 1};
	CHECK_RESULT(cuLaunchKernelEx(&config, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	/* Another context's function. */
	CUcontext second = files_second();
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	files_second_end(second);
	CHECK_RESULT(
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)(uintptr_t)0x1230, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree(p));
}

static void test_attributes(void)
{
	test_context();
	CUfunction f = files_kernel(text, "none");
	static const struct {
		int id;
		CUresult result;
	} table[] = {
		{CU_LAUNCH_ATTRIBUTE_IGNORE, CUDA_SUCCESS},
		{CU_LAUNCH_ATTRIBUTE_PRIORITY, CUDA_SUCCESS},
		{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUDA_SUCCESS},
		{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
			CUDA_ERROR_INVALID_HANDLE}, /* of no event */
		{CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CUDA_ERROR_INVALID_HANDLE},
		{CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CUDA_ERROR_NOT_SUPPORTED},
		{-1, CUDA_ERROR_INVALID_VALUE},
		{100, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		CUlaunchAttribute attribute = {.id = (CUlaunchAttributeID)table[i].id};
		CUlaunchConfig config = {.gridDimX = 1,
			.gridDimY = 1,
			.gridDimZ = 1,
			.blockDimX = 1,
			.blockDimY = 1,
			.blockDimZ = 1,
			.attrs = &attribute,
			.numAttrs = 1};
		CHECK_RESULT(cuLaunchKernelEx(&config, f, NULL, NULL), table[i].result);
	}
	OK(cuCtxSynchronize());
}

/* Each fault ends the context with its own error and says what and where. */
static void test_faults(void)
{
	static const struct {
		const char *body;
		CUresult result;
		const char *said;
	} table[] = {
		{"mov.u64 a, 0x1000; ld.global.u32 r, [a];", CUDA_ERROR_ILLEGAL_ADDRESS, "0x1000"},
		{"mov.u64 a, 0; st.global.u32 [a], r;", CUDA_ERROR_ILLEGAL_ADDRESS, ""},
		{"mov.u64 a, local; ld.local.u32 r, [a+1];", CUDA_ERROR_MISALIGNED_ADDRESS, ""},
		{"trap;", CUDA_ERROR_LAUNCH_FAILED, "trap"},
		{"mov.u32 r, shared; ld.shared.u32 r, [r+4096];", CUDA_ERROR_ILLEGAL_ADDRESS, ""},
		{"mov.u64 a, 0x12345; atom.global.add.u32 r, [a], 1;",
			CUDA_ERROR_MISALIGNED_ADDRESS, ""},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		char whole[512];
		test_context();
		snprintf(whole, sizeof(whole),
			".visible .entry fault()\n{\n.reg .b64 a; .reg .b32 r; .local .align 4 .b8 local[16]; "
			".shared .align 4 .b8 shared[16];\n%s\nret;\n}\n",
			table[i].body);
		CUfunction f = files_kernel(whole, "fault");
		files_catch(2);
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		CUresult result = cuCtxSynchronize();
		const char *said = files_caught();
		if (result != table[i].result)
			fprintf(stderr, "%s\n", table[i].body);
		IS(result, table[i].result);
		HAS(said, "fault");
		HAS(said, table[i].said);
		CHECK_RESULT(cuMemAlloc(&(CUdeviceptr){0}, 4), table[i].result);
	}
	test_context();
}

UNIT_SUITE(softgpu / module / launch, {"shapes", test_shapes}, {"clusters", test_clusters},
	{"parameters", test_parameters}, {"attributes", test_attributes}, {"faults", test_faults})
