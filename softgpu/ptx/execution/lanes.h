/* SPDX-License-Identifier: Apache-2.0 */
/* Operands and lanes, for the handlers of instructions. */
#pragma once

#include <stdint.h>

#include "softgpu/ptx/execution/grid.h"

#define PTX_CONST_BIT 0x80000000u
static inline void *ptx_at(const struct ptx_warp *w, int32_t operand)
{
	return w->bank[(uint32_t)operand >> 31] + ((uint32_t)operand & 0x7fffffffu);
}

#ifdef __clang__
#define PTX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_INDEPENDENT _Pragma("GCC ivdep")
#endif

/*
 * Runs the statement for every lane l of mask m.  Two registers are either the same or do not
 * overlap, so lanes never depend on each other.
 */
#define PTX_FOR_LANES(m, ...)                                                   \
	do {                                                                    \
		if ((m) == 0xffffffffu) {                                       \
			PTX_INDEPENDENT                                         \
			for (unsigned l = 0; l < PTX_LANES; l++) {              \
				__VA_ARGS__                                     \
			}                                                       \
		} else {                                                        \
			for (uint32_t rest_ = (m); rest_; rest_ &= rest_ - 1) { \
				unsigned l = (unsigned)__builtin_ctz(rest_);    \
				__VA_ARGS__                                     \
			}                                                       \
		}                                                               \
	} while (0)
