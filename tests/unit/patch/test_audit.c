/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/audit.c: the loader's calls one after the other, with libraries made by hand.  The
 * file is included.
 */
#include "client/patch/audit.c"

#include "image.h"
#include "tests/unit/suite.h"

static const struct image_plan ours = {.soname = "libcudart.so.13",
	.needed = "libcuda.so.1",
	.symbols = {{"cudaMalloc", IMAGE_TEXT}}};
/* What a program may open by path. */
static const struct image_plan theirs = {
	.soname = "libcudart.so.12", .symbols = {{"cudaMalloc", IMAGE_TEXT}}, .tls = true};

struct opened {
	struct link_map map;
	uintptr_t cookie;
	uint8_t *image;
};

static void open_image(struct opened *opened, const struct image_plan *plan)
{
	opened->image = image_make(plan);
	opened->map =
		(struct link_map){.l_addr = (uintptr_t)opened->image, .l_name = (char *)"made"};
	opened->cookie = (uintptr_t)&opened->map;
	/* No flags: calls between the libraries are not traced. */
	IS(la_objopen(&opened->map, LM_ID_BASE, &opened->cookie), 0);
}

static void close_image(struct opened *opened)
{
	IS(la_objclose(&opened->cookie), 0);
	image_free(opened->image);
}

static void *jump(const struct opened *opened)
{
	return image_jump(opened->image, IMAGE_TEXT);
}

static void test_version(void)
{
	IS(la_version(1), 1);
	IS(la_version(LAV_CURRENT), LAV_CURRENT);
	IS(la_version(LAV_CURRENT + 1), LAV_CURRENT);
}

static void test_life(void)
{
	struct opened runtime_13, program, library, second, failed, late;
	uintptr_t cookie = 0;
	/* What the program needs is the start-up pass's: the runtime among it is remembered. */
	open_image(&runtime_13, &ours);
	open_image(&program, &theirs);
	la_activity(&cookie, LA_ACT_ADD);
	NO(runtime.found);
	la_activity(&cookie, LA_ACT_CONSISTENT);
	YES(runtime.found);
	YES(started);
	YES(!jump(&program));
	IS(pending_count, 0);
	/* What is opened later is redirected, once all of it is mapped. */
	open_image(&library, &theirs);
	open_image(&second, &theirs);
	la_activity(&cookie, LA_ACT_ADD);
	YES(!jump(&library));
	errno = 5;
	la_activity(&cookie, LA_ACT_CONSISTENT);
	IS(errno, 5);
	IS((uintptr_t)jump(&library), (uintptr_t)runtime_13.image + IMAGE_TEXT);
	IS((uintptr_t)jump(&second), (uintptr_t)runtime_13.image + IMAGE_TEXT);
	YES(!jump(&program));
	/* An open that failed: what is gone is not looked at. */
	open_image(&failed, &theirs);
	open_image(&late, &theirs);
	close_image(&failed);
	la_activity(&cookie, LA_ACT_CONSISTENT);
	YES(jump(&late) != NULL);
	close_image(&late);
	close_image(&library);
	YES(runtime.found);
	/* Nothing leads into a runtime that has been closed. */
	close_image(&runtime_13);
	NO(runtime.found);
	open_image(&late, &theirs);
	la_activity(&cookie, LA_ACT_CONSISTENT);
	YES(!jump(&late));
	close_image(&late);
	close_image(&second);
	close_image(&program);
	/* Someone else's cookie. */
	cookie = 0;
	IS(la_objclose(&cookie), 0);
}

static void test_limit(void)
{
	static struct link_map map;
	uintptr_t cookie = (uintptr_t)&map;
	for (unsigned i = 0; i < PENDING_MAX + 1; i++)
		IS(la_objopen(&map, LM_ID_BASE, &cookie), 0);
	IS(pending_count, PENDING_MAX);
	IS(la_objclose(&cookie), 0);
	la_activity(&cookie, LA_ACT_CONSISTENT);
	IS(pending_count, 0);
}

/*
 * The name as it was said leads to the shim; where the loader looks for others is its own affair.
 */
static void test_search(void)
{
	static char *none[] = {NULL};
	uintptr_t cookie = 0;
	char plain[] = "libplain.so", genuine[] = "/x/libcublas.so.13";
	ckt_patch_libraries_init_in(SHIMS, none);
	TEXT(la_objsearch(genuine, &cookie, LA_SER_ORIG), SHIMS "/libcublas.so.13");
	CU_ASSERT_PTR_EQUAL(la_objsearch(genuine, &cookie, LA_SER_LIBPATH), genuine);
	CU_ASSERT_PTR_EQUAL(la_objsearch(plain, &cookie, LA_SER_ORIG), plain);
	ckt_patch_libraries_init_in(NULL, none);
	CU_ASSERT_PTR_EQUAL(la_objsearch(genuine, &cookie, LA_SER_ORIG), genuine);
}

UNIT_SUITE(audit, {"search", test_search}, {"version", test_version}, {"life", test_life},
	{"limit", test_limit})
