/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, and the session's error as cuBLAS names it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/libs/cublasLt/api.h"
#include "client/libs/cublas_status.h"
#include "client/libs/libs.h"

/*
 * What a cublasLtHandle_t points to.  A cuBLAS handle, which is as good a one, points to something
 * else that begins with the same member (client/libs/cublas).
 */
struct ckt_lt_context {
	struct ckt_lib_object object;
	uint64_t magic; /* CKT_LT_MAGIC: it is ours */
};
#define CKT_LT_MAGIC 0x434b54206c743031ull

/*
 * The id of a handle of ours or of cuBLAS's, with the library open at the server.  NOT_INITIALIZED
 * where it is none.
 */
cublasStatus_t ckt_lt_handle(cublasLtHandle_t handle, uint64_t *ret_id);
/* Opens the library at the server, once. */
cublasStatus_t ckt_lt_open(void);
/* The session's error as cuBLAS names it. */
static inline cublasStatus_t ckt_lt_status(CUresult result)
{
	return ckt_lib_cublas_status(result);
}

/*
 * Of a call that may have been waited for (CRICKET_SYNC=1): the session's error, else the library's
 * status.
 */
static inline cublasStatus_t ckt_lt_answer(CUresult result, int status)
{
	return result ? ckt_lt_status(result) : (cublasStatus_t)status;
}

/* For the generated functions: logs the name once; NOT_SUPPORTED. */
int ckt_cublasLt_unsupported(const char *name, bool *once);
