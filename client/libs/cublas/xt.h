/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublasXt: level 3 on matrices of any size in the host's or a device's memory, cut into blocks
 * that the devices of a handle compute by cuBLAS.
 *
 *	xt.c		handles, devices, where matrices lie, blocks on the way to a device and back
 *	xt_product.c	products: C's blocks are dealt out to the devices, each the sum of its terms
 *	xt_triangle.c	products with and solutions of triangles: a device has whole rows or columns of blocks, one after the other
 *	xt_entry.c	the functions of cublasXt.h
 *
 * Functions return when the results are there, as the genuine library's do.  A handle is used by
 * one thread at a time.
 */
#pragma once

#include "client/libs/cublas/cublas.h"

#include <cublasXt.h>

enum ckt_xt_side { CKT_XT_LEFT, CKT_XT_RIGHT, CKT_XT_RESULT, CKT_XT_SIDES };

struct ckt_xt_device {
	int ordinal;
	CUcontext context;
	CUstream stream;
	cublasHandle_t handle;
	uint64_t tiles[CKT_XT_SIDES]; /* device memory for a block of each; 0: none yet */
	size_t tile_bytes[CKT_XT_SIDES];
};

struct cublasXtContext {
	uint64_t magic;
	struct ckt_xt_device *devices;
	int count, block;
	cublasXtPinnedMemMode_t pinning;
};

/* The functions of one type, on addresses of the device: cublas{S,D,C,Z}*_64. */
typedef cublasStatus_t ckt_xt_gemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t,
	int64_t, int64_t, const void *, const void *, int64_t, const void *, int64_t, const void *,
	void *, int64_t);
typedef cublasStatus_t ckt_xt_symm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int64_t,
	int64_t, const void *, const void *, int64_t, const void *, int64_t, const void *, void *,
	int64_t);
typedef cublasStatus_t ckt_xt_syrk(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int64_t,
	int64_t, const void *, const void *, int64_t, const void *, void *, int64_t);
typedef cublasStatus_t ckt_xt_syr2k(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int64_t,
	int64_t, const void *, const void *, int64_t, const void *, int64_t, const void *, void *,
	int64_t);
typedef cublasStatus_t ckt_xt_trsm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t,
	cublasOperation_t, cublasDiagType_t, int64_t, int64_t, const void *, const void *, int64_t,
	void *, int64_t);
typedef cublasStatus_t ckt_xt_trmm(cublasHandle_t, cublasSideMode_t, cublasFillMode_t,
	cublasOperation_t, cublasDiagType_t, int64_t, int64_t, const void *, const void *, int64_t,
	const void *, int64_t, void *, int64_t);

struct ckt_xt_type {
	size_t size;
	bool complex, wide; /* wide: of doubles */
	ckt_xt_gemm *gemm;
	ckt_xt_symm *symm;
	ckt_xt_trsm *trsm;
	ckt_xt_trmm *trmm;
};

/* An operand as the program gave it, with what is stored of it. */
enum ckt_xt_form { CKT_XT_GENERAL, CKT_XT_TRIANGLE, CKT_XT_PACKED };
struct ckt_xt_matrix {
	const void *data;
	size_t ld, rows, columns; /* as stored */
	enum ckt_xt_form form;
	cublasFillMode_t uplo; /* of a triangle, of what is packed */
	/* the ordinal of the device that it lies on; -1: on the host */
	int device;
};

/* A block of an operand at a device. */
struct ckt_xt_tile {
	const void *data;
	int64_t ld;
};

/* A job as all blocks of it see it. */
struct ckt_xt_job {
	struct cublasXtContext *own;
	const struct ckt_xt_type *type;
	size_t block;
};

