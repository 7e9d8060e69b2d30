/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations on streams; those of graphs are in graph_build.c. */
#include "server/worker/objects/memop.h"

#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/graph.h"
#include "server/worker/driver.h"
#include "server/worker/worker.h"

static bool decode(struct ckt_cursor *c, CUstreamBatchMemOpParams *op)
{
	memset(op, 0, sizeof *op);
	op->operation = (CUstreamBatchMemOpType)ckt_get_u32(c);
	uint32_t flags = ckt_get_u32(c);
	uint64_t address = ckt_get_u64(c), value = ckt_get_u64(c);
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		op->writeValue.value = (cuuint32_t)value;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		op->writeValue.value64 = value;
		break;
	case CU_STREAM_MEM_OP_BARRIER:
		op->memoryBarrier.flags = flags;
		return true;
	default:
		return false;
	}
	op->writeValue.address = address;
	op->writeValue.flags = flags;
	return true;
}

bool ckt_memops_decode(
	const uint8_t *data, size_t size, CUstreamBatchMemOpParams *ops, unsigned *ret_count)
{
	size_t count = size / CKT_MEMOP_BYTES;
	struct ckt_cursor c = {.p = data, .end = data + size};
	if (!count || count > CKT_MEMOPS_MAX || size % CKT_MEMOP_BYTES)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!decode(&c, &ops[i]))
			return false;
	*ret_count = (unsigned)count;
	return true;
}

int ckt_worker_stream_mem_ops(struct ckt_wcall *call)
{
	struct ckt_stream_mem_ops_args args;
	CUstreamBatchMemOpParams ops[CKT_MEMOPS_MAX];
	unsigned count;
	CUstream stream;
	if (!ckt_stream_mem_ops_args_get(&call->args, &args) ||
		!ckt_memops_decode(args.ops, args.ops_len, ops, &count))
		return CKT_WCALL_GARBAGE;
	if (!ckt_driver.cuStreamBatchMemOp_v2)
		return CKT_WORKER_UNSUPPORTED("cuStreamBatchMemOp with the server's driver");
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	return result ? result : ckt_driver.cuStreamBatchMemOp_v2(stream, count, ops, 0);
}
