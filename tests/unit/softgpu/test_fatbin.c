/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/fatbin.c: fat binaries as nvcc makes them (left out where there is no nvcc),
 * damaged ones, and the linker.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft_test.h"

static char directory[] = "/tmp/cricket-fatbin-XXXXXX";
static const char *nvcc;

static const char source[] = "__global__ void add_one(int *p) { p[threadIdx.x] += 1; }\n"
			     "__device__ int counter = 5;\n";

static bool run_nvcc(const char *arguments)
{
	char command[2048];
	snprintf(command, sizeof(command), "cd %s && '%s' %s >nvcc.log 2>&1", directory, nvcc,
		arguments);
	int status = system(command);
	if (status)
		fprintf(stderr, "failed: %s\n", command);
	return status == 0;
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static void *read_whole(const char *name, size_t *ret_size)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *f = fopen(path, "r");
	if (!f)
		return NULL;
	struct stat stat;
	fstat(fileno(f), &stat);
	char *data = malloc((size_t)stat.st_size);
	*ret_size = fread(data, 1, (size_t)stat.st_size, f);
	fclose(f);
	return data;
}

/* Runs add_one of the module and looks at what it did. */
static void check_module(CUmodule module, const char *name)
{
	CUfunction f = NULL;
	CUdeviceptr p;
	int value = 0;
	OK(cuModuleGetFunction(&f, module, name));
	OK(cuMemAlloc(&p, 4));
	OK(cuMemsetD32(p, 10, 1));
	void *params[] = {&p};
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH(&value, p, 4));
	CU_ASSERT_EQUAL(value, 11);
	OK(cuMemFree(p));
}

static void test_forms(void)
{
	if (!nvcc)
		return;
	static const struct {
		const char *options;
		CUresult expected;
	} forms[] = {
		{"-gencode arch=compute_80,code=compute_80 --compress-mode=none", CUDA_SUCCESS},
		{"-gencode arch=compute_80,code=compute_80 -Xfatbin -compress-all --compress-mode=size",
			CUDA_SUCCESS},
		{"-gencode arch=compute_80,code=compute_80 -Xfatbin -compress-all --compress-mode=speed",
			CUDA_SUCCESS},
		{"-gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_120,code=[sm_120,compute_120]",
			CUDA_SUCCESS},
		{"-gencode arch=compute_120a,code=compute_120a", CUDA_SUCCESS},
		{"-gencode arch=compute_90a,code=compute_90a -gencode arch=compute_80,code=compute_80",
			CUDA_SUCCESS},
		{"-gencode arch=compute_90a,code=compute_90a", CUDA_ERROR_NO_BINARY_FOR_GPU},
		{"-gencode arch=compute_120,code=sm_120", CUDA_ERROR_NO_BINARY_FOR_GPU},
		{"-gencode arch=compute_121,code=compute_121", CUDA_ERROR_NO_BINARY_FOR_GPU},
	};
	test_context();
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		char arguments[512];
		snprintf(arguments, sizeof(arguments), "-fatbin %s k.cu -o k.fatbin",
			forms[i].options);
		if (!run_nvcc(arguments)) {
			CU_FAIL("nvcc");
			continue;
		}
		size_t size;
		void *image = read_whole("k.fatbin", &size);
		CUmodule module;
		char log[256] = "";
		CUjit_option jit[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
		void *values[] = {log, (void *)sizeof(log)};
		CUresult result = cuModuleLoadDataEx(&module, image, 2, jit, values);
		if (result != CUDA_SUCCESS &&
			strstr(forms[i].options,
				"compute_90a")) /* for that GPU alone, and told so */
			CU_ASSERT_PTR_NOT_NULL(strstr(log, "only for compute_90a,"));
		if (result != forms[i].expected)
			fprintf(stderr, "%s: %d\n", forms[i].options, (int)result);
		CU_ASSERT_EQUAL(result, forms[i].expected);
		if (result == CUDA_SUCCESS) {
			check_module(module, "_Z7add_onePi");
			OK(cuModuleUnload(module));
			/* The same behind a wrapper as in an executable. */
			struct {
				uint32_t magic, version;
				const void *data, *more;
			} wrapper = {0x466243b1, 1, image, NULL};
			OK(cuModuleLoadFatBinary(&module, &wrapper));
			check_module(module, "_Z7add_onePi");
			OK(cuModuleUnload(module));
			/* Of another version it may hold anything: nothing in it is followed. */
			wrapper.version = 3;
			wrapper.data = wrapper.more = (void *)8;
			CU_ASSERT_EQUAL(
				cuModuleLoadFatBinary(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
		}
		free(image);
	}
}

/* Every truncation and many single damaged bytes: an error or a module, never a crash. */
static void test_damage(void)
{
	if (!nvcc ||
		!run_nvcc(
			"-fatbin -gencode arch=compute_80,code=compute_80 -Xfatbin -compress-all --compress-mode=size k.cu -o d.fatbin"))
		return;
	test_context();
	size_t size;
	unsigned char *image = read_whole("d.fatbin", &size);
	int saved = dup(2);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, 2);
	close(null);
	unsigned loaded = 0;
	CUlinkState state;
	for (size_t cut = 1; cut < size; cut += cut < 256 ? 1 : 3) {
		/* The linker is told the size, so that nothing behind it may be read. */
		unsigned char *part = malloc(cut);
		memcpy(part, image, cut);
		OK(cuLinkCreate(0, NULL, NULL, &state));
		loaded += cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, part, cut, "cut", 0, NULL,
				  NULL) == CUDA_SUCCESS;
		OK(cuLinkDestroy(state));
		free(part);
	}
	CU_ASSERT_EQUAL(loaded, 0);
	for (size_t i = 0; i < 120 && i < size; i++) {
		unsigned char before = image[i];
		image[i] ^= 0x81;
		OK(cuLinkCreate(0, NULL, NULL, &state));
		cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, image, size, "damaged", 0, NULL, NULL);
		OK(cuLinkDestroy(state));
		image[i] = before;
	}
	dup2(saved, 2);
	close(saved);
	free(image);
}

