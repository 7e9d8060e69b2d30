/* SPDX-License-Identifier: Apache-2.0 */
/* client/patch/nvrtc.c on libraries that have NVRTC's and nvJitLink's names and functions. */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <dlfcn.h>
#include <link.h>

#include "client/patch/nvrtc.h"

static void test_wanted(void)
{
	char *with[] = {"A=1", "CRICKET_SOFT_PTX=1", NULL},
	     *without[] = {"XCRICKET_SOFT_PTX=1", "CRICKET_SOFT_PTX=0", "CRICKET_SOFT_PTX", NULL},
	     *none[] = {NULL};
	CU_ASSERT_TRUE(ckt_nvrtc_wanted(with));
	CU_ASSERT_FALSE(ckt_nvrtc_wanted(without));
	CU_ASSERT_FALSE(ckt_nvrtc_wanted(none));
	CU_ASSERT_FALSE(ckt_nvrtc_wanted(NULL));
}

static void test_redirect(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	struct ckt_loaded_object object;
	CU_ASSERT_PTR_NOT_NULL_FATAL(library);
	CU_ASSERT_EQUAL_FATAL(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	int (*get_size)(void *, size_t *) =
		(int (*)(void *, size_t *))dlsym(library, "nvrtcGetCUBINSize");
	int (*get)(void *, char *) = (int (*)(void *, char *))dlsym(library, "nvrtcGetCUBIN");
	int program = 10;
	size_t size = 0;
	char text = 0;
	CU_ASSERT_EQUAL(get(&program, &text), 14);
	CU_ASSERT_TRUE_FATAL(ckt_loaded_object_from_link_map(&object, map));
	CU_ASSERT_TRUE(ckt_nvrtc_redirect(&object));
	CU_ASSERT_EQUAL(get_size(&program, &size), 1);
	CU_ASSERT_EQUAL(size, 110);
	CU_ASSERT_EQUAL(get(&program, &text), 12);
	CU_ASSERT_EQUAL(text, 'P');
	get = (int (*)(void *, char *))dlsym(library, "nvrtcGetPTX");
	CU_ASSERT_EQUAL(get(&program, &text), 12);
	dlclose(library);
}

/* nvJitLink: its version is found no more, anything else still is, and twice is as good as once. */
static void test_linker(void)
{
	void *library = dlopen(LINKER, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	struct ckt_loaded_object object;
	CU_ASSERT_PTR_NOT_NULL_FATAL(library);
	CU_ASSERT_EQUAL_FATAL(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	CU_ASSERT_PTR_NOT_NULL(dlsym(library, "nvJitLinkVersion"));
	CU_ASSERT_TRUE_FATAL(ckt_loaded_object_from_link_map(&object, map));
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(ckt_nvrtc_redirect(&object));
		CU_ASSERT_PTR_NULL(dlsym(library, "nvJitLinkVersion"));
		int (*create)(void) = (int (*)(void))dlsym(library, "nvJitLinkCreate");
		CU_ASSERT_PTR_NOT_NULL_FATAL(create);
		CU_ASSERT_EQUAL(create(), 6);
	}
	dlclose(library);
}

/* libc is another library, and stays as it is. */
static void test_others(void)
{
	struct link_map *map;
	struct ckt_loaded_object object;
	Dl_info info;
	CU_ASSERT_NOT_EQUAL_FATAL(
		dladdr1((void *)dlopen, &info, (void **)&map, RTLD_DL_LINKMAP), 0);
	CU_ASSERT_TRUE_FATAL(ckt_loaded_object_from_link_map(&object, map));
	CU_ASSERT_FALSE(ckt_nvrtc_redirect(&object));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("nvrtc", NULL, NULL);
	CU_add_test(suite, "wanted", test_wanted);
	CU_add_test(suite, "redirect", test_redirect);
	CU_add_test(suite, "linker", test_linker);
	CU_add_test(suite, "others", test_others);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
