/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions: heuristics, capabilities and the like.
 *
 * What is sent is the whole question, with the pointers in descriptors reduced to their alignment
 * and the handle as an id, which says no more than the device.  So the message itself, with the
 * context in place of the handle, is the key under which the answer is kept: a program that asks
 * for the heuristic before each matmul, as PyTorch does, asks the server once for each shape.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublasLt/ask.h"
#include "client/libs/cublasLt/cache.h"
#include "client/libs/cublasLt/handle.h"

/* Of the message's key what is not in the message. */
struct key_head {
	uint64_t context;
	uint64_t proc;
};

/*
 * Failures that would not be the same next time are not kept; those that say what the library can
 * do are.
 */
static bool is_constant(int status)
{
	return status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED ||
		status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH;
}

static CUresult ask(const struct ckt_client_table *client, const struct ckt_lt_question *question,
	size_t args_bytes, void **ret_answer, size_t *ret_bytes)
{
	struct ckt_call call;
	struct ckt_reply reply;
	CUresult result =
		client->begin(&call, CKT_LIB_PROC(CKT_LIB_CUBLASLT, question->proc), args_bytes, 0);
	if (result)
		return result;
	question->put(call.p, question->args);
	result = client->wait(&call, &reply);
	if (result)
		return result;
	*ret_bytes = (size_t)(reply.results.end - reply.results.p);
	*ret_answer = malloc(*ret_bytes + 1);
	if (*ret_answer)
		memcpy(*ret_answer, reply.results.p, *ret_bytes);
	client->release(&reply);
	return *ret_answer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The key: head, then the message with handle 0.  NULL: no memory. */
static uint8_t *make_key(const struct ckt_client_table *client,
	const struct ckt_lt_question *question, size_t args_bytes)
{
	struct key_head head = {client->context(), question->proc};
	uint8_t *key = malloc(sizeof head + args_bytes);
	if (!key)
		return NULL;
	memcpy(key, &head, sizeof head);
	uint64_t handle = question->handle ? *question->handle : 0;
	if (question->handle)
		*question->handle = 0;
	question->put(key + sizeof head, question->args);
	if (question->handle)
		*question->handle = handle;
	return key;
}

cublasStatus_t ckt_lt_ask(const struct ckt_lt_question *question, bool once,
	struct ckt_cursor *ret_results, void **ret_answer)
{
	const struct ckt_client_table *client = ckt_client();
	cublasStatus_t status = ckt_lt_open();
	if (status)
		return status;
	size_t args_bytes = question->size(question->args),
	       key_bytes = sizeof(struct key_head) + args_bytes, answer_bytes = 0;
	uint8_t *key = once ? make_key(client, question, args_bytes) : NULL;
	if (once && !key)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*ret_answer = once ? ckt_lt_cache_find(key, key_bytes, &answer_bytes) : NULL;
	if (!*ret_answer) {
		CUresult result = ask(client, question, args_bytes, ret_answer, &answer_bytes);
		if (result) {
			free(key);
			return ckt_lt_status(result);
		}
		struct ckt_cursor c = {
			.p = *ret_answer, .end = (uint8_t *)*ret_answer + answer_bytes};
		int answered = (int32_t)ckt_get_u32(&c);
		if (once && !c.bad && is_constant(answered))
			ckt_lt_cache_add(key, key_bytes, *ret_answer, answer_bytes);
	}
	free(key);
	*ret_results =
		(struct ckt_cursor){.p = *ret_answer, .end = (uint8_t *)*ret_answer + answer_bytes};
	return CUBLAS_STATUS_SUCCESS;
}
