/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX in a host object or an archive. */
#pragma once

#include <stddef.h>

#include "softgpu/cuda_api.h"

struct ckt_soft_texts;

/*
 * Adds the PTX of every fat binary in a host object or archive.  Input without PTX is ignored, with
 * a debug line.
 */
CUresult ckt_soft_archive_texts(const void *data, size_t size_bytes, unsigned capability,
	struct ckt_soft_texts *texts, const char *name, char *log, size_t log_size_bytes);
