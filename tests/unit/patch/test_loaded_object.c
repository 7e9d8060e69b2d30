/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/loaded_object.h: what is read off a mapped object, one of the loader's and ones made
 * by hand.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/patch/loaded_object.h"
#include "image.h"
#include "tests/unit/suite.h"

static int find(struct dl_phdr_info *info, size_t size, void *opaque)
{
	struct ckt_loaded_object *object = opaque, candidate;
	ckt_loaded_object_from_info(&candidate, info);
	if (!strstr(candidate.path, object->path) || !*candidate.path != !*object->path)
		return 0;
	*object = candidate;
	return 1;
}

/* A library that this program is linked with. */
static void test_loaded(void)
{
	struct ckt_loaded_object object = {.path = "libcunit"}, same;
	struct ckt_dynamic dynamic;
	struct link_map *map;
	Dl_info info;
	MUST(dl_iterate_phdr(find, &object), 1);
	MUST(ckt_loaded_object_dynamic(&object, &dynamic), true);
	HAS(dynamic.soname, "libcunit.so");
	YES(ckt_patch_dynamic_needs(&dynamic, "libc.so.6"));
	NO(ckt_patch_dynamic_needs(&dynamic, "libc.so"));
	NO(ckt_patch_dynamic_needs(&dynamic, ""));
	void *function = ckt_patch_dynamic_symbol(&object, &dynamic, "CU_add_test");
	YES(function && function == dlsym(RTLD_DEFAULT, "CU_add_test"));
	/* What it imports is not its own. */
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, "malloc"));
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, "CU_add_tes"));
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, ""));
	MUST(dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) != 0, 1);
	MUST(ckt_loaded_object_from_link_map(&same, map), true);
	IS(same.base, object.base);
	IS(same.phnum, object.phnum);
	IS((uintptr_t)same.phdr, (uintptr_t)object.phdr);
	TEXT(ckt_loaded_object_file(&same), map->l_name);
	TEXT(ckt_loaded_object_name(&same), map->l_name);
}

static void test_program(void)
{
	struct ckt_loaded_object object = {.path = ""}, same;
	struct ckt_dynamic dynamic;
	struct link_map map = {.l_name = NULL};
	char path[4096] = "";
	MUST(dl_iterate_phdr(find, &object), 1);
	YES(ckt_loaded_object_dynamic(&object, &dynamic));
	YES(dynamic.soname == NULL);
	TEXT(ckt_loaded_object_file(&object), "/proc/self/exe");
	YES(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
	TEXT(ckt_loaded_object_name(&object), path);
	MUST(ckt_loaded_object_from_link_map(&same, &map), true);
	TEXT(same.path, "");
	IS((uintptr_t)same.phdr, (uintptr_t)object.phdr);
	IS(same.phnum, object.phnum);
}

/* Its dynamic section holds what the file holds: nobody has made addresses of it. */
static void test_vdso(void)
{
	struct ckt_loaded_object object = {.path = "linux-vdso"};
	struct ckt_dynamic dynamic;
	if (!dl_iterate_phdr(find, &object))
		return;
	MUST(ckt_loaded_object_dynamic(&object, &dynamic), true);
	TEXT(dynamic.soname, "linux-vdso.so.1");
}

static void test_symbols(void)
{
	static const struct image_plan plan = {.soname = "libmade.so",
		.needed = "libother.so",
		.symbols = {{"first", IMAGE_TEXT}, {"data", IMAGE_DATA, .is_data = true},
			{"import", 0, .undefined = true}, {"last", IMAGE_TEXT + 32}}};
	static const struct {
		const char *name;
		uint64_t value;
	} rows[] = {{"first", IMAGE_TEXT}, {"last", IMAGE_TEXT + 32}, {"data", 0}, {"import", 0},
		{"firs", 0}, {"first1", 0}, {"", 0}};
	uint8_t *image = image_make(&plan);
	struct ckt_loaded_object object = image_object(image, "made");
	struct ckt_dynamic dynamic;
	MUST(ckt_loaded_object_dynamic(&object, &dynamic), true);
	TEXT(dynamic.soname, "libmade.so");
	YES(ckt_patch_dynamic_needs(&dynamic, "libother.so"));
	for (size_t i = 0; i < COUNT(rows); i++)
		IS((uintptr_t)ckt_patch_dynamic_symbol(&object, &dynamic, rows[i].name),
			rows[i].value ? (uintptr_t)image + rows[i].value : 0);
	/* No hash table, one without buckets, one with an empty bucket. */
	uint32_t *table = (uint32_t *)dynamic.gnu_hash;
	uint32_t empty[] = {1, 1, 0, 0, 0};
	dynamic.gnu_hash = NULL;
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, "first"));
	dynamic.gnu_hash = empty;
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, "first"));
	dynamic.gnu_hash = table;
	table[0] = 0;
	YES(!ckt_patch_dynamic_symbol(&object, &dynamic, "first"));
	image_free(image);
}

static void test_refused(void)
{
	static const struct image_plan plan = {.soname = "libmade.so"};
	uint8_t *image = image_make(&plan);
	ElfW(Ehdr) *header = (ElfW(Ehdr) *)image;
	struct ckt_loaded_object object;
	struct ckt_dynamic dynamic = {.soname = "before"};
	struct link_map map = {.l_name = (char *)"made", .l_addr = (uintptr_t)image};
	YES(ckt_loaded_object_from_link_map(&object, &map));
	IS(object.phnum, 3);
	map.l_addr = 0;
	NO(ckt_loaded_object_from_link_map(&object, &map));
	map.l_addr = (uintptr_t)image + 8;
	NO(ckt_loaded_object_from_link_map(&object, &map));
	map.l_addr = (uintptr_t)image;
	header->e_phentsize--;
	NO(ckt_loaded_object_from_link_map(&object, &map));
	header->e_phentsize++;
	header->e_ident[0] = 0;
	NO(ckt_loaded_object_from_link_map(&object, &map));
	/* No dynamic section, and one without symbols. */
	object = image_object(image, "made");
	object.phnum = 2;
	NO(ckt_loaded_object_dynamic(&object, &dynamic));
	object.phnum = 3;
	YES(ckt_loaded_object_dynamic(&object, &dynamic));
	dynamic.soname = "before";
	((ElfW(Dyn) *)(image + object.phdr[2].p_vaddr))[0].d_tag = DT_DEBUG;
	NO(ckt_loaded_object_dynamic(&object, &dynamic));
	TEXT(dynamic.soname, "before");
	image_free(image);
}

UNIT_SUITE(object, {"loaded", test_loaded}, {"program", test_program}, {"vdso", test_vdso},
	{"symbols", test_symbols}, {"refused", test_refused})
