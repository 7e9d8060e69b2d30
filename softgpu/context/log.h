/* SPDX-License-Identifier: Apache-2.0 */
/* What the soft GPU says, on stderr only. */
#pragma once

#include <stdatomic.h>

#include "softgpu/cuda_api.h"

/* Always one line on stderr. */
void ckt_soft_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * The same for what is refused: each text once a process, however often and by however many threads
 * it is asked for.
 */
void ckt_soft_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line where CRICKET_LOG starts with "debug". */
void ckt_soft_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Logs once per name that something is not supported and returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult ckt_soft_unsupported(atomic_bool *said, const char *what);
#define CKT_SOFT_UNSUPPORTED(what)                    \
	({                                            \
		static atomic_bool said_;             \
		ckt_soft_unsupported(&said_, (what)); \
	})