static const char caller[] = PTX_HEADER
	".extern .func (.param .b32 r) plus_one (.param .b32 x);\n"
	".visible .entry use(.param .u64 p)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<3>;\n"
	"ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n"
	"{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), plus_one, (a); ld.param.b32 %r2, [b]; }\n"
	"st.global.u32 [%rd1], %r2; ret;\n}\n";
static const char callee[] =
	PTX_HEADER ".visible .func (.param .b32 r) plus_one (.param .b32 x)\n{\n.reg .b32 %r<3>;\n"
		   "ld.param.u32 %r1, [x]; add.s32 %r2, %r1, 1; st.param.b32 [r], %r2; ret;\n}\n";

static void test_link(void)
{
	test_context();
	CUlinkState state;
	CUmodule module;
	void *image = NULL;
	size_t size = 0;
	char log[512] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	OK(cuLinkCreate(2, options, values, &state));
	OK(cuLinkAddData(
		state, CU_JIT_INPUT_PTX, (void *)caller, sizeof(caller), "caller", 0, NULL, NULL));
	CHECK_RESULT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_PTX);
	CU_ASSERT_PTR_NOT_NULL(strstr(log, "plus_one"));
	OK(cuLinkAddData(
		state, CU_JIT_INPUT_PTX, (void *)callee, sizeof(callee), "callee", 0, NULL, NULL));
	OK(cuLinkComplete(state, &image, &size));
	CHECK_RESULT(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)callee, sizeof(callee), "late",
			     0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	/* The header tells the whole length. */
	uint64_t length;
	uint16_t header;
	memcpy(&header, (char *)image + 6, sizeof(header));
	memcpy(&length, (char *)image + 8, sizeof(length));
	CU_ASSERT_EQUAL(header + length, size);
	void *copy = malloc(size);
	memcpy(copy, image, size);
	OK(cuLinkDestroy(state));
	CHECK_RESULT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
	OK(cuModuleLoadData(&module, copy));
	check_module(module, "use");
	OK(cuModuleUnload(module));
	free(copy);
	/* The same symbol twice. */
	OK(cuLinkCreate(0, NULL, NULL, &state));
	OK(cuLinkAddData(
		state, CU_JIT_INPUT_PTX, (void *)callee, sizeof(callee), "a", 0, NULL, NULL));
	OK(cuLinkAddData(
		state, CU_JIT_INPUT_PTX, (void *)callee, sizeof(callee), "b", 0, NULL, NULL));
	CHECK_RESULT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_PTX);
	OK(cuLinkDestroy(state));
}

