/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations from the wire: what is one, what is none, and what it does. */
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/objects/memop.h"
#include "tests/unit/worker/inside.h"

static uint8_t *put(
	uint8_t *p, uint32_t operation, uint32_t flags, uint64_t address, uint64_t value)
{
	return ckt_put_u64(
		ckt_put_u64(ckt_put_u32(ckt_put_u32(p, operation), flags), address), value);
}

static void test_decode(void)
{
	static uint8_t bytes[(CKT_MEMOPS_MAX + 1) * CKT_MEMOP_BYTES];
	static CUstreamBatchMemOpParams ops[CKT_MEMOPS_MAX];
	unsigned count = 77;
	uint8_t *p = put(bytes, CU_STREAM_MEM_OP_WRITE_VALUE_32, 1, 0x1000, 0x1122334455667788);
	p = put(p, CU_STREAM_MEM_OP_WAIT_VALUE_64, CU_STREAM_WAIT_VALUE_GEQ, 0x2000,
		0x1122334455667788);
	p = put(p, CU_STREAM_MEM_OP_BARRIER, CU_STREAM_MEMORY_BARRIER_TYPE_GPU, 0x3000, 9);
	for (size_t size = 0; size <= 3 * CKT_MEMOP_BYTES; size++)
		IS(ckt_memops_decode(bytes, size, ops, &count),
			size && size % CKT_MEMOP_BYTES == 0);
	IS(count, 3);
	IS(ops[0].writeValue.address, 0x1000);
	IS(ops[0].writeValue.value, 0x55667788);
	IS(ops[0].writeValue.flags, 1);
	IS(ops[1].waitValue.value64, 0x1122334455667788);
	IS(ops[2].memoryBarrier.flags, CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
	static const uint32_t wrong[] = {0, 3, 5, 7, 99, UINT32_MAX};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		put(bytes, wrong[i], 0, 0x1000, 1);
		bool known = wrong[i] == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
			wrong[i] == CU_STREAM_MEM_OP_WRITE_VALUE_64 ||
			wrong[i] == CU_STREAM_MEM_OP_BARRIER;
		IS(ckt_memops_decode(bytes, CKT_MEMOP_BYTES, ops, &count), known);
	}
	for (unsigned i = 0; i <= CKT_MEMOPS_MAX; i++)
		put(bytes + i * CKT_MEMOP_BYTES, CU_STREAM_MEM_OP_BARRIER, 0, 0, 0);
	YES(ckt_memops_decode(bytes, CKT_MEMOPS_MAX * CKT_MEMOP_BYTES, ops, &count));
	IS(count, CKT_MEMOPS_MAX);
	NO(ckt_memops_decode(bytes, sizeof bytes, ops, &count));
}

static void test_stream(void)
{
	uint8_t bytes[3 * CKT_MEMOP_BYTES];
	uint64_t memory = inside_memory(4096, 0);
	put(put(bytes, CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, memory, 5),
		CU_STREAM_MEM_OP_WRITE_VALUE_64, 0, memory + 8, (uint64_t)6 << 32);
	IS(ASK(stream_mem_ops, .stream = 0, .ops = bytes, .ops_len = 2 * CKT_MEMOP_BYTES),
		CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory), 5);
	IS(inside_word(memory + 12), 6);
	IS(ASK(stream_mem_ops, .stream = ID(STREAM, 99), .ops = bytes, .ops_len = CKT_MEMOP_BYTES),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(stream_mem_ops, .stream = 0, .ops = bytes, .ops_len = CKT_MEMOP_BYTES - 4),
		INSIDE_GARBAGE);
	IS(ASK(stream_mem_ops, .stream = 0, .ops = bytes, .ops_len = 0), INSIDE_GARBAGE);
	/* not aligned: the driver's to refuse */
	put(bytes, CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, memory + 1, 5);
	IS(ASK(stream_mem_ops, .stream = 0, .ops = bytes, .ops_len = CKT_MEMOP_BYTES),
		CUDA_ERROR_INVALID_VALUE);
	IS(CUT(stream_mem_ops, .stream = 0, .ops = bytes, .ops_len = 2 * CKT_MEMOP_BYTES), 0);
	inside_free(memory);
}

UNIT_SUITE(memop, {"decode", test_decode}, {"stream", test_stream})
