/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/patch/redirect.h: who is our runtime, who may hold another, and what is written over it.
 * Finding the entry points by their contents needs NVIDIA's code: tests/preload does it on whole
 * programs.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "client/patch/redirect.h"
#include "cudacommon/static_runtimes.h"
#include "image.h"
#include "tests/unit/suite.h"

static const struct image_plan ours = {.soname = "libcudart.so.13",
	.needed = "libcuda.so.1",
	.symbols = {{"cudaMalloc", IMAGE_TEXT}}};

static void test_recognise(void)
{
	static const struct {
		struct image_plan plan;
		bool ours;
	} rows[] = {
		{{.soname = "libcudart.so.13",
			 .needed = "libcuda.so.1",
			 .symbols = {{"cudaMalloc", IMAGE_TEXT}}},
			true},
		/* NVIDIA's own, the preload library, another release, none at all. */
		{{.soname = "libcudart.so.13",
			 .needed = "libdl.so.2",
			 .symbols = {{"cudaMalloc", IMAGE_TEXT}}},
			false},
		{{.soname = "libcudart.so.13", .needed = "libcuda.so.1"}, false},
		{{.soname = "libcudart.so.13",
			 .needed = "libcuda.so.1",
			 .symbols = {{"cudaMalloc", 0, .undefined = true}}},
			false},
		{{.soname = "libcudart.so.12",
			 .needed = "libcuda.so.1",
			 .symbols = {{"cudaMalloc", IMAGE_TEXT}}},
			false},
		{{.needed = "libcuda.so.1", .symbols = {{"cudaMalloc", IMAGE_TEXT}}}, false},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t *image = image_make(&rows[i].plan);
		struct ckt_loaded_object object = image_object(image, "made");
		struct ckt_runtime runtime = {0};
		IS(ckt_patch_runtime_recognise(&runtime, &object), rows[i].ours);
		IS(runtime.found, rows[i].ours);
		IS(runtime.object.base, rows[i].ours ? object.base : 0);
		image_free(image);
	}
}

static void test_suspect(void)
{
	static const struct {
		ElfW(Phdr) phdr;
		bool suspect;
	} rows[] = {
		{{.p_type = PT_TLS, .p_align = 4096, .p_memsz = 4096}, true},
		{{.p_type = PT_TLS, .p_align = 65536, .p_memsz = 5000}, true},
		{{.p_type = PT_TLS, .p_align = 2048, .p_memsz = 4096}, false},
		{{.p_type = PT_TLS, .p_align = 4096, .p_memsz = 4095}, false},
		{{.p_type = PT_LOAD, .p_align = 4096, .p_memsz = 4096}, false},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		ElfW(Phdr) phdr[] = {
			{.p_type = PT_LOAD, .p_align = 4096, .p_memsz = 4096}, rows[i].phdr};
		struct ckt_loaded_object object = {.path = "made", .phdr = phdr, .phnum = 2};
		IS(ckt_redirect_suspect(&object), rows[i].suspect);
		object.phnum = 1;
		NO(ckt_redirect_suspect(&object));
	}
}

static unsigned name_of(const char *name)
{
	unsigned i = 0;
	while (i < ckt_static_names_count && strcmp(ckt_static_names[i], name) != 0)
		i++;
	MUST(i < ckt_static_names_count, 1);
	return i;
}

