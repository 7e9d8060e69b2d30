/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_together.c: what is shared is given up and opened again at the same addresses, under the
 * same secrets; and what never comes back.
 */
#include <errno.h>
#include <string.h>

#include "server/worker/ipc/ipc_state.h"
#include "tests/unit/worker/group_kit.h"

static struct ckt_ipc_handle exported(uint64_t address)
{
	struct ckt_ipc_handle handle = {.kind = 0};
	struct ckt_ipc_mem_get_res res = {0};
	struct inside_reply *reply = INSIDE(ipc_mem_get, false, .address = address);
	MUST(reply->result, CUDA_SUCCESS);
	if (ckt_ipc_mem_get_res_get(&reply->results, &res) && res.handle_len == sizeof handle)
		memcpy(&handle, res.handle, sizeof handle);
	return handle;
}

static uint64_t opened(const struct ckt_ipc_handle *handle)
{
	struct ckt_ipc_mem_open_res res = {0};
	struct inside_reply *reply = INSIDE(ipc_mem_open, false, .handle = (const uint8_t *)handle,
		.handle_len = sizeof *handle);
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_ipc_mem_open_res_get(&reply->results, &res));
	return res.address;
}

/* What a question gets: enum ckt_ipc_found, and *ret_held. */
static uint32_t asked(enum ckt_ipc_want want, const struct ckt_ipc_handle *handle)
{
	struct ckt_ipc_question question =
		ckt_ipc_question(&ckt_worker, want, CKT_IPC_BLOCK, handle->secret);
	struct ckt_ipc_answer answer = {.found = 99};
	int fd = -1;
	MUST(ckt_ipc_ask_session(handle->session, &question, &answer, &fd), 0);
	IS(fd >= 0, answer.found == CKT_IPC_HERE && want != CKT_IPC_STILL);
	IS(answer.held, ckt_ipc.together ? CKT_IPC_TOGETHER : 0);
	if (fd >= 0)
		close(fd);
	return answer.found;
}

static void test_out_and_in(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t address = inside_memory(4096, 21);
	group_kit_begin();
	ckt_ipc_reopen();
	NO(ckt_ipc_shares());
	struct ckt_ipc_handle handle = exported(address);
	uint64_t other = opened(&handle);
	YES(ckt_ipc_shares());
	/* Standing still, what is shared keeps nobody from leaving, and only who had it gets it. */
	ckt_ipc_close();
	ckt_ipc_together_begin();
	NO(ckt_ipc_is_shared(message, sizeof message));
	NO(ckt_ipc_together_wanted());
	IS(asked(CKT_IPC_FETCH, &handle), CKT_IPC_LATER);
	YES(ckt_ipc_together_wanted());
	IS(asked(CKT_IPC_AGAIN, &handle), CKT_IPC_HERE);
	IS(ckt_ipc_together_check(&ckt_worker, message, sizeof message), 0);
	ckt_ipc_together_drop(&ckt_worker);
	ckt_ipc_together_drop(&ckt_worker);
	IS(asked(CKT_IPC_AGAIN, &handle), CKT_IPC_LATER);
	IS(asked(CKT_IPC_STILL, &handle), CKT_IPC_HERE);
	/* Its owner has it again. */
	ckt_ipc_together_export(&ckt_worker);
	IS(asked(CKT_IPC_AGAIN, &handle), CKT_IPC_HERE);
	IS(ckt_ipc_together_fetch(&ckt_worker), 0);
	ckt_ipc_together_end();
	ckt_ipc_reopen();
	IS(asked(CKT_IPC_FETCH, &handle), CKT_IPC_HERE);
	IS(inside_word(other), 21);
	inside_fill(address, 22, 4096);
	IS(inside_word(other), 22);
	IS(ASK(ipc_mem_close, .address = other), CUDA_SUCCESS);
	ckt_ipc_forget(&ckt_worker, address);
	NO(ckt_ipc_shares());
	group_kit_end();
	inside_free(address);
}

/* It is waited for a while, and then it is gone: the program can still close it. */
static void test_lost(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	uint64_t address = inside_memory(4096, 31);
	unsigned absent_ms = ckt_ipc_absent_ms;
	group_kit_begin();
	ckt_ipc_reopen();
	struct ckt_ipc_handle handle = exported(address);
	uint64_t other = opened(&handle);
	ckt_ipc_together_begin();
	/* As if another session owned it, which nobody knows. */
	ckt_ipc.imports->handle.session[0] ^= 1;
	IS(ckt_ipc_together_check(&ckt_worker, message, sizeof message), -EBUSY);
	HAS(message, "has since freed");
	ckt_ipc_together_drop(&ckt_worker);
	IS(ckt_ipc_together_fetch(&ckt_worker), -EAGAIN);
	NO(ckt_ipc.imports->lost);
	ckt_ipc_absent_ms = 0;
	while (ckt_ipc_together_fetch(&ckt_worker))
		usleep(1000);
	YES(ckt_ipc.imports->lost);
	YES(ckt_ipc.imports->away);
	ckt_ipc_absent_ms = absent_ms;
	ckt_ipc_together_end();
	IS(ASK(ipc_mem_close, .address = other), CUDA_SUCCESS);
	ckt_ipc_forget(&ckt_worker, address);
	NO(ckt_ipc_shares());
	group_kit_end();
	inside_free(address);
}

UNIT_SUITE(ipc_together, {"out and in", test_out_and_in}, {"lost", test_lost})