/*
 * What only a GPU could link is left out as the device runtime is, and named where something needs
 * it.
 */
static void test_library(void)
{
	if (!nvcc)
		return;
	write_file("l.cu", "extern \"C\" __device__ int plus_one(int x) { return x + 1; }\n");
	test_context();
	static const struct {
		const char *options;
		CUresult expected;
	} forms[] = {
		{"-gencode arch=compute_121,code=compute_121 -gencode arch=compute_120,code=sm_120",
			CUDA_SUCCESS},
		{"-gencode arch=compute_121,code=compute_121 -gencode arch=compute_90,code=sm_90",
			CUDA_ERROR_NO_BINARY_FOR_GPU},
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		char arguments[512];
		snprintf(arguments, sizeof(arguments), "-dc -fatbin %s l.cu -o l.fatbin",
			forms[i].options);
		if (!run_nvcc(arguments)) {
			CU_FAIL("nvcc");
			continue;
		}
		size_t size, image_size;
		void *data = read_whole("l.fatbin", &size), *image;
		CUlinkState state;
		OK(cuLinkCreate(0, NULL, NULL, &state));
		CHECK_RESULT(cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, data, size, "library", 0,
				     NULL, NULL),
			forms[i].expected);
		OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)caller, sizeof(caller), "caller",
			0, NULL, NULL));
		CHECK_RESULT(cuLinkComplete(state, &image, &image_size), CUDA_ERROR_INVALID_PTX);
		OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)callee, sizeof(callee), "callee",
			0, NULL, NULL));
		OK(cuLinkComplete(state, &image, &image_size));
		OK(cuLinkDestroy(state));
		free(data);
	}
}

/*
 * Relocatable device code: objects go to the linker as they are, and an archive without PTX is
 * ignored.
 */
static void test_objects(void)
{
	if (!nvcc)
		return;
	write_file("a.cu",
		"extern __device__ int shared_value; __device__ int plus(int);\n"
		"__global__ void use(int *p) { *p = plus(*p) + shared_value - 4; }\n");
	write_file("b.cu",
		"__device__ int shared_value = 4; __device__ int plus(int x) { return x + 1; }\n");
	if (!run_nvcc("-dc -gencode arch=compute_80,code=compute_80 a.cu b.cu"))
		return;
	test_context();
	CUlinkState state;
	CUmodule module;
	void *image;
	size_t size;
	char path[256];
	OK(cuLinkCreate(0, NULL, NULL, &state));
	snprintf(path, sizeof(path), "%s/a.o", directory);
	OK(cuLinkAddFile(state, CU_JIT_INPUT_OBJECT, path, 0, NULL, NULL));
	snprintf(path, sizeof(path), "%s/b.o", directory);
	OK(cuLinkAddFile(state, CU_JIT_INPUT_OBJECT, path, 0, NULL, NULL));
	OK(cuLinkAddData(
		state, CU_JIT_INPUT_LIBRARY, (void *)"!<arch>\n", 8, "empty.a", 0, NULL, NULL));
	CHECK_RESULT(cuLinkAddFile(state, CU_JIT_INPUT_OBJECT, "/nonexistent", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	OK(cuLinkComplete(state, &image, &size));
	OK(cuModuleLoadData(&module, image));
	check_module(module, "_Z3usePi");
	OK(cuLinkDestroy(state));
}

int main(void)
{
	nvcc = getenv("CKT_TEST_NVCC");
	if (!nvcc || access(nvcc, X_OK) || !mkdtemp(directory)) {
		fprintf(stderr, "no nvcc: the forms it makes are left out\n");
		nvcc = NULL;
	} else {
		write_file("k.cu", source);
	}
	static const struct soft_test tests[] = {
		{"forms", test_forms},
		{"damage", test_damage},
		{"link", test_link},
		{"library", test_library},
		{"objects", test_objects},
	};
	int result = RUN_TESTS("soft fatbin", tests);
	if (nvcc) {
		char command[128];
		snprintf(command, sizeof(command), "rm -r %s", directory);
		if (system(command))
			result = 1;
	}
	return result;
}
