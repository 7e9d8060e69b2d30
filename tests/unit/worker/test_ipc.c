/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc.h: memory that sessions share: who may ask, what a handle must be, and when
 * nothing is shared any more.
 */
#include <string.h>

#include "server/worker/ipc/ipc_state.h"
#include "tests/unit/worker/group_kit.h"

static int get(uint64_t address, struct ckt_ipc_handle *ret)
{
	struct ckt_ipc_mem_get_res res = {0};
	struct inside_reply *reply = INSIDE(ipc_mem_get, false, .address = address);
	if (!reply->result && ckt_ipc_mem_get_res_get(&reply->results, &res) &&
		res.handle_len == sizeof *ret)
		memcpy(ret, res.handle, sizeof *ret);
	return reply->result;
}

/* Whether another worker would get the memory with this question. */
static bool asked(const void *question, size_t size)
{
	const struct ckt_group_name name = {{0}};
	struct ckt_ipc_answer answer = {0};
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	IS(send(pair[0], question, size, MSG_NOSIGNAL), size);
	ckt_ipc_serve(&ckt_worker, &name, pair[1]);
	recv(pair[0], &answer, sizeof answer, MSG_DONTWAIT);
	close(pair[0]);
	close(pair[1]);
	return answer.found == CKT_IPC_HERE;
}

static void test_share(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t address = inside_memory(4096, 11);
	struct ckt_ipc_handle handle, again, wrong;
	NO(ckt_ipc_is_shared(message, sizeof message));
	/* The session of these tests stands still. */
	ckt_ipc_reopen();
	if (!ckt_group_joined()) /* nobody could ask for it */
		IS(get(address, &handle), CUDA_ERROR_NOT_SUPPORTED);
	group_kit_begin();
	IS(get(0, &handle), CUDA_ERROR_INVALID_VALUE);
	IS(get(address + (1ull << 30), &handle), CUDA_ERROR_INVALID_VALUE);
	MUST(get(address, &handle), CUDA_SUCCESS);
	IS(memcmp(handle.magic, CKT_IPC_MAGIC, 8), 0);
	IS(handle.kind, CKT_IPC_BLOCK);
	IS(get(address, &again), CUDA_SUCCESS);
	IS(memcmp(&handle, &again, sizeof handle), 0); /* exported once */
	YES(ckt_ipc_is_shared(message, sizeof message));
	HAS(message, "shares memory or events with other processes");
	/* Only who knows the secret gets it, in a question of the right form. */
	struct ckt_ipc_question question = ckt_ipc_question(
					&ckt_worker, CKT_IPC_FETCH, CKT_IPC_BLOCK, handle.secret),
				other;
	YES(asked(&question, sizeof question));
	static const size_t fields[] = {0, 8, 23, 24, 28, 33};
	for (size_t i = 0; i < COUNT(fields); i++) {
		other = question;
		((uint8_t *)&other)[fields[i]] ^= 1;
		NO(asked(&other, sizeof other));
	}
	NO(asked(&question, sizeof question - 1));
	NO(asked(&question, 1));
	/* Handles that are none. */
	for (size_t i = 0; i < 8; i++) {
		wrong = handle;
		wrong.magic[i] ^= 1;
		IS(ASK(ipc_mem_open, .handle = (const uint8_t *)&wrong, .handle_len = sizeof wrong),
			CUDA_ERROR_INVALID_VALUE);
	}
	for (uint32_t length = 0; length < sizeof handle; length += 9)
		IS(ASK(ipc_mem_open, .handle = (const uint8_t *)&handle, .handle_len = length),
			CUDA_ERROR_INVALID_VALUE);
	wrong = handle;
	wrong.kind = CKT_IPC_PHYSICAL;
	IS(ASK(ipc_mem_open, .handle = (const uint8_t *)&wrong, .handle_len = sizeof wrong),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(physical_import, .id = ID(PHYSICAL, 241), .handle = (const uint8_t *)&handle,
		   .handle_len = sizeof handle),
		CUDA_ERROR_INVALID_VALUE);
	wrong = handle;
	wrong.session[0] ^= 1;
	IS(ASK(ipc_mem_open, .handle = (const uint8_t *)&wrong, .handle_len = sizeof wrong),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(ipc_mem_close, .address = address), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(physical_export, .physical = ID(PHYSICAL, 299)), CUDA_ERROR_INVALID_VALUE);
	/* Opened, it is the same memory at another address. */
	struct inside_reply *reply = INSIDE(ipc_mem_open, false, .handle = (const uint8_t *)&handle,
		.handle_len = sizeof handle);
	struct ckt_ipc_mem_open_res res = {0};
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_ipc_mem_open_res_get(&reply->results, &res) && res.address != address);
	IS(inside_word(res.address), 11);
	inside_fill(address, 12, 4096);
	IS(inside_word(res.address), 12);
	/* By itself, with its own process: no other session is needed for an image. */
	NO(ckt_ipc_obstacle(&ckt_worker, message, sizeof message));
	/* Standing still, it gives nothing away: whoever asks comes again. */
	ckt_ipc_close();
	NO(asked(&question, sizeof question));
	ckt_ipc_reopen();
	YES(asked(&question, sizeof question));
	/* Forgotten, nobody opens it any more, and who has it keeps it, and counts it. */
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t charged = ckt_memory_charged(memory);
	struct ckt_group_name owner = ckt_group_session(handle.session, CKT_IPC_SESSION),
			      stranger = owner;
	stranger.bytes[8] ^= 1;
	ckt_ipc_owner_gone(&ckt_worker, &stranger);
	IS(ckt_memory_charged(memory), charged);
	ckt_ipc_forget(&ckt_worker, address);
	YES(ckt_memory_charged(memory) > charged);
	uint64_t counted = ckt_memory_charged(memory);
	ckt_ipc_owner_gone(&ckt_worker, &owner); /* once */
	IS(ckt_memory_charged(memory), counted);
	NO(asked(&question, sizeof question));
	YES(ckt_ipc_is_shared(message, sizeof message));
	IS(inside_word(res.address), 12);
	IS(ASK(ipc_mem_close, .address = res.address), CUDA_SUCCESS);
	IS(ckt_memory_charged(memory), charged);
	IS(ASK(ipc_mem_close, .address = res.address), CUDA_ERROR_INVALID_VALUE);
	NO(ckt_ipc_is_shared(message, sizeof message));
	IS(CUT(ipc_mem_get, .address = address), 0);
	IS(CUT(ipc_mem_close, .address = address), 0);
	IS(CUT(ipc_mem_open, .handle = (const uint8_t *)&handle, .handle_len = sizeof handle), 0);
	/* With its context all of that goes. */
	IS(get(address, &handle), CUDA_SUCCESS);
	ckt_ipc_forget_context(&ckt_worker, ID(CONTEXT, 299));
	YES(ckt_ipc_is_shared(message, sizeof message));
	ckt_ipc_forget_context(&ckt_worker, ckt_handle_primary(0));
	NO(ckt_ipc_is_shared(message, sizeof message));
	group_kit_end();
	inside_free(address);
}

