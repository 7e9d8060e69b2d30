/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared library made by hand, as the dynamic loader would have mapped it: ELF header, program
 * headers, dynamic section, symbols with their GNU hash, and a page of text.
 */
#pragma once

#include "client/patch/loaded_object.h"

enum {
	IMAGE_SYMBOLS_MAX = 16,
	IMAGE_PAGE = 4096,
	IMAGE_TEXT = 2 * IMAGE_PAGE,
	IMAGE_DATA = 3 * IMAGE_PAGE,
	IMAGE_BYTES = 4 * IMAGE_PAGE
};

struct image_symbol {
	const char *name;
	/* from the image's start: IMAGE_TEXT and up for what can be redirected */
	uint64_t value;
	bool undefined, is_data;
};

struct image_plan {
	const char *soname, *needed; /* NULL: none */
	struct image_symbol symbols[IMAGE_SYMBOLS_MAX];
	/* a page of thread-local data, as a static CUDA runtime brings */
	bool tls;
};

/* Its start; the text is 0xcc throughout.  image_free() it. */
uint8_t *image_make(const struct image_plan *plan);
void image_free(uint8_t *image);
struct ckt_loaded_object image_object(const uint8_t *image, const char *path);
/*
 * Where the jump at this place of the image goes; NULL where the bytes are as they were, (void *)-1
 * for anything else.
 */
void *image_jump(const uint8_t *image, uint64_t value);
/* What is written to stderr between the two.  Valid until the next. */
void image_stderr_begin(void);
const char *image_stderr_end(void);
