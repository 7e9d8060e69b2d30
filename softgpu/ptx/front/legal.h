/* Which modifiers and types go together (legal.c). */
#pragma once

#include <stdbool.h>

#include "softgpu/ptx/front/parser.h"

/*
 * Whether the modifiers and types go together, for a .target (legal.c); an opcode without a rule is
 * its decoder's affair.
 */
/* Before the two below, once in a process; false without memory, and then it can be tried again. */
bool ckt_ptx_index_rules(void);
bool ckt_ptx_legal(const struct ptx_raw *raw, unsigned target);
/* a modifier that no rule of the opcode has, or NULL */
const char *ckt_ptx_stranger(const struct ptx_raw *raw);
