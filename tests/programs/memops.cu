/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations: streams that write values and wait for them, one by one and in batches, captured and as nodes of graphs. */
#include "phase.h"
#include <cuda.h>

#define CU(call)                                                                                                                 \
	do {                                                                                                                     \
		CUresult cu_result = (call);                                                                                     \
		if (cu_result != CUDA_SUCCESS) {                                                                                 \
			printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, cu_result);                                         \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

/* The driver's functions of that version, by the runtime: the program is not linked with the driver. */
template <typename F> static F entry(const char *name)
{
	void *found = NULL;
	cudaDriverEntryPointQueryResult how;

	CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
	if (how != cudaDriverEntryPointSuccess || !found) {
		printf("no %s\n", name);
		exit(1);
	}
	return (F)found;
}

typedef CUresult (*value32)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
typedef CUresult (*value64)(CUstream, CUdeviceptr, cuuint64_t, unsigned);

static value32 write32, wait32;
static value64 write64, wait64;
static CUresult (*batch)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
static CUresult (*add_node)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
static CUresult (*get_node)(CUgraphNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *);
static CUresult (*set_node)(CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
static CUresult (*exec_set_node)(CUgraphExec, CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
static CUresult (*current)(CUcontext *);
static CUresult (*get_type)(CUgraphNode, CUgraphNodeType *);

__global__ void add(unsigned *p, unsigned v)
{
	*p += v;
}

static unsigned *device;	/* 64 words */
static cudaStream_t a, b;

static CUdeviceptr at(unsigned word)
{
	return (CUdeviceptr)(device + word);
}

static void show(const char *what)
{
	unsigned host[16];

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	printf("%s:", what);
	for (unsigned v : host)
		printf(" %x", v);
	printf("\n");
}

static CUstreamBatchMemOpParams op32(CUstreamBatchMemOpType type, unsigned word, unsigned value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {};

	op.operation = type;
	op.writeValue.address = at(word);
	op.writeValue.value = value;
	op.writeValue.flags = flags;
	return op;
}

static void misuse(void)
{
	unsigned on_stack = 0;
	CUstreamBatchMemOpParams op = op32(CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, 1, 0);

	printf("no address: %d\n", write32(a, 0, 1, 0));
	printf("odd address: %d\n", write32(a, at(0) + 2, 1, 0));
	printf("half a long word: %d\n", write64(a, at(1), 1, 0));
	printf("the host's: %d\n", write32(a, (CUdeviceptr)&on_stack, 1, 0));
	printf("no operations: %d\n", batch(a, 0, &op, 0));
	printf("too many: %d\n", batch(a, 257, &op, 0));
	printf("a flag: %d\n", batch(a, 1, &op, 1));
	op.operation = (CUstreamBatchMemOpType)99;
	printf("unknown operation: %d\n", batch(a, 1, &op, 0));
}

int main()
{
	int wide = 0;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CUgraphNode node;
	CUcontext context;
	cudaGraphNode_t list[4];
	CUgraphNodeType type;
	cudaGraphNodeType runtime_type;
	size_t count = 4;
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {}, told;

	CHECK(cudaFree(0));
	write32 = entry<value32>("cuStreamWriteValue32");
	wait32 = entry<value32>("cuStreamWaitValue32");
	write64 = entry<value64>("cuStreamWriteValue64");
	wait64 = entry<value64>("cuStreamWaitValue64");
	batch = entry<decltype(batch)>("cuStreamBatchMemOp");
	add_node = entry<decltype(add_node)>("cuGraphAddBatchMemOpNode");
	get_node = entry<decltype(get_node)>("cuGraphBatchMemOpNodeGetParams");
	set_node = entry<decltype(set_node)>("cuGraphBatchMemOpNodeSetParams");
	exec_set_node = entry<decltype(exec_set_node)>("cuGraphExecBatchMemOpNodeSetParams");
	current = entry<decltype(current)>("cuCtxGetCurrent");
	get_type = entry<decltype(get_type)>("cuGraphNodeGetType");
	CHECK(cudaDeviceGetAttribute(&wide, (cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
	EXPECT(wide == 1);
	CU(current(&context));
	CHECK(cudaMalloc(&device, 256));
	CHECK(cudaMemset(device, 0, 256));
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	/* Loaded now: a kernel's first launch may wait for the device, and the streams below wait for one another. */
	add<<<1, 1>>>(device + 63, 0);
	CHECK(cudaDeviceSynchronize());

	CU(write32(a, at(0), 0x11, 0));
	EXPECT(write32(a, at(1), 0x22, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) == CUDA_ERROR_INVALID_VALUE);
	CU(write32(a, at(1), 0x22, 0));
	CU(write64(a, at(2), 0x123456789abcdefull, 0));
	show("written");

	/* One stream waits for what the other one writes, with each comparison. */
	CU(wait32(b, at(4), 3, CU_STREAM_WAIT_VALUE_GEQ));
	add<<<1, 1, 0, b>>>(device + 5, 1);
	EXPECT(cudaStreamQuery(b) == cudaErrorNotReady);
	CU(write32(a, at(4), 7, 0));
	CU(wait32(b, at(4), 8, CU_STREAM_WAIT_VALUE_EQ));
	add<<<1, 1, 0, b>>>(device + 5, 1);
	CU(write32(a, at(4), 8, 0));
	CHECK(cudaStreamSynchronize(b));
	CU(wait64(b, at(6), 0x100, CU_STREAM_WAIT_VALUE_AND));
	add<<<1, 1, 0, b>>>(device + 5, 1);
	CU(write64(a, at(6), 0x300, 0));
	/* Cyclic: -1 lies before 1, though it is the bigger number without a sign. */
	CU(write32(a, at(8), 1, 0));
	CU(wait32(b, at(8), 0xffffffffu, CU_STREAM_WAIT_VALUE_GEQ));
	add<<<1, 1, 0, b>>>(device + 5, 1);
	show("waited");
	phase();

	CUstreamBatchMemOpParams ops[5] = {
		op32(CU_STREAM_MEM_OP_WAIT_VALUE_32, 4, 8, CU_STREAM_WAIT_VALUE_EQ), op32(CU_STREAM_MEM_OP_WRITE_VALUE_32, 9, 0x99, 0),
		op32(CU_STREAM_MEM_OP_WRITE_VALUE_32, 10, 0xaa, 0), op32(CU_STREAM_MEM_OP_WRITE_VALUE_64, 12, 0, 0), {}};
	ops[3].writeValue.value64 = 0xfedcba9876543210ull;
	ops[4].operation = CU_STREAM_MEM_OP_BARRIER;
	ops[4].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
	CU(batch(a, 5, ops, 0));
	show("batch");

	/* Captured: nodes of a kind of their own. */
	CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	CU(write32(a, at(0), 5, 0));
	add<<<1, 1, 0, a>>>(device, 6);
	CU(wait32(a, at(0), 11, CU_STREAM_WAIT_VALUE_EQ));
	CU(write32(a, at(1), 0x1000, 0));
	CHECK(cudaStreamEndCapture(a, &graph));
	CHECK(cudaGraphGetNodes(graph, list, &count));
	for (size_t i = 0; i < count; i++) {
		CU(get_type((CUgraphNode)list[i], &type));
		printf("%d(%d) ", type, cudaGraphNodeGetType(list[i], &runtime_type));
	}
	CU(get_node((CUgraphNode)list[3], &told));
	printf("| %u operations, %d, value %x\n", told.count, told.paramArray[0].operation, told.paramArray[0].writeValue.value);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, a));
	phase();
	CHECK(cudaGraphLaunch(exec, a));
	show("captured");
	ops[0] = op32(CU_STREAM_MEM_OP_WRITE_VALUE_32, 1, 0x2000, 0);
	told.paramArray = ops;
	told.count = 1;
	CU(exec_set_node((CUgraphExec)exec, (CUgraphNode)list[3], &told));
	CHECK(cudaGraphLaunch(exec, a));
	show("set anew");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));

	CHECK(cudaGraphCreate(&graph, 0));
	params.ctx = context;
	params.count = 2;
	params.paramArray = ops + 1;
	CU(add_node(&node, (CUgraph)graph, NULL, 0, &params));
	CU(get_node(node, &told));
	EXPECT(told.count == 2 && told.paramArray != ops + 1 && told.paramArray[1].writeValue.address == at(10));
	ops[1].writeValue.value = 0x77;
	params.count = 1;
	CU(set_node(node, &params));
	CHECK(cudaMemset(device, 0, 256));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	phase();
	CHECK(cudaGraphLaunch(exec, b));
	show("node");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	misuse();
	show("in the end");
	return finish();
}
