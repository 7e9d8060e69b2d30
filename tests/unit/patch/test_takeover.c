/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/takeover.c: NVIDIA's library as it was loaded, whose functions then are the shim's.
 */
#include "client/patch/takeover.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "client/patch/libraries.h"
#include "image.h"
#include "tests/unit/suite.h"

static char *no_environment[] = {NULL};

static void test_functions(void)
{
	void *library = dlopen(GENUINE, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	struct ckt_loaded_object object;
	CU_ASSERT_PTR_NOT_NULL_FATAL(library);
	IS(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	CU_ASSERT_TRUE_FATAL(ckt_loaded_object_from_link_map(&object, map));
	int (*who)(int, double) = (int (*)(int, double))dlsym(library, "cublasWho"),
			(*alias)(int, double) = (int (*)(int, double))dlsym(library, "cublasAlias");
	int (*only)(void) = (int (*)(void))dlsym(library, "cublasGenuineOnly"),
	    *data = dlsym(library, "cublasData");
	CU_ASSERT_FATAL(who && alias && only && data);
	IS(who(3, 4), 107);
	ckt_patch_libraries_init_in(SHIMS, no_environment);
	CU_ASSERT_TRUE_FATAL(ckt_takeover_object(&object));
	errno = 5;
	IS(who(3, 4), 207);
	IS(errno, 5);
	IS(who(4, 4), 208);
	IS(alias(1, 1), 202);
	IS(*data, 100);
	/* What the shim lacks: cuBLAS's NOT_SUPPORTED, said once. */
	image_stderr_begin();
	IS(only(), 15);
	IS(only(), 15);
	TEXT(image_stderr_end(),
		"cricket: cublasGenuineOnly of libcublas.so.13 is not supported\n");
	ckt_patch_libraries_init_in(NULL, no_environment);
}

/* Nothing that can be called, or nothing at all. */
static void test_nothing(void)
{
	static const struct image_plan plans[] = {{.soname = "libcublas.so.13"},
		{.symbols = {{"cublasWho", IMAGE_TEXT}}},
		{.soname = "libcublas.so.13",
			.symbols = {{"cublasData", IMAGE_DATA, .is_data = true}}}};
	for (size_t i = 0; i < COUNT(plans); i++) {
		uint8_t *image = image_make(&plans[i]);
		struct ckt_loaded_object object = image_object(image, "made");
		NO(ckt_takeover_object(&object));
		CU_ASSERT_PTR_NULL(image_jump(image, IMAGE_TEXT));
		image_free(image);
	}
}

UNIT_SUITE(takeover, {"functions", test_functions}, {"nothing", test_nothing})
