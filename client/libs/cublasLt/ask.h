/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions whose answers depend on nothing but what is sent, the device and the library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/libs/cublasLt/api.h"
#include "rpc/gen/cublasLt_codec.h"

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
