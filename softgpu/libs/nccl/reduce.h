/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of numbers of every type.  They run in the order of the ranks, so the same inputs give
 * the same bits.
 *
 * Halves and 8-bit floats are summed in single precision and rounded once, to nearest even.
 * Integers wrap in their type.
 */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

/* An operation, applied to the ranks' numbers. */
struct ckt_reduction {
	ncclRedOp_t op; /* ncclSum to ncclAvg */
	/*
	 * An operator of ncclRedOpCreatePreMulSum: op is ncclSum, and each rank multiplies its own
	 * numbers.
	 */
	bool premultiply;
	const void *scalar; /* on the device; NULL: `immediate` */
	char immediate[8];  /* one number of the type */
};

/* Bytes of one number; 0 for an unknown type. */
size_t ckt_soft_nccl_type_size(ncclDataType_t type);

/* out[i] = op of in[0][i] ... in[n - 1][i]. out may be one of the inputs. */
void ckt_soft_nccl_reduce(
	void *out, const void *const *in, int n, size_t count, ncclDataType_t type, ncclRedOp_t op);
/* out[i] = in[i] * scalar, rounded to the type. */
void ckt_soft_nccl_multiply(
	void *out, const void *in, const void *scalar, size_t count, ncclDataType_t type);
