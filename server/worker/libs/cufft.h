/* cuFFT in the worker: the genuine library's functions, and what its handlers share. */
#pragma once

#include <cufft.h>
#include <cufftXt.h>

#include "server/worker/libs/libs.h"

/* MakePlan of each form of a shape; GetSize has the same parameters. */
struct ckt_cufft_by_form {
	__typeof__(&cufftMakePlan1d) dense_1d;
	__typeof__(&cufftMakePlan2d) dense_2d;
	__typeof__(&cufftMakePlan3d) dense_3d;
	__typeof__(&cufftMakePlanMany) many;
	__typeof__(&cufftMakePlanMany64) many64;
	__typeof__(&cufftXtMakePlanMany) xt;
};

/* Every function that a handler calls, in the order of the names in cufft.c; NULL: the opened library lacks it. */
struct ckt_cufft {
	__typeof__(&cufftCreate) create;
	__typeof__(&cufftDestroy) destroy;
	__typeof__(&cufftGetVersion) get_version;
	__typeof__(&cufftSetStream) set_stream;
	__typeof__(&cufftSetWorkArea) set_work_area;
	__typeof__(&cufftSetAutoAllocation) set_auto_allocation;
	__typeof__(&cufftSetPlanPropertyInt64) set_property;
	__typeof__(&cufftGetPlanPropertyInt64) get_property;
	__typeof__(&cufftResetPlanProperty) reset_property;
	__typeof__(&cufftXtSetWorkAreaPolicy) set_policy;
	__typeof__(&cufftGetSize) get_size;
	struct ckt_cufft_by_form make;
	__typeof__(&cufftEstimate1d) estimate_1d;
	__typeof__(&cufftEstimate2d) estimate_2d;
	__typeof__(&cufftEstimate3d) estimate_3d;
	__typeof__(&cufftEstimateMany) estimate_many;
	struct ckt_cufft_by_form size;
	__typeof__(&cufftExecC2C) exec_c2c;
	__typeof__(&cufftExecR2C) exec_r2c;
	__typeof__(&cufftExecC2R) exec_c2r;
	__typeof__(&cufftExecZ2Z) exec_z2z;
	__typeof__(&cufftExecD2Z) exec_d2z;
	__typeof__(&cufftExecZ2D) exec_z2d;
	__typeof__(&cufftXtExec) exec_xt;
};

extern struct ckt_cufft ckt_cufft;
extern const struct ckt_library ckt_library_cufft;

/* The object and the plan behind an id; CUDA_ERROR_INVALID_HANDLE where there is none. */
CUresult ckt_cufft_plan(struct ckt_worker *worker, uint64_t id, struct ckt_object **ret_object, cufftHandle *ret_plan);

/* Shapes: cufft_make.c */
int ckt_worker_fft_make(struct ckt_wcall *call);
int ckt_worker_fft_measure(struct ckt_wcall *call);
