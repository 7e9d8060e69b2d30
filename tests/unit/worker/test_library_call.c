/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/library_call.c: the common part of the handlers of forwarded libraries. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/libs/call.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/call.h"
#include "tests/unit/worker/inside.h"

static const struct ckt_library library = {.name = "toy", .lib = CKT_LIB_CUDNN};
static const struct ckt_proc proc = {
	.name = "toyMultiply", .flags = CKT_PROC_BATCHED | CKT_PROC_NUMBERED};

static struct ckt_wcall *call_new(uint32_t flags)
{
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->proc = &proc;
	call->header = (struct ckt_call_header){
		.xid = 0x4000, .prog = CKT_CUDA_PROG, .vers = 1, .proc = 1, .flags = flags};
	MUST(ckt_wcall_prepare(call), 0);
	return call;
}

static void test_objects(void)
{
	int real;
	struct ckt_object *object, *found = NULL;
	struct ckt_wcall *call = call_new(CKT_CALL_BATCHED);
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 50), 0, 0), CUDA_SUCCESS);
	MUST(ckt_library_object_add(
		     &ckt_worker, &library, 1, ID(LIB_OBJECT, 50), &real, NULL, &object),
		CUDA_SUCCESS);
	IS(ckt_library_take(call, CKT_LIB_CUDNN, 1, ID(LIB_OBJECT, 50), &found), CUDA_SUCCESS);
	YES(found == object);
	IS(ckt_library_take(call, CKT_LIB_CUDNN, 2, ID(LIB_OBJECT, 50), &found),
		CUDA_ERROR_INVALID_HANDLE);
	/* Its stream has work from now on; one that went cannot. */
	object->library->stream = ID(STREAM, 50);
	struct ckt_object *stream = ckt_objects_find(&ckt_worker.objects, ID(STREAM, 50));
	NO(stream->stream.dirty);
	IS(ckt_library_take(call, CKT_LIB_CUDNN, 1, ID(LIB_OBJECT, 50), &found), CUDA_SUCCESS);
	YES(stream->stream.dirty);
	ckt_object_destroy(&ckt_worker, stream);
	IS(ckt_library_take(call, CKT_LIB_CUDNN, 1, ID(LIB_OBJECT, 50), &found),
		CUDA_ERROR_INVALID_HANDLE);
	ckt_object_destroy(&ckt_worker, object);
	ckt_wcall_free(call);
}

static void test_scalars(void)
{
	_Alignas(16) uint8_t memory[16];
	uint8_t field[17] = {0};
	double value = 2.5;
	uint64_t address = 0x7e0000001000;
	memcpy(field + 1, &value, sizeof value);
	const double *host = ckt_library_scalar(memory, field + 1, 16, 0);
	YES((const void *)host == memory && *host == 2.5);
	memcpy(field + 1, &address, sizeof address);
	YES(ckt_library_scalar(memory, field + 1, 16, 1) == (void *)(uintptr_t)address);
	IS(ckt_library_address(field + 1), address);
	void *copy = ckt_library_array(field, 17);
	YES(copy && !memcmp(copy, field, 17));
	ckt_library_free(&copy);
	copy = ckt_library_array(NULL, 0);
	YES(copy != NULL);
	ckt_library_free(&copy);
}

/* The reply's words behind its header, in the message's order. */
static size_t reply(uint32_t *ret_words, size_t room)
{
	uint8_t bytes[4096];
	for (int i = 0; i < 60000; i++) {
		ckt_pending_poll(&ckt_worker);
		size_t size = inside_sent(bytes, sizeof bytes), count = 0;
		struct ckt_cursor c = {
			.p = bytes + CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE, .end = bytes + size};
		while (size && c.p < c.end && count < room)
			ret_words[count++] = ckt_get_u32(&c);
		if (size)
			return count;
		usleep(1000);
	}
	return 0;
}

static void test_values(void)
{
	int real;
	bool once = false;
	uint32_t words[64];
	struct ckt_object *object;
	struct ckt_library_values values;
	MUST(ckt_library_object_add(
		     &ckt_worker, &library, 1, ID(LIB_OBJECT, 51), &real, NULL, &object),
		CUDA_SUCCESS);
	/* On the device: what the client gave, and nobody waits. */
	struct ckt_wcall *call = call_new(CKT_CALL_BATCHED);
	IS(ckt_library_values_begin(call, &values, 1, 48), CUDA_SUCCESS);
	YES(ckt_library_value(&values, 16, NULL, 16, 0x7e0000001000) == (void *)0x7e0000001000);
	IS(ckt_library_values_end(call, &values, object, 3, &once), CUDA_ERROR_UNKNOWN);
	/* To the host, with nobody to tell: not a call of ours. */
	IS(ckt_library_values_begin(call, &values, 0, 48), CKT_WCALL_GARBAGE);
	ckt_wcall_free(call);
	/* To the host. */
	call = call_new(0);
	IS(ckt_library_values_begin(call, &values, 0, 48), CUDA_SUCCESS);
	uint32_t *first =
			 ckt_library_value(&values, 16, (const uint8_t *)"abcdefghijklmnop", 16, 0),
		 *second = ckt_library_value(&values, 32, NULL, 16, 0);
	YES(first && !memcmp(first, "abcdefghijklmnop", 16) && second == first + 4 && !second[3]);
	first[0] = 0x11223344;
	IS(ckt_library_values_end(call, &values, object, 0, &once), CKT_WCALL_LATER);
	IS(reply(words, COUNT(words)), 2 + 48 / 4);
	IS(words[0], CUDA_SUCCESS);
	IS(words[1], 48);
	IS(words[2], 0);
	IS(words[2 + 4], 0x44332211);
	/* A status comes alone. */
	call = call_new(0);
	IS(ckt_library_values_begin(call, &values, 0, 48), CUDA_SUCCESS);
	IS(ckt_library_values_end(call, &values, object, 7, &once), CUDA_SUCCESS);
	ckt_wcall_finish(call, CUDA_SUCCESS);
	IS(reply(words, COUNT(words)), 3);
	IS(words[1], 4);
	IS(words[2], 0x07000000);
	ckt_object_destroy(&ckt_worker, object);
}

static void test_lacks(void)
{
	bool once = false;
	struct ckt_wcall *call = call_new(CKT_CALL_BATCHED);
	IS(ckt_library_lacks(call, &once), CUDA_ERROR_NOT_SUPPORTED);
	YES(once);
	IS(ckt_library_done(call, 0, &once), CUDA_SUCCESS);
	ckt_wcall_free(call);
}

UNIT_SUITE(library_call, {"objects", test_objects}, {"scalars", test_scalars},
	{"values", test_values}, {"lacks", test_lacks})
