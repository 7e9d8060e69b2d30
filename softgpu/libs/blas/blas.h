/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear algebra on the CPU for the soft GPU's cuBLAS and cuBLASLt: libcricket-softblas.so, which
 * contains OpenBLAS.
 *
 * OpenBLAS is linked statically and in its single-threaded form.  So the sums of a product do not
 * depend on the number of processors, and a program gets the same bits again, plain or restored.
 * Only stream threads run in parallel.  (On a different CPU model, OpenBLAS uses different kernels,
 * whose bits may differ.)
 *
 * One struct ckt_blas_job describes a call of any function: matrices, vectors, sizes and flags
 * under cuBLAS's own names.  All addresses are addresses of the CPU. This library does not know
 * streams or handles.  The caller has checked the arguments.  Any thread may call these functions.
 */
#pragma once

#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cublasOperation_t, cublasFillMode_t, cublasSideMode_t and cublasDiagType_t have these values. */
enum { CKT_BLAS_N, CKT_BLAS_T, CKT_BLAS_C, CKT_BLAS_CONJ };
enum { CKT_BLAS_LOWER, CKT_BLAS_UPPER, CKT_BLAS_FULL };
enum { CKT_BLAS_LEFT, CKT_BLAS_RIGHT };

struct ckt_blas_operand {
	void *p;
	cudaDataType type;
	int64_t ld;     /* of a vector: its increment */
	int64_t stride; /* between two operands of a batch, in elements */
	bool list;      /* p is an array of addresses, one for each operand of the batch */
	bool row;       /* row-major */
};

/* A factor: a value in the job, or an address that is read when the job runs. */
struct ckt_blas_scalar {
	const void *p; /* NULL: value */
	cudaDataType type;
	int64_t stride; /* in elements, between those of a batch; 0: one for all */
	union {
		float f[2];
		double d[2];
		int32_t i;
		uint16_t h;
	} value;
};

struct ckt_blas_epilogue;

struct ckt_blas_job {
	const char *name;
	struct ckt_blas_operand A, B, C, D, x, y;
	struct ckt_blas_scalar alpha, beta;
	/* Level 1 writes its result at this address, on the host or the device. */
	struct ckt_blas_operand result, c, s, a, b, param, d1, d2, x1, y1;
	int64_t m, n, k, kl, ku, nrhs, batch;
	int trans, transa, transb, uplo, side, diag;
	int compute, algo;                  /* cublasComputeType_t; 0 for functions without one */
	cudaDataType execution;             /* the type of the computation, if the call names one */
	bool hermitian, conjugate, minimum; /* select one of two functions */
	int *pivot, *info;
	const struct ckt_blas_epilogue *epilogue;
};

/* The additions of cublasLtMatmul to a product, all optional. */
struct ckt_blas_epilogue {
	enum {
		CKT_BLAS_KEEP,
		CKT_BLAS_RELU,
		CKT_BLAS_GELU,
		CKT_BLAS_DRELU,
		CKT_BLAS_DGELU
	} function;
	enum {
		CKT_BLAS_NO_BIAS,
		CKT_BLAS_BIAS,
		CKT_BLAS_GRADIENT_D,
		CKT_BLAS_GRADIENT_A,
		CKT_BLAS_GRADIENT_B
	} bias_use;
	struct ckt_blas_operand bias; /* a vector; stride for batches */
	/* RELU and GELU write to it, DRELU and DGELU read it; p NULL: none. */
	struct ckt_blas_operand aux;
};

#pragma GCC visibility push(default)

/* ---- convert.c */

/* Bytes of an element; 0 for an unknown type. */
size_t ckt_blas_type_size(cudaDataType type);
bool ckt_blas_type_complex(cudaDataType type);
/* The type of the computation: R_32F, R_64F, C_32F or C_64F. */
cudaDataType ckt_blas_type_compute(cudaDataType type);
/*
 * Converts count elements, which are step elements apart, to a contiguous row of compute's type;
 * and back, rounded to nearest even.
 */
