/* SPDX-License-Identifier: Apache-2.0 */
/* Special registers (sreg.c). */
#pragma once

#include <stddef.h>

#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/program.h"

int ckt_ptx_sreg_find(const char *name, size_t size); /* -1: not a special register */
enum ptx_type ckt_ptx_sreg_type(int sreg);
ptx_handler ckt_ptx_exec_sreg; /* x: the special register; y: bytes of d, 4 or 8 */
