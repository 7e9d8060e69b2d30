/* SPDX-License-Identifier: Apache-2.0 */
/* CRICKET_SOFT_TRACE (trace.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/front/parser.h"

bool ckt_ptx_trace_wanted(void);
/* p->raw was decoded into the instructions from `first` on */
void ckt_ptx_trace_note(struct ptx_parser *p, size_t first);
void ckt_ptx_trace_start(struct ptx_block *block);
/*
 * Call after the instruction at pc of f.  ran: the traced lane executed it; otherwise its guard was
 * false.
 */
void ckt_ptx_trace_step(struct ptx_warp *w, const struct ptx_frame *frame,
	const struct ckt_ptx_function *f, uint32_t pc, bool ran);