void ckt_blas_load(void *to, cudaDataType compute, const void *from, cudaDataType type,
	int64_t step, int64_t count);
void ckt_blas_store(void *to, cudaDataType type, int64_t step, const void *from,
	cudaDataType compute, int64_t count);
/* The value of a factor for operand i of a batch. */
void ckt_blas_scalar_get(const struct ckt_blas_scalar *scalar, int64_t i, double ret_value[2]);
/* The address of operand i of a batch. */
void *ckt_blas_at(const struct ckt_blas_operand *operand, int64_t i);

/* ---- matmul.c: D = alpha op(A) op(B) + beta C; if D.p is NULL, D is C */
int ckt_blas_matmul(const struct ckt_blas_job *job);

/* ---- The other files: each function runs a job.  0, or -ENOMEM without any effect. */
int ckt_blas_gemv(const struct ckt_blas_job *job);
int ckt_blas_gbmv(const struct ckt_blas_job *job);
int ckt_blas_trmv(const struct ckt_blas_job *job);
int ckt_blas_tbmv(const struct ckt_blas_job *job);
int ckt_blas_tpmv(const struct ckt_blas_job *job);
int ckt_blas_trsv(const struct ckt_blas_job *job);
int ckt_blas_tbsv(const struct ckt_blas_job *job);
int ckt_blas_tpsv(const struct ckt_blas_job *job);
int ckt_blas_symv(const struct ckt_blas_job *job);
int ckt_blas_sbmv(const struct ckt_blas_job *job);
int ckt_blas_spmv(const struct ckt_blas_job *job);
int ckt_blas_ger(const struct ckt_blas_job *job);
int ckt_blas_syr(const struct ckt_blas_job *job);
int ckt_blas_spr(const struct ckt_blas_job *job);
int ckt_blas_syr2(const struct ckt_blas_job *job);
int ckt_blas_spr2(const struct ckt_blas_job *job);

int ckt_blas_syrk(const struct ckt_blas_job *job);
int ckt_blas_syr2k(const struct ckt_blas_job *job);
int ckt_blas_syrkx(const struct ckt_blas_job *job);
int ckt_blas_symm(const struct ckt_blas_job *job);
int ckt_blas_trsm(const struct ckt_blas_job *job);
int ckt_blas_trmm(const struct ckt_blas_job *job);
int ckt_blas_geam(const struct ckt_blas_job *job);
int ckt_blas_dgmm(const struct ckt_blas_job *job);
int ckt_blas_tpttr(const struct ckt_blas_job *job);
int ckt_blas_trttp(const struct ckt_blas_job *job);

int ckt_blas_axpy(const struct ckt_blas_job *job);
int ckt_blas_scal(const struct ckt_blas_job *job);
int ckt_blas_copy(const struct ckt_blas_job *job);
int ckt_blas_swap(const struct ckt_blas_job *job);
int ckt_blas_dot(const struct ckt_blas_job *job);
int ckt_blas_nrm2(const struct ckt_blas_job *job);
int ckt_blas_asum(const struct ckt_blas_job *job);
int ckt_blas_iamax(const struct ckt_blas_job *job);
int ckt_blas_rot(const struct ckt_blas_job *job);
int ckt_blas_rotg(const struct ckt_blas_job *job);
int ckt_blas_rotm(const struct ckt_blas_job *job);
int ckt_blas_rotmg(const struct ckt_blas_job *job);

int ckt_blas_getrf(const struct ckt_blas_job *job);
int ckt_blas_getrs(const struct ckt_blas_job *job);
int ckt_blas_getri(const struct ckt_blas_job *job);
int ckt_blas_matinv(const struct ckt_blas_job *job);
int ckt_blas_geqrf(const struct ckt_blas_job *job);
int ckt_blas_gels(const struct ckt_blas_job *job);

#pragma GCC visibility pop
