/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded atom and red instructions (op_atom.c), for the handlers and for compiled kernels
 * (emit_atom.c).
 */
#pragma once

#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/lane.h"

/* The target of insn->side. */
struct atomic {
	int op; /* enum atomic_op, lane.h */
	enum ptx_type type;
	enum ptx_space space;
	uint8_t bytes, n; /* bytes of one element; number of elements */
	/* PTX_OPERAND_NONE: the result is not used */
	int32_t d[PTX_MAX_ELEMENTS], b[PTX_MAX_ELEMENTS], c;
};
