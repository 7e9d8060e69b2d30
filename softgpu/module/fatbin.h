/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX that an image holds, whatever kind of image it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "softgpu/cuda_api.h"

struct ckt_ptx_text;

/* Bytes for the line that says why an image is refused. */
enum { CKT_SOFT_LOG_MAX = 1024 };

/* PTX texts to be linked together. */
struct ckt_soft_texts {
	struct ckt_ptx_text *texts;
	char **buffers; /* texts[i].text, owned */
	size_t n, n_max;
};

void ckt_soft_texts_fini(struct ckt_soft_texts *texts);
/* Adds a copy of text; strips NULs at its end. */
CUresult ckt_soft_texts_add(
	struct ckt_soft_texts *texts, const char *text, size_t size_bytes, const char *name);
/*
 * What an image holds for a device: PTX text, a fat binary (wrapper or container), plain or
 * compressed.  size_bytes may be SIZE_MAX where only the image itself tells.  On failure `log` gets
 * one line.
 */
CUresult ckt_soft_image_texts(const void *image, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, char *log, size_t log_size_bytes);
/*
 * Whether a container is one like the device runtime's: code for the capability, but PTX only for
 * later ones.
 */
bool ckt_soft_image_is_library(const void *image, size_t size_bytes, unsigned capability);
/* A fat binary container with all the texts as one linked unit; malloc'd. */
CUresult ckt_soft_image_pack(const struct ckt_soft_texts *texts, unsigned capability,
	void **ret_image, size_t *ret_size_bytes);
CUresult ckt_soft_file_read(const char *path, void **ret_data, size_t *ret_size_bytes);
