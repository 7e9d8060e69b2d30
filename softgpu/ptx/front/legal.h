/* SPDX-License-Identifier: Apache-2.0 */
/* Which modifiers and types go together (legal.c). */
#pragma once

#include <stdbool.h>

#include "softgpu/ptx/front/parser.h"

/*
 * Whether the modifiers and types are legal together, for a .target (legal.c); an opcode without a
 * rule is left to its decoder.
 */
/*
 * Before the two below, once in a process; false without memory, and then a later call may try
 * again.
 */
bool ckt_ptx_index_rules(void);
bool ckt_ptx_legal(const struct ptx_raw *raw, unsigned target);
/* a modifier that appears in no rule of the opcode, or NULL */
const char *ckt_ptx_stranger(const struct ptx_raw *raw);
