/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soft GPU's cuBLASLt.  Descriptors are plain memory (rpc/cublaslt.h).  A product is a struct
 * ckt_blas_job on the call's stream.
 */
#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include "rpc/cublaslt.h"
#include "softgpu/libs/blas/blas.h"

#define CKT_CUBLAS_API __attribute__((visibility("default")))

/* Refuses a function and logs its name, a string constant. */
cublasStatus_t ckt_soft_cublaslt_unsupported(const char *name);
cublasStatus_t ckt_soft_cublaslt_status(CUresult result);

/* A product, according to a descriptor and four layouts. */
struct ckt_lt_product {
	struct ckt_blas_job job;
	struct ckt_blas_epilogue epilogue;
	bool has_epilogue;
};

/*
 * Fills in a product without addresses: operand D is the result, C the addend.  INVALID_VALUE if
 * sizes do not match, or NOT_SUPPORTED.
 */
cublasStatus_t ckt_soft_cublaslt_product_make(struct ckt_lt_product *product,
	const void *description, const void *a, const void *b, const void *c, const void *d);
/* Reads a layout as an operand without an address, and its sizes. */
cublasStatus_t ckt_soft_cublaslt_layout_read(const void *layout,
	struct ckt_blas_operand *ret_operand, int64_t *ret_rows, int64_t *ret_columns,
	int64_t *ret_batch);
/*
 * Sets a factor from its address and the pointer mode.  INVALID_VALUE for NULL, NOT_SUPPORTED for
 * vectors.
 */
cublasStatus_t ckt_soft_cublaslt_scalar(
	struct ckt_blas_scalar *scalar, const void *p, uint32_t type, uint32_t pointer_mode);
