/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that no PTX defines (builtin.c). */
#pragma once

#include <stdint.h>

#include "softgpu/ptx/program.h"

enum ptx_builtin {
	BUILTIN_NONE = 0,
	BUILTIN_VPRINTF,
	BUILTIN_MALLOC,
	BUILTIN_FREE,
	BUILTIN_ASSERTFAIL,
	BUILTIN_CG_HANDLE,
	BUILTIN_CG_SYNC,
	BUILTIN_SET_CONDITION
};
int ckt_ptx_builtin_find(const char *name);
int ckt_ptx_builtin_run(
	struct ptx_warp *w, const struct ptx_call *call, int builtin, uint32_t mask);
