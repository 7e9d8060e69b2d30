/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt in the worker: handlers of rpc/api/cublasLt.api over the genuine library.
 *
 * The client sends the bytes of a descriptor (rpc/cublaslt.h).  A call makes the genuine library's
 * descriptor from these bytes and keeps it for the next call with the same bytes.
 *
 * Threading: the executor's.
 */
#pragma once

#include <cublasLt.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/cublaslt.h"
#include "rpc/gen/cublasLt_codec.h"
#include "rpc/gen/cublasLt_functions.h"
#include "server/worker/session/call.h"
#include "server/worker/libs/call.h"
#include "server/worker/libs/libs.h"

extern const struct ckt_library ckt_library_cublasLt;

/* ---- cublasLt.c */
/* The real handle for an id of cuBLASLt or cuBLAS; both are valid.  CUDA_ERROR_INVALID_HANDLE. */
CUresult ckt_cublaslt_handle(struct ckt_worker *worker, uint64_t id, cublasLtHandle_t *ret_handle);
/* Opens the genuine library if no open came first, as in a worker that took the session over. */
CUresult ckt_cublaslt_need(struct ckt_worker *worker);

/* ---- Handlers; the generated table points to them */
int ckt_worker_cublasLt_open(struct ckt_wcall *call);
int ckt_worker_cublasLtCreate(struct ckt_wcall *call);
int ckt_worker_cublasLtDestroy(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmul(struct ckt_wcall *call);
int ckt_worker_cublasLtMatrixTransform(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoGetHeuristic(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoGetHeuristicForStream(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoCheckForStream(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoGetIds(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoInit(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoCheck(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoCapGetAttribute(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoConfigGetAttribute(struct ckt_wcall *call);
int ckt_worker_cublasLtMatmulAlgoConfigSetAttribute(struct ckt_wcall *call);
int ckt_worker_cublasLt_versions(struct ckt_wcall *call);
int ckt_worker_cublasLtHeuristicsCacheGetCapacity(struct ckt_wcall *call);
int ckt_worker_cublasLtHeuristicsCacheSetCapacity(struct ckt_wcall *call);

/* ---- cublasLt_descriptor.c */
/* The role of a descriptor in its call: two in one call never share a place in the cache. */
enum ckt_cublaslt_role {
	CKT_CUBLASLT_OPERATION,
	CKT_CUBLASLT_A,
	CKT_CUBLASLT_B,
	CKT_CUBLASLT_C,
	CKT_CUBLASLT_D,
	CKT_CUBLASLT_TRANSFORM,
	CKT_CUBLASLT_PREFERENCE,
	CKT_CUBLASLT_ROLES,
};

struct ckt_cublaslt_bytes {
	const uint8_t *bytes;
	uint32_t length;
	const uint8_t *emulation; /* of an operation */
	uint32_t emulation_length;
};

/*
 * The genuine library's descriptor for the bytes; no bytes give NULL.  Valid until the next call
 * for the same role.  CKT_WCALL_GARBAGE for malformed bytes; otherwise a cublasStatus_t, the
 * library's own if it refuses an attribute.
 */
int ckt_cublaslt_descriptor(
	enum ckt_cublaslt_role role, const struct ckt_cublaslt_bytes *bytes, void **ret_descriptor);
/* Destroys all kept descriptors. */
void ckt_cublaslt_descriptors_end(void);
