/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's functions with cuBLAS's flags and types. */
#pragma once

#include <cblas.h>
#include <errno.h>

#include "softgpu/libs/blas/blas.h"

/* A factor in OpenBLAS's form: a real one by value, a complex one by address. */
struct ckt_blas_factor {
	float f[2];
	double d[2];
};

static inline struct ckt_blas_factor ckt_blas_factor(
	const struct ckt_blas_scalar *scalar, int64_t i)
{
	double value[2];
	ckt_blas_scalar_get(scalar, i, value);
	return (struct ckt_blas_factor){
		.f = {(float)value[0], (float)value[1]}, .d = {value[0], value[1]}};
}

static inline enum CBLAS_TRANSPOSE ckt_blas_trans(int trans)
{
	return trans == CKT_BLAS_N    ? CblasNoTrans
		: trans == CKT_BLAS_T ? CblasTrans
				      : CblasConjTrans;
}

static inline enum CBLAS_UPLO ckt_blas_uplo(int uplo)
{
	return uplo == CKT_BLAS_LOWER ? CblasLower : CblasUpper;
}

static inline enum CBLAS_SIDE ckt_blas_side(int side)
{
	return side == CKT_BLAS_LEFT ? CblasLeft : CblasRight;
}

static inline enum CBLAS_DIAG ckt_blas_diag(int diag)
{
	return diag ? CblasUnit : CblasNonUnit;
}

/*
 * Enter and leave a call of OpenBLAS, which has a fixed number of work areas for concurrent
 * threads.  Further threads wait in enter.
 */
void ckt_blas_enter(void);
void ckt_blas_leave(void);

/*
 * BLAS_x(type, name, ...) calls cblas_?name of that type.  x says how many factors are between the
 * bracketed lists of arguments: one (A), two (AB) or none.  The types are the four of OpenBLAS.
 * Names for complex types may differ (symv and hemv).
 */
#define CKT_BLAS_LIST(...) __VA_ARGS__
#define CKT_BLAS_NONE(type, real4, real8, complex8, complex16, args) \
	switch (type) {                                              \
	case CUDA_R_32F:                                             \
		cblas_##real4(CKT_BLAS_LIST args);                   \
		break;                                               \
	case CUDA_R_64F:                                             \
		cblas_##real8(CKT_BLAS_LIST args);                   \
		break;                                               \
	case CUDA_C_32F:                                             \
		cblas_##complex8(CKT_BLAS_LIST args);                \
		break;                                               \
	default:                                                     \
		cblas_##complex16(CKT_BLAS_LIST args);               \
	}
#define CKT_BLAS_ONE(type, real4, real8, complex8, complex16, head, alpha, tail)    \
	switch (type) {                                                             \
	case CUDA_R_32F:                                                            \
		cblas_##real4(CKT_BLAS_LIST head, alpha.f[0], CKT_BLAS_LIST tail);  \
		break;                                                              \
	case CUDA_R_64F:                                                            \
		cblas_##real8(CKT_BLAS_LIST head, alpha.d[0], CKT_BLAS_LIST tail);  \
		break;                                                              \
	case CUDA_C_32F:                                                            \
		cblas_##complex8(CKT_BLAS_LIST head, alpha.f, CKT_BLAS_LIST tail);  \
		break;                                                              \
	default:                                                                    \
		cblas_##complex16(CKT_BLAS_LIST head, alpha.d, CKT_BLAS_LIST tail); \
	}
#define CKT_BLAS_TWO(type, real4, real8, complex8, complex16, head, alpha, middle, beta, tail) \
	switch (type) {                                                                        \
	case CUDA_R_32F:                                                                       \
		cblas_##real4(CKT_BLAS_LIST head, alpha.f[0], CKT_BLAS_LIST middle, beta.f[0], \
			CKT_BLAS_LIST tail);                                                   \
		break;                                                                         \
	case CUDA_R_64F:                                                                       \
		cblas_##real8(CKT_BLAS_LIST head, alpha.d[0], CKT_BLAS_LIST middle, beta.d[0], \
			CKT_BLAS_LIST tail);                                                   \
		break;                                                                         \
	case CUDA_C_32F:                                                                       \
		cblas_##complex8(CKT_BLAS_LIST head, alpha.f, CKT_BLAS_LIST middle, beta.f,    \
			CKT_BLAS_LIST tail);                                                   \
		break;                                                                         \
	default:                                                                               \
		cblas_##complex16(CKT_BLAS_LIST head, alpha.d, CKT_BLAS_LIST middle, beta.d,   \
			CKT_BLAS_LIST tail);                                                   \
	}
