/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/start.c: what the walk over the loaded objects keeps.  The file is included: its
 * constructor has run in this program, too, and found no runtime of ours.
 */
#include "client/patch/start.c"

#include "image.h"
#include "tests/unit/suite.h"

static void visit_image(struct walk *walk, const uint8_t *image)
{
	struct ckt_loaded_object object = image_object(image, "made");
	struct dl_phdr_info info = {.dlpi_addr = object.base,
		.dlpi_name = object.path,
		.dlpi_phdr = object.phdr,
		.dlpi_phnum = (ElfW(Half))object.phnum};
	IS(visit(&info, sizeof info, walk), 0);
}

static void test_walk(void)
{
	static const struct image_plan plans[] = {
		{.soname = "libplain.so"},
		{.soname = "libprogram.so", .tls = true},
		{.soname = "libcudart.so.13",
			.needed = "libcuda.so.1",
			.symbols = {{"cudaMalloc", IMAGE_TEXT}}},
		/* A second one is not ours. */
		{.soname = "libcudart.so.13",
			.needed = "libcuda.so.1",
			.symbols = {{"cudaMalloc", IMAGE_TEXT}},
			.tls = true},
	};
	static struct walk walk;
	uint8_t *images[COUNT(plans)];
	for (size_t i = 0; i < COUNT(plans); i++) {
		images[i] = image_make(&plans[i]);
		visit_image(&walk, images[i]);
		IS(walk.genuine_count, 0);
		IS(walk.runtime.found, i >= 2);
		IS(walk.count, i == 0 ? 0 : i < 3 ? 1 : 2);
	}
	IS(walk.runtime.object.base, (uintptr_t)images[2]);
	IS(walk.suspects[0].base, (uintptr_t)images[1]);
	IS(walk.suspects[1].base, (uintptr_t)images[3]);
	/* As many as there is room for. */
	for (unsigned i = 0; i < SUSPECTS_MAX + 2; i++)
		visit_image(&walk, images[1]);
	IS(walk.count, SUSPECTS_MAX);
	for (size_t i = 0; i < COUNT(plans); i++)
		image_free(images[i]);
}

/* Libraries that can have a shim are kept; beside this program lies one. */
static void test_genuine(void)
{
	static const struct image_plan plan = {
		.soname = "libcublas.so.13", .symbols = {{"cublasCreate_v2", IMAGE_TEXT}}};
	static struct walk walk;
	char *environment[] = {NULL}, *none[] = {(char *)"CRICKET_LIBRARIES=none", NULL};
	uint8_t *image = image_make(&plan);
	for (unsigned i = 0; i < GENUINE_MAX + 1; i++)
		visit_image(&walk, image);
	IS(walk.genuine_count, GENUINE_MAX);
	IS(walk.count, 0);
	take_over(&walk, none);
	CU_ASSERT_PTR_NULL(image_jump(image, IMAGE_TEXT));
	walk.genuine_count = 1;
	take_over(&walk, environment);
	IS(image[IMAGE_TEXT], 0xe9);
	IS(image[IMAGE_TEXT + 5], 0xcc);
	YES(is_same_file("/proc/self/exe", "/proc/self/exe"));
	NO(is_same_file("/proc/self/exe", "/dev/null"));
	NO(is_same_file("/nowhere", "/nowhere"));
	image_free(image);
}

/* Nothing to do is done without a word, and errno stays. */
static void test_nothing(void)
{
	char *environment[] = {NULL};
	image_stderr_begin();
	errno = 5;
	start(0, NULL, environment);
	IS(errno, 5);
	TEXT(image_stderr_end(), "");
}

UNIT_SUITE(start, {"walk", test_walk}, {"genuine", test_genuine}, {"nothing", test_nothing})