static uint64_t open_there(const struct ckt_ipc_handle *handle)
{
	struct ckt_ipc_mem_open_res res = {0};
	struct inside_reply *reply = INSIDE(ipc_mem_open, false, .handle = (const uint8_t *)handle,
		.handle_len = sizeof *handle);
	return !reply->result && ckt_ipc_mem_open_res_get(&reply->results, &res) ? res.address : 0;
}

/* A replay: the same handle, and the same place where it is opened. */
static void test_again(void)
{
	uint64_t first = inside_memory(4096, 11), second = inside_memory(4096, 12);
	struct ckt_ipc_handle handle, again, other;
	group_kit_begin();
	MUST(get(second, &handle), CUDA_SUCCESS);
	MUST(get(first, &other), CUDA_SUCCESS);
	YES(memcmp(handle.secret, other.secret, sizeof handle.secret) != 0);
	uint64_t opened = open_there(&handle), wanted = opened + 7 * CKT_MEMORY_EXTENT;
	MUST(opened != 0, true);
	YES(opened % CKT_MEMORY_EXTENT != 0);
	IS(ASK(ipc_mem_close, .address = opened), CUDA_SUCCESS);
	ckt_ipc_forget(&ckt_worker, second);
	MUST(get(second, &again), CUDA_SUCCESS);
	IS(memcmp(&handle, &again, sizeof handle), 0);
	/* Nobody knows it without the key. */
	ckt_ipc_forget(&ckt_worker, second);
	ckt_worker.secret_hash[0] ^= 1;
	MUST(get(second, &other), CUDA_SUCCESS);
	ckt_worker.secret_hash[0] ^= 1;
	YES(memcmp(handle.secret, other.secret, sizeof handle.secret) != 0);
	ckt_worker.impose.seq = 1;
	ckt_worker.impose.address = wanted;
	IS(open_there(&other), wanted);
	/* Taken, and below all memory. */
	IS(open_there(&other), 0);
	ckt_worker.impose.address = 1;
	IS(open_there(&other), 0);
	ckt_worker.impose.seq = ckt_worker.impose.address = 0;
	ckt_memory_impose(&ckt_worker.devices[0].memory, 0);
	IS(inside_word(wanted), 12);
	IS(ASK(ipc_mem_close, .address = wanted), CUDA_SUCCESS);
	ckt_ipc_forget(&ckt_worker, first);
	ckt_ipc_forget(&ckt_worker, second);
	group_kit_end();
	inside_free(first);
	inside_free(second);
}

