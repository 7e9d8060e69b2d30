/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/module/link.c: the linker: inputs gathered here, linked by one command, contents by
 * their hash.
 */
#include <string.h>

#include "relay.h"

static void test_link(void)
{
	CUlinkState state;
	void *image = NULL;
	size_t size = 0;
	CUmodule module;
	CUfunction f;
	LOCAL(cuLinkCreate(0, NULL, NULL, &state), CUDA_SUCCESS);
	LOCAL(cuLinkCreate(0, NULL, NULL, NULL), BAD);
	IS(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)relay_ptx, strlen(relay_ptx) + 1, "a", 0,
		   NULL, NULL),
		CUDA_SUCCESS);
	LOCAL(cuLinkAddData(state, CU_JIT_INPUT_PTX, NULL, 5, "b", 0, NULL, NULL), BAD);
	LOCAL(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere/x.ptx", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	relay_mark();
	MUST(cuLinkComplete(state, &image, &size), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("link"), 1);
	YES(image && size > 0);
	IS(cuModuleLoadData(&module, image), CUDA_SUCCESS);
	IS(cuModuleGetFunction(&f, module, "add"), CUDA_SUCCESS);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	LOCAL(cuLinkDestroy(state), CUDA_SUCCESS);
	LOCAL(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(link, {"link", test_link})