static void test_write(void)
{
	static const struct image_plan plan = {.soname = "libtext.so"};
	uint8_t *ours_image = image_make(&ours), *image = image_make(&plan);
	struct ckt_loaded_object object = image_object(ours_image, "ours");
	struct ckt_runtime runtime = {0};
	MUST(ckt_patch_runtime_recognise(&runtime, &object), true);
	unsigned known = name_of("cudaMalloc"), unknown = name_of("cudaFree");
	uintptr_t text = (uintptr_t)image + IMAGE_TEXT;
	struct ckt_redirect_entry entries[] = {
		{text + 64, known}, {text, unknown}, {text + IMAGE_PAGE - 16, known}};
	IS(ckt_redirect_write(&runtime, 13, entries, 0), 0);
	YES(!image_jump(image, IMAGE_TEXT));
	IS(ckt_redirect_write(&runtime, 13, entries, COUNT(entries)), 0);
	IS((uintptr_t)image_jump(image, IMAGE_TEXT + 64), (uintptr_t)ours_image + IMAGE_TEXT);
	IS((uintptr_t)image_jump(image, IMAGE_TEXT + IMAGE_PAGE - 16),
		(uintptr_t)ours_image + IMAGE_TEXT);
	/* A function that we do not have ends in one that says so, never nowhere. */
	IS((uintptr_t)image_jump(image, IMAGE_TEXT),
		(uintptr_t)ckt_redirect_target(&runtime, 13, "cudaFree", unknown));
	YES(image_jump(image, IMAGE_TEXT) != NULL);
	/* Between them nothing is written. */
	YES(!image_jump(image, IMAGE_TEXT + 12));
	YES(!image_jump(image, IMAGE_TEXT + 80));
	image_free(image);
	image_free(ours_image);
}

static void test_write_refused(void)
{
	static const struct image_plan plan = {.soname = "libtext.so"};
	uint8_t *image = image_make(&plan);
	struct ckt_runtime runtime = {0};
	struct ckt_redirect_entry entries[] = {
		{(uintptr_t)image + IMAGE_TEXT, 1}, {(uintptr_t)image + IMAGE_DATA, 1}};
	munmap(image + IMAGE_DATA, IMAGE_PAGE);
	IS(ckt_redirect_write(&runtime, 13, entries, 2), -ENOMEM);
	YES(!image_jump(image, IMAGE_TEXT));
	struct ckt_loaded_object object = image_object(image, "/made/library.so");
	image_stderr_begin();
	ckt_redirect_say_refused(&object, -EACCES);
	const char *said = image_stderr_end();
	HAS(said, "/made/library.so");
	HAS(said, "Permission denied");
	munmap(image, IMAGE_DATA);
}

/* One that the table does not know is left alone, and said to be there. */
static void test_unknown(void)
{
	static const struct image_plan plan = {.soname = "libprogram.so", .tls = true};
	uint8_t *ours_image = image_make(&ours), *image = image_make(&plan);
	struct ckt_loaded_object object = image_object(ours_image, "ours"),
				 suspect = image_object(image, "/made/library.so");
	struct ckt_runtime runtime = {0}, none = {0};
	MUST(ckt_patch_runtime_recognise(&runtime, &object), true);
	YES(ckt_redirect_suspect(&suspect));
	image_stderr_begin();
	IS(ckt_redirect_object(&suspect, &none), CKT_REDIRECT_NONE);
	IS(ckt_redirect_object(&suspect, &runtime), CKT_REDIRECT_NONE);
	TEXT(image_stderr_end(), "");
	strcpy((char *)image + IMAGE_DATA + 100, "cudaErrorCudartUnloading");
	image_stderr_begin();
	IS(ckt_redirect_object(&suspect, &none), CKT_REDIRECT_NONE);
	IS(ckt_redirect_object(&suspect, &runtime), CKT_REDIRECT_UNKNOWN);
	const char *said = image_stderr_end();
	HAS(said, "/made/library.so holds a static CUDA runtime");
	HAS(said, ckt_static_releases);
	/* A longer word is another. */
	strcpy((char *)image + IMAGE_DATA + 100, "cudaErrorCudartUnloadingX");
	IS(ckt_redirect_object(&suspect, &runtime), CKT_REDIRECT_NONE);
	image_free(image);
	image_free(ours_image);
}

UNIT_SUITE(redirect, {"recognise", test_recognise}, {"suspect", test_suspect},
	{"write", test_write}, {"write refused", test_write_refused}, {"unknown", test_unknown})
