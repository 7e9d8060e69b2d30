/* SPDX-License-Identifier: Apache-2.0 */
/* Legal combinations of modifiers and types (legal.c). */
#pragma once

#include <stdbool.h>

#include "softgpu/ptx/front/parser.h"

/*
 * Builds the index of rules, once per process, before the two functions below.  False if there is
 * no memory; a later call may try again.
 */
bool ckt_ptx_index_rules(void);
/*
 * Whether the modifiers and types are legal together for a .target; an opcode without a rule is left
 * to its decoder.
 */
bool ckt_ptx_legal(const struct ptx_raw *raw, unsigned target);
/* a modifier that appears in no rule of the opcode, or NULL */
const char *ckt_ptx_stranger(const struct ptx_raw *raw);
