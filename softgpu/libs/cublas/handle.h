/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The soft GPU's cuBLAS: its handle, and how a call of any function becomes work on the handle's
 * stream.
 */
#pragma once

#include <cublas_v2.h>
#include <cuda.h>

#include "softgpu/libs/blas/blas.h"

#define CKT_CUBLAS_API __attribute__((visibility("default")))

struct cublasContext {
	CUcontext context; /* of the thread that made the handle */
	CUstream stream;
	cublasPointerMode_t pointer_mode;
	cublasAtomicsMode_t atomics_mode;
	cublasMath_t math_mode;
	int sm_count_target;
	void *workspace; /* the program's; the library needs none */
	size_t workspace_bytes;
	cublasEmulationStrategy_t emulation;
	int emulation_special, emulation_control, emulation_bits, emulation_offset;
	int *emulation_count;
};

/* A family of functions: how it runs, and what it checks first. */
struct ckt_cublas_family {
	int (*run)(const struct ckt_blas_job *job);
	cublasStatus_t (*check)(const struct ckt_blas_job *job);
};

enum {
	/* The job has this factor, which is on the side that the pointer mode says. */
	CKT_CUBLAS_ALPHA = 1,
	CKT_CUBLAS_BETA = 2,
	/*
	 * The function writes numbers to the side that the pointer mode says.  On the host, they
	 * are complete when the call returns.
	 */
	CKT_CUBLAS_RESULT = 4,
	/*
	 * info is one int on the host in both modes.  It is 0, because the call refuses wrong
	 * arguments.
	 */
	CKT_CUBLAS_HOST_INFO = 8,
};

/* Completes and copies the job.  The job's factors are addresses.  job->name: a string constant. */
cublasStatus_t ckt_soft_cublas_submit(cublasHandle_t handle, struct ckt_blas_job *job,
	const struct ckt_cublas_family *family, unsigned flags);

cublasStatus_t ckt_soft_cublas_status(CUresult result);
/* The type of factors for a compute type and a matrix type (real or complex). */
cudaDataType ckt_soft_cublas_scale_type(cublasComputeType_t compute, cudaDataType matrix);
/* Refuses a function and logs its name. */
cublasStatus_t ckt_soft_cublas_unsupported(const char *name);

extern const struct ckt_cublas_family ckt_cublas_gemm, ckt_cublas_gemv, ckt_cublas_gbmv,
	ckt_cublas_trmv, ckt_cublas_tbmv, ckt_cublas_tpmv, ckt_cublas_trsv, ckt_cublas_tbsv,
	ckt_cublas_tpsv, ckt_cublas_symv, ckt_cublas_sbmv, ckt_cublas_spmv, ckt_cublas_ger,
	ckt_cublas_syr, ckt_cublas_spr, ckt_cublas_syr2, ckt_cublas_spr2, ckt_cublas_syrk,
	ckt_cublas_syr2k, ckt_cublas_syrkx, ckt_cublas_symm, ckt_cublas_trsm, ckt_cublas_trmm,
	ckt_cublas_geam, ckt_cublas_dgmm, ckt_cublas_tpttr, ckt_cublas_trttp, ckt_cublas_axpy,
	ckt_cublas_scal, ckt_cublas_copy, ckt_cublas_swap, ckt_cublas_dot, ckt_cublas_nrm2,
	ckt_cublas_asum, ckt_cublas_iamax, ckt_cublas_rot, ckt_cublas_rotg, ckt_cublas_rotm,
	ckt_cublas_rotmg, ckt_cublas_getrf, ckt_cublas_getri, ckt_cublas_getrs, ckt_cublas_matinv,
	ckt_cublas_geqrf, ckt_cublas_gels;
