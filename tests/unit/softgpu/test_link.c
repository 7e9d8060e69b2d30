/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/module/link.c: what a linker takes, when, and what it says; what it made loads again. */
#include <unistd.h>

#include "files.h"

static const char caller[] = PTX_HEADER
	".extern .global .align 4 .u32 shared;\n.visible .entry use(.param .u64 p)\n{\n"
	".reg .b64 a; .reg .b32 r;\n"
	"ld.param.u64 a, [p]; ld.global.u32 r, [shared]; st.global.u32 [a], r; ret;\n}\n";
static const char owner[] = PTX_HEADER ".visible .global .align 4 .u32 shared = 41;\n";

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size)
{
	return cuLinkAddData(state, type, (void *)(uintptr_t)data, size, NULL, 0, NULL, NULL);
}

static void test_inputs(void)
{
	CUlinkState state;
	test_context();
	OK(cuLinkCreate(0, NULL, NULL, &state));
	files_catch(2);
	CHECK_RESULT(add(state, CU_JIT_INPUT_PTX, caller, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(add(state, CU_JIT_INPUT_PTX, NULL, 5), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(add(state, CU_JIT_INPUT_NVVM, caller, 5), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(add(state, (CUjitInputType)77, caller, 5), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(
		add(state, CU_JIT_INPUT_CUBIN, "\177ELF\2\1\1", 8), CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(add(state, CU_JIT_INPUT_FATBINARY, "neither", 8), CUDA_ERROR_INVALID_IMAGE);
	/* one without device code */
	OK(add(state, CU_JIT_INPUT_OBJECT, "\177ELF\2\1\1", 8));
	CHECK_RESULT(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)caller,
			     sizeof(caller), NULL, 1, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(add((CUlinkState)(uintptr_t)0x1230, CU_JIT_INPUT_PTX, caller, sizeof(caller)),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	void *image;
	HAS(files_caught(), "link: ");
	/* Nothing that counts was added: the image holds nothing, as an H200's does. */
	CHECK_RESULT(cuLinkComplete(state, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkComplete(state, &image, NULL));
	CUmodule empty;
	unsigned count = 7;
	OK(cuModuleLoadData(&empty, image));
	OK(cuModuleGetFunctionCount(&count, empty));
	IS(count, 0);
	OK(cuModuleUnload(empty));
	CUjit_option fallback = CU_JIT_FALLBACK_STRATEGY;
	void *value = NULL;
	CUlinkState other;
	CHECK_RESULT(cuLinkCreate(1, &fallback, &value, &other), CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkDestroy(state));
	CHECK_RESULT(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuLinkCreate(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLinkCreate(1, NULL, NULL, &state), CUDA_ERROR_INVALID_VALUE);
}

static void test_made(void)
{
	CUlinkState state, again;
	CUmodule module;
	CUfunction f;
	CUdeviceptr p;
	void *image = NULL, *same = NULL;
	size_t size = 0;
	char path[] = "/tmp/cricket-link-XXXXXX";
	int fd = mkstemp(path);
	IS(write(fd, owner, strlen(owner)), strlen(owner));
	close(fd);
	test_context();
	OK(cuMemAlloc(&p, 4));
	OK(cuLinkCreate(0, NULL, NULL, &state));
	/* A text may go on behind its end, or end before its size. */
	char padded[sizeof(caller) + 50] = "";
	memcpy(padded, caller, sizeof(caller));
	OK(add(state, CU_JIT_INPUT_PTX, padded, sizeof(padded)));
	OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	remove(path);
	OK(cuLinkComplete(state, &image, &size));
	OK(cuLinkComplete(state, &same, NULL));
	YES(image == same);
	CHECK_RESULT(add(state, CU_JIT_INPUT_PTX, owner, sizeof(owner)), CUDA_ERROR_INVALID_VALUE);
	/* What was linked is an input again. */
	OK(cuLinkCreate(0, NULL, NULL, &again));
	OK(add(again, CU_JIT_INPUT_CUBIN, image, size));
	OK(cuLinkDestroy(state));
	OK(cuLinkComplete(again, &image, &size));
	OK(cuModuleLoadData(&module, image));
	OK(cuLinkDestroy(again));
	OK(cuModuleGetFunction(&f, module, "use"));
	void *params[] = {&p};
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	IS(files_word(p), 41);
	OK(cuMemFree(p));
}

/*
 * A target below the device's is kept to; one above it is not, since nothing made for it would
 * load.
 */
static void test_target(void)
{
	static const struct {
		uintptr_t target;
		CUresult for_sm_90;
	} table[] = {{90, CUDA_SUCCESS}, {120, CUDA_SUCCESS}, {80, CUDA_ERROR_NO_BINARY_FOR_GPU},
		{0x10000 + 90, CUDA_SUCCESS}, {0, CUDA_SUCCESS}};
	static const char text[] =
		".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
	test_context();
	for (size_t i = 0; i < COUNT(table); i++) {
		CUlinkState state;
		CUjit_option option = CU_JIT_TARGET;
		void *value = (void *)table[i].target, *image;
		OK(cuLinkCreate(1, &option, &value, &state));
		OK(add(state, CU_JIT_INPUT_PTX, text, sizeof(text)));
		CHECK_RESULT(cuLinkComplete(state, &image, NULL), table[i].for_sm_90);
		OK(cuLinkDestroy(state));
	}
}

UNIT_SUITE(softgpu / module / link, {"inputs", test_inputs}, {"made", test_made},
	{"target", test_target})
