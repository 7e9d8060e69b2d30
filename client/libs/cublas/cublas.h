/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim libcublas.so.13 (and .12): cuBLAS over the session.  Generated stubs check and send what
 * works on the GPU; here is what they need of a handle.
 *
 * What is set of a handle is kept here, answered from here, and travels in one message before the
 * next call that it matters to: a program that sets the same stream, workspace and math mode before
 * every call, as PyTorch does, sends nothing for it.
 *
 * Threading as cuBLAS's: any thread, a handle for one at a time.
 */
#pragma once

#include "client/libs/cublas_status.h"
#include "client/libs/libs.h"
#include "rpc/cublas.h"
#include "rpc/gen/cublas_codec.h"

/*
 * For captures alone: the genuine library would take one for each stream from its own pool, inside
 * the capture.
 */
struct ckt_cublas_workspace {
	struct ckt_cublas_workspace *next;
	uint64_t stream;
	uint64_t address, bytes;
};

struct ckt_cublas_handle {
	struct ckt_lib_object object; /* first */
	cudaStream_t stream;          /* as the program gave it */
	bool own_workspace;           /* the program gave none since it set the stream */
	struct ckt_cublas_set_args wanted, sent;
	struct ckt_cublas_workspace *workspaces;
	int environment_mode; /* rpc/cublas_exported.h */
};

/* NULL where it is none. */
struct ckt_cublas_handle *ckt_cublas_handle(cublasHandle_t handle);
/* The same before work: what was set since the last call has been sent. */
struct ckt_lib_object *ckt_cublas_take_handle(cublasHandle_t handle);

static inline cublasStatus_t ckt_cublas_no_handle(void)
{
	return CUBLAS_STATUS_NOT_INITIALIZED;
}

static inline cublasStatus_t ckt_cublas_invalid(void)
{
	return CUBLAS_STATUS_INVALID_VALUE;
}

static inline cublasStatus_t ckt_cublas_of(CUresult result)
{
	return ckt_lib_cublas_status(result);
}

/* The session's error, else the library's status. */
static inline cublasStatus_t ckt_cublas_answer(CUresult result, int status)
{
	return __builtin_expect(result != CUDA_SUCCESS, 0) ? ckt_cublas_of(result)
							   : (cublasStatus_t)status;
}

/* ---- logger.c: every function of the library begins with CKT_CUBLAS_LOG */

extern _Atomic bool ckt_cublas_logs;
void ckt_cublas_log(const char *function);
#define CKT_CUBLAS_LOG()                                  \
	do {                                              \
		if (__builtin_expect(ckt_cublas_logs, 0)) \
			ckt_cublas_log(__func__);         \
	} while (0)

/* ---- For the API without handles (legacy.c) */

/* Of a context: the handle that calls go to, and the status of the last of them. */
struct ckt_cublas_default {
	struct ckt_cublas_default *next;
	uint64_t context;
	cublasHandle_t handle;
	cublasStatus_t error;
};

/* The current context's, made where it has none; NULL where that fails. */
struct ckt_cublas_default *ckt_cublas_default(void);

static inline void ckt_cublas_default_answer(struct ckt_cublas_default *own, cublasStatus_t status)
{
	if (own)
		own->error = status;
}

/* The enum of a character, in either case; -1 of it: none. */
cublasOperation_t ckt_cublas_char_cublasOperation_t(char c);
cublasFillMode_t ckt_cublas_char_cublasFillMode_t(char c);
cublasSideMode_t ckt_cublas_char_cublasSideMode_t(char c);
cublasDiagType_t ckt_cublas_char_cublasDiagType_t(char c);

/* Logs the name once; always CUBLAS_STATUS_NOT_SUPPORTED. */
int ckt_cublas_unsupported(const char *name, bool *once);
/* The server's library, opened at first use; *ret_version as cublasGetVersion has it. */
cublasStatus_t ckt_cublas_open(uint32_t *ret_version);
