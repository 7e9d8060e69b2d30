/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the soft GPU, on stderr only. */
#pragma once

#include <stdatomic.h>

#include "softgpu/cuda_api.h"

/* Always writes one line to stderr. */
void ckt_soft_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Like ckt_soft_say, for refusals: logs each text once in a process, whichever threads repeat it.
 */
void ckt_soft_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes one line if CRICKET_LOG starts with "debug". */
void ckt_soft_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Logs once for each name that a call is not supported, and returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_soft_unsupported(atomic_bool *said, const char *what);
#define CKT_SOFT_UNSUPPORTED(what)                    \
	({                                            \
		static atomic_bool said_;             \
		ckt_soft_unsupported(&said_, (what)); \
	})
