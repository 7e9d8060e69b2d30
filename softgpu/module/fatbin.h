/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX in an image of any kind. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "softgpu/cuda_api.h"

struct ckt_ptx_text;

/* Size of the line that says why an image is refused. */
enum { CKT_SOFT_LOG_MAX = 1024 };

/* PTX texts to be linked together. */
struct ckt_soft_texts {
	struct ckt_ptx_text *texts;
	char **buffers; /* texts[i].text, owned */
	size_t n, n_max;
};

void ckt_soft_texts_fini(struct ckt_soft_texts *texts);
/* Adds a copy of text; strips trailing NULs. */
CUresult ckt_soft_texts_add(
	struct ckt_soft_texts *texts, const char *text, size_t size_bytes, const char *name);
/*
 * Collects an image's PTX for a device.  The image is PTX text or a fat binary (wrapper or
 * container), plain or compressed.  size_bytes may be SIZE_MAX if only the image knows its size.
 * On failure, `log` gets one line.
 */
CUresult ckt_soft_image_texts(const void *image, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, char *log, size_t log_size_bytes);
/*
 * Whether a container resembles the device runtime's: machine code for the capability, but PTX for
 * later capabilities only.
 */
bool ckt_soft_image_is_library(const void *image, size_t size_bytes, unsigned capability);
/* Makes a fat binary container with all texts as one linked unit; malloc'd. */
CUresult ckt_soft_image_pack(const struct ckt_soft_texts *texts, unsigned capability,
	void **ret_image, size_t *ret_size_bytes);
CUresult ckt_soft_file_read(const char *path, void **ret_data, size_t *ret_size_bytes);
