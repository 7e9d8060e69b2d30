/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX that a host object or an archive of them holds. */
#pragma once

#include <stddef.h>

#include "softgpu/cuda_api.h"

struct ckt_soft_texts;

/*
 * The PTX of every fat binary in a host object or archive; one without any is ignored, with a debug
 * line.
 */
CUresult ckt_soft_archive_texts(const void *data, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, const char *name, char *log, size_t log_size_bytes);
