/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded instructions of a whole warp (op_warp.c), for the handlers and for compiled kernels
 * (emit_warp.c).
 */
#pragma once

#include <stdint.h>

#include "softgpu/ptx/front/types.h"

enum ptx_warp_op { W_BARRIER, W_SHFL, W_VOTE, W_MATCH, W_REDUX, W_ELECT };
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

/* The target of insn->side, for instructions whose lanes wait for one another. */
struct warp_insn {
	enum ptx_warp_op op;
	unsigned mode;
	enum ptx_type type;
	int32_t member, a, b, c, d, p;
	bool negated, wide, nan, abs;
};
