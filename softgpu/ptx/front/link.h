/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the symbols of all texts and prepares entries for launching (link.c). */
#pragma once

#include <stdint.h>

#include "softgpu/ptx/front/parser.h"

enum ckt_ptx_result ckt_ptx_link(struct ptx_parser *p);
int ckt_ptx_prepare(const struct ckt_ptx_function *entry, const struct ptx_prepared **ret_prepared);
void ckt_ptx_prepared_free(struct ckt_ptx_module *module, struct ptx_prepared *prepared);
uint64_t ckt_ptx_symbol_address(
	const struct ptx_symbol *symbol, const struct ptx_prepared *prepared);