/* The handle, with devices; else NULL and *ret_status. */
struct cublasXtContext *ckt_xt_take(cublasXtHandle_t handle, cublasStatus_t *ret_status);
/* Where the matrix lies. */
void ckt_xt_place(struct ckt_xt_matrix *matrix);
static inline size_t ckt_xt_blocks(size_t n, size_t block)
{
	return (n + block - 1) / block;
}
/* How many of n lie in that block. */
static inline size_t ckt_xt_part(size_t n, size_t block, size_t index)
{
	return n - index * block < block ? n - index * block : block;
}

/* Around what is done for a device: its context becomes current. */
cublasStatus_t ckt_xt_enter(const struct ckt_xt_device *device);
void ckt_xt_leave(void);
/*
 * Block (i, j) of what is stored, at the device: where it lies there already, else on its way to
 * the side's memory, in the stream's order.
 */
cublasStatus_t ckt_xt_fetch(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	enum ckt_xt_side side, const struct ckt_xt_matrix *matrix, size_t i, size_t j,
	struct ckt_xt_tile *ret);
/*
 * A place for block (i, j) of a result: in the matrix, where that is the device's, else in the
 * side's memory.
 */
cublasStatus_t ckt_xt_result(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	const struct ckt_xt_matrix *matrix, size_t i, size_t j, struct ckt_xt_tile *ret);
/* Brings it to its matrix; done when the device has been waited for. */
cublasStatus_t ckt_xt_store(const struct ckt_xt_job *job, struct ckt_xt_device *device,
	const struct ckt_xt_matrix *matrix, size_t i, size_t j, const struct ckt_xt_tile *tile);
cublasStatus_t ckt_xt_wait(const struct ckt_xt_device *device);
/* Waits for all devices; the status, or where that is 0 the first that a device gives. */
cublasStatus_t ckt_xt_finish(const struct ckt_xt_job *job, cublasStatus_t status);

/* 1 and -1 in the type; whether a scalar of it is 0. */
const void *ckt_xt_one(const struct ckt_xt_type *type);
const void *ckt_xt_minus_one(const struct ckt_xt_type *type);
bool ckt_xt_is_zero(const struct ckt_xt_type *type, const void *value);

/* ---- xt_product.c */
struct ckt_xt_factor {
	struct ckt_xt_matrix matrix;
	cublasOperation_t op;
	/* all of it follows from the triangle that is stored; op is N */
	bool symmetric, hermitian;
};

/*
 * C = alpha left right + beta C; for a triangle of C (ranked) and two terms also the one with left
 * and right exchanged.
 */
struct ckt_xt_product {
	/* the second term's, where there is one */
	struct ckt_xt_factor left, right, left2, right2;
	/* of the type: for blocks off the diagonal */
	const void *alpha, *alpha2, *beta;
	bool two;
	struct ckt_xt_matrix result;
	size_t m, n, k;
	/* only the triangle uplo of the result is computed */
	bool ranked;
	cublasFillMode_t uplo;
	/*
	 * Of ranked ones: what computes a block on the diagonal, with its scalars as the program
	 * gave them; one of them is there.
	 */
	ckt_xt_syrk *diagonal;
	ckt_xt_syr2k *diagonal2;
	cublasOperation_t trans;
	const void *diagonal_alpha, *diagonal_beta;
	/* the second operand of diagonal2, as stored */
	struct ckt_xt_factor other;
};
cublasStatus_t ckt_xt_product(const struct ckt_xt_job *job, struct ckt_xt_product *product);

/* ---- xt_triangle.c */
struct ckt_xt_triangle {
	/* c: where the result goes; b's own memory for a solution */
	struct ckt_xt_matrix a, b, c;
	cublasSideMode_t side;
	cublasOperation_t trans;
	cublasDiagType_t diag;
	size_t m, n;
	const void *alpha;
};
cublasStatus_t ckt_xt_multiply(const struct ckt_xt_job *job, struct ckt_xt_triangle *triangle);
cublasStatus_t ckt_xt_solve(const struct ckt_xt_job *job, struct ckt_xt_triangle *triangle);
