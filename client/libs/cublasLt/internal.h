/*
 * cuBLASLt's shim: descriptors here (descriptor.c), work on streams batched (matmul.c), questions
 * asked once for each content (ask.c, algo.c).
 *
 * Functions named cublasLt* follow NVIDIA's documentation of cuBLAS 13.1 and what that library
 * answers; they return a cublasStatus_t, write outputs only on success and may be called from any
 * thread.
 */
#pragma once

#pragma GCC visibility push(default)
#include "rpc/cublasLt_exported.h"
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/libs/cublas_status.h"
#include "client/libs/libs.h"
#include "rpc/cublaslt.h"
#include "rpc/gen/cublasLt_codec.h"

/* ---- handle.c */
/*
 * What a cublasLtHandle_t points to.  A cuBLAS handle, which is as good a one, points to something
 * else that begins with the same member (client/libs/cublas).
 */
struct ckt_lt_context {
	struct ckt_lib_object object;
	uint64_t magic; /* CKT_LT_MAGIC: it is ours */
};
#define CKT_LT_MAGIC 0x434b54206c743031ull
/* 12 or 13: of the SONAME that this copy of the shim has. */
extern const uint32_t ckt_lib_major;

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

/*
 * ---- logger.c: what a program's logger hears: failures, and each call where it wants the trace of
 * the API
 */
/* Gives back status. */
cublasStatus_t ckt_lt_log(const char *function, cublasStatus_t status);

/*
 * ---- ask.c: questions whose answers depend on nothing but what is sent, the device and the
 * library
 */
struct ckt_lt_question {
	uint32_t proc; /* of this library, without its number */
	const void *args;
	size_t (*size)(const void *args);
	uint8_t *(*put)(uint8_t *p, const void *args);
	/*
	 * in args; NULL: the procedure has none.  The answer is the same for every handle of a
	 * device
	 */
	uint64_t *handle;
};
/*
 * The results of the procedure, from memory or from the server.  *ret_answer: malloc'd, the
 * caller's.  With once false it is always asked.
 */
cublasStatus_t ckt_lt_ask(const struct ckt_lt_question *question, bool once,
	struct ckt_cursor *ret_results, void **ret_answer);
/* A question of the procedure PROC with struct ckt_NAME_args. */
#define CKT_LT_QUESTION(PROC, NAME, args_, handle_)                                                \
	(struct ckt_lt_question)                                                                   \
	{                                                                                          \
		.proc = PROC, .args = args_, .size = ckt_lt_size_##NAME, .put = ckt_lt_put_##NAME, \
		.handle = handle_                                                                  \
	}
/* Its two functions. */
#define CKT_LT_CODERS(NAME)                                             \
	static size_t ckt_lt_size_##NAME(const void *args)              \
	{                                                               \
		return ckt_##NAME##_args_size(args);                    \
	}                                                               \
	static uint8_t *ckt_lt_put_##NAME(uint8_t *p, const void *args) \
	{                                                               \
		return ckt_##NAME##_args_put(p, args);                  \
	}

/* ---- cache.c: answers by what was asked, bounded in number and in bytes */
enum {
	CKT_LT_ANSWERS_MAX = 4096,
	/* of all together; the ones not used for longest go */
	CKT_LT_ANSWER_BYTES_MAX = 16 << 20,
};
/* A malloc'd copy of the answer; NULL: there is none, or no memory. */
void *ckt_lt_cache_find(const void *key, size_t key_bytes, size_t *ret_bytes);
void ckt_lt_cache_add(const void *key, size_t key_bytes, const void *answer, size_t answer_bytes);
void ckt_lt_cache_clear(void);

/* For the generated functions: logs the name once; NOT_SUPPORTED. */
int ckt_cublasLt_unsupported(const char *name, bool *once);

/* ---- matmul.c */
/*
 * The descriptors of a call: their bytes, checked.  INVALID_VALUE for NULL and for what is no
 * descriptor.
 */
struct ckt_lt_bytes {
	const uint8_t *bytes;
	uint32_t length;
};
cublasStatus_t ckt_lt_descriptor(
	enum ckt_lt_kind kind, const void *descriptor, struct ckt_lt_bytes *ret);
/* Of the emulation descriptor in a matmul descriptor; none where it has none. */
void ckt_lt_emulation(const void *matmul, struct ckt_lt_bytes *ret);
