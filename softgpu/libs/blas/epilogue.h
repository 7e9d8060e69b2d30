/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a product before it is rounded (cublasLtEpilogue_t). */
#pragma once

#include "softgpu/libs/blas/blas.h"

/* product: m x n numbers of type compute, for operand i of the batch.  0 or -ENOMEM. */
int ckt_blas_epilogue_apply(
	const struct ckt_blas_job *job, int64_t i, void *product, cudaDataType compute);
