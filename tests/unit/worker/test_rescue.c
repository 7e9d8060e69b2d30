/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/rescue.c: memory read by another process, as after a device fault: across
 * pieces, memory that the program mapped itself, and what is nowhere.  argv[1] the worker, argv[2]
 * the soft libcuda.so.1.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/wire_session.h"

/* The word at the address as the helper process finds it; the call's result. */
static CUresult rescued(
	struct wire *w, uint64_t address, uint32_t size, uint32_t *ret_first, uint32_t *ret_last)
{
	struct wire_reply reply =
		WIRE_CALL(w, memory_rescue, false, .address = address, .size = size);
	struct ckt_memory_rescue_res res = {0};
	CUresult result = reply.result;
	if (!result) {
		MUST(ckt_memory_rescue_res_get(&reply.results, &res), true);
		MUST(res.data_len, size);
		memcpy(ret_first, res.data, 4);
		memcpy(ret_last, res.data + size - 4, 4);
	}
	free(reply.data);
	return result;
}

static void test_read(void)
{
	struct wire *w = session_new();
	uint64_t small = alloc(w, 4096), big = alloc(w, 6 * MIB), reserved,
		 physical = ckt_handle_make(CKT_KIND_PHYSICAL, 1, 2000);
	uint32_t first = 0, last = 0;
	fill(w, small, 7, 4096);
	fill(w, big, 8, 6 * MIB);
	fill(w, big + 5 * MIB, 9, MIB);
	IS(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	IS(rescued(w, small, 4096, &first, &last), CUDA_SUCCESS);
	IS(first, 7);
	IS(last, 7);
	IS(rescued(w, big + 4 * MIB + 4, MIB, &first, &last), CUDA_SUCCESS);
	IS(first, 8);
	IS(last, 9);

	struct wire_reply reply = WIRE_CALL(w, address_reserve, true, .size = 4 * MIB);
	struct ckt_address_reserve_res res = {0};
	MUST(reply.result, CUDA_SUCCESS);
	YES(ckt_address_reserve_res_get(&reply.results, &res));
	free(reply.data);
	reserved = res.address;
	MUST(done(WIRE_CALL(w, physical_create, true, .id = physical, .size = 2 * MIB)),
		CUDA_SUCCESS);
	MUST(done(WIRE_CALL(
		     w, mem_map, true, .address = reserved, .size = 2 * MIB, .physical = physical)),
		CUDA_SUCCESS);
	MUST(done(WIRE_CALL(w, mem_set_access, true, .address = reserved, .size = 2 * MIB,
		     .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE)),
		CUDA_SUCCESS);
	fill(w, reserved, 10, 2 * MIB);
	IS(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	IS(rescued(w, reserved + MIB, MIB, &first, &last), CUDA_SUCCESS);
	IS(first, 10);
	IS(last, 10);

	/* Nowhere, over the end, nothing, too much. */
	IS(rescued(w, reserved + 2 * MIB, 4, &first, &last), CUDA_ERROR_INVALID_VALUE);
	IS(rescued(w, reserved + 2 * MIB - 4, 8, &first, &last), CUDA_ERROR_INVALID_VALUE);
	IS(rescued(w, 0x1000, 4, &first, &last), CUDA_ERROR_INVALID_VALUE);
	IS(rescued(w, small, 0, &first, &last), CUDA_ERROR_INVALID_VALUE);
	IS(rescued(w, big, MIB + 4, &first, &last), CUDA_ERROR_INVALID_VALUE);
	session_end(w);
}

UNIT_SUITE(rescue, {"read", test_read})
