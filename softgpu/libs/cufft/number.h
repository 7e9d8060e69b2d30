/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes numbers of a transform as doubles: half, bfloat16, float, double, real or
 * complex.
 */
#pragma once

#include "softgpu/libs/cufft/layout.h"

size_t ckt_soft_cufft_number_size(enum ckt_layout_precision precision, bool real);
/* index: in numbers of that type. */
struct ckt_complex ckt_soft_cufft_number_read(
	enum ckt_layout_precision precision, bool real, const void *base, int64_t index);
/* Rounds to nearest even. */
void ckt_soft_cufft_number_write(enum ckt_layout_precision precision, bool real, void *base,
	int64_t index, struct ckt_complex value);
