/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom and red as they are decoded (op_atom.c), for the handlers and for compiled kernels
 * (emit_atom.c).
 */
#pragma once

#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/lane.h"

/* insn->side. */
struct atomic {
	int op; /* enum atomic_op, lane.h */
	enum ptx_type type;
	enum ptx_space space;
	uint8_t bytes, n; /* of one element; how many elements */
	/* PTX_OPERAND_NONE: the result is not wanted */
	int32_t d[PTX_MAX_ELEMENTS], b[PTX_MAX_ELEMENTS], c;
};