/* What travels is the handle that the driver has for it. */
static void test_event(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_ipc_handle handle, wrong;
	struct ckt_ipc_event_get_res res = {0};
	uint64_t own = ID(EVENT, 240), plain = ID(EVENT, 241), opened = ID(EVENT, 242);
	group_kit_begin();
	IS(ASK(event_create, .id = own, .flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
		CUDA_SUCCESS);
	IS(ASK(event_create, .id = plain, .flags = CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	NO(ckt_ipc_is_shared(message, sizeof message));
	YES(INSIDE(ipc_event_get, false, .event = plain)->result != CUDA_SUCCESS);
	IS(INSIDE(ipc_event_get, false, .event = ID(EVENT, 299))->result,
		CUDA_ERROR_INVALID_HANDLE);
	struct inside_reply *reply = INSIDE(ipc_event_get, false, .event = own);
	MUST(reply->result, CUDA_SUCCESS);
	MUST(ckt_ipc_event_get_res_get(&reply->results, &res) && res.handle_len == sizeof handle,
		true);
	memcpy(&handle, res.handle, sizeof handle);
	IS(handle.kind, CKT_IPC_EVENT);
	YES(ckt_ipc_is_shared(message, sizeof message));
	/* No memory, and memory is no event. */
	IS(ASK(ipc_mem_open, .handle = (const uint8_t *)&handle, .handle_len = sizeof handle),
		CUDA_ERROR_INVALID_VALUE);
	wrong = handle;
	wrong.kind = CKT_IPC_BLOCK;
	IS(ASK(ipc_event_open, .id = opened, .handle = (const uint8_t *)&wrong,
		   .handle_len = sizeof wrong),
		CUDA_ERROR_MAP_FAILED);
	wrong = handle;
	wrong.session[0] ^= 1;
	IS(ASK(ipc_event_open, .id = opened, .handle = (const uint8_t *)&wrong,
		   .handle_len = sizeof wrong),
		CUDA_ERROR_MAP_FAILED);
	for (uint32_t length = 0; length < sizeof handle; length += 9)
		IS(ASK(ipc_event_open, .id = opened, .handle = (const uint8_t *)&handle,
			   .handle_len = length),
			CUDA_ERROR_MAP_FAILED);
	IS(ASK(ipc_event_open, .id = opened, .handle = (const uint8_t *)&handle,
		   .handle_len = sizeof handle),
		CUDA_SUCCESS);
	IS(ASK(event_record, .event = opened, .stream = 0), CUDA_SUCCESS);
	IS(ASK(event_synchronize, .event = own), CUDA_SUCCESS);
	IS(ASK(event_query, .event = opened), CUDA_SUCCESS);
	IS(INSIDE(ipc_event_get, false, .event = opened)->result, CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_destroy, .id = own), CUDA_SUCCESS);
	YES(ckt_ipc_is_shared(message, sizeof message));
	IS(ASK(event_destroy, .id = opened), CUDA_SUCCESS);
	IS(ASK(event_destroy, .id = plain), CUDA_SUCCESS);
	NO(ckt_ipc_is_shared(message, sizeof message));
	IS(CUT(ipc_event_get, .event = own), 0);
	IS(CUT(ipc_event_open, .id = opened, .handle = (const uint8_t *)&handle,
		   .handle_len = sizeof handle),
		0);
	group_kit_end();
}

UNIT_SUITE(ipc, {"share", test_share}, {"again", test_again}, {"event", test_event})
