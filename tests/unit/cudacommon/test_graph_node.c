/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_node.c: each kind's parameters: what is refused, kept as a copy, and set in an
 * executable graph.
 */
#include "../softgpu/files.h"

static CUgraph graph;
static CUdeviceptr memory;

static void begin(void)
{
	test_context();
	OK(cuMemAlloc(&memory, 256));
	OK(cuMemsetD32(memory, 0, 64));
	OK(cuGraphCreate(&graph, 0));
}

static void CUDA_CB add_one(void *number)
{
	++*(int *)number;
}

static void test_kernel(void)
{
	begin();
	CUgraphNode node, again;
	CUgraphExec exec;
	CUdeviceptr p = memory;
	void *values[] = {&p};
	size_t size = sizeof(p);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END};
	CUDA_KERNEL_NODE_PARAMS good = {.func = test_function("add_one"),
					.gridDimX = 1,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = 4,
					.blockDimY = 1,
					.blockDimZ = 1,
					.kernelParams = values},
				bad = good, told = {0};
	bad.gridDimY = 0;
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.func = (CUfunction)(uintptr_t)0x1230;
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_HANDLE);
	bad = good;
	bad.extra = extra;
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
	bad.kernelParams = NULL;
	size = 7;
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
	size = 8;
	bad.extra = NULL;
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
	bad.kernelParams = (void *[]){NULL};
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddKernelNode(NULL, graph, NULL, 0, &good), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &good));
	good.kernelParams = NULL;
	good.extra = extra;
	OK(cuGraphAddKernelNode(&again, graph, &node, 1, &good));
	/* The parameters are the node's own since then. */
	p = 0;
	OK(cuGraphKernelNodeGetParams(node, &told));
	IS(*(CUdeviceptr *)told.kernelParams[0], memory);
	IS(told.blockDimX, 4);
	/* As they were given. */
	OK(cuGraphKernelNodeGetParams(again, &told));
	CU_ASSERT_PTR_NULL(told.kernelParams);
	YES(told.extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER);
	IS(*(CUdeviceptr *)told.extra[1], memory);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	IS(files_word(memory + 12), 2);
	/* In the executable graph alone. */
	p = memory + 128;
	OK(cuGraphExecKernelNodeSetParams(exec, again, &good));
	OK(cuGraphLaunch(exec, NULL));
	IS(files_word(memory + 12), 3);
	IS(files_word(memory + 128), 1);
	/* As they were given. */
	OK(cuGraphKernelNodeGetParams(again, &told));
	CU_ASSERT_PTR_NULL(told.kernelParams);
	YES(told.extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER);
	IS(*(CUdeviceptr *)told.extra[1], memory);
	good.blockDimZ = 0;
	CHECK_RESULT(cuGraphExecKernelNodeSetParams(exec, again, &good), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch(exec, NULL));
	IS(files_word(memory + 128), 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void test_attributes(void)
{
	begin();
	CUgraphNode node, hostless;
	CUlaunchAttributeValue value = {.priority = -3}, told = {0};
	CUDA_KERNEL_NODE_PARAMS params = {.func = test_function("trap_now"),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	OK(cuGraphAddEmptyNode(&hostless, graph, NULL, 0));
	OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	value.priority = -4;
	OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
	IS(told.priority, -4);
	CHECK_RESULT(cuGraphKernelNodeSetAttribute(hostless, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

/* Of every other kind: good parameters are taken, each bad change of them is not. */
static void test_kinds(void)
{
	begin();
	CUgraphNode node;
	CUevent event;
	CUgraph inner;
	int called = 0;
	CUstreamBatchMemOpParams ops[2] = {{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32},
		{.operation = CU_STREAM_MEM_OP_BARRIER}};
	ops[0].writeValue.address = memory;
	OK(cuEventCreate(&event, 0));
	OK(cuGraphCreate(&inner, 0));
	const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory + 128,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUDA_MEMCPY3D flat[3] = {copy, copy, copy};
	flat[0].WidthInBytes = 0;
	flat[1].Height = 0;
	flat[2].Depth = 0;
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
	for (int i = 0; i < 3; i++)
		CHECK_RESULT(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &flat[i], NULL),
			CUDA_ERROR_INVALID_VALUE);
	static const struct {
		CUDA_MEMSET_NODE_PARAMS p;
		CUresult result;
	} fills[] = {
		{{.dst = 1, .elementSize = 4, .width = 1, .height = 1}, CUDA_SUCCESS},
		{{.dst = 1, .elementSize = 1, .width = 1, .height = 2, .pitch = 8}, CUDA_SUCCESS},
		{{.dst = 0, .elementSize = 4, .width = 1, .height = 1}, CUDA_ERROR_INVALID_VALUE},
		{{.dst = 1, .elementSize = 3, .width = 1, .height = 1}, CUDA_ERROR_INVALID_VALUE},
		{{.dst = 1, .elementSize = 8, .width = 1, .height = 1}, CUDA_ERROR_INVALID_VALUE},
		{{.dst = 1, .elementSize = 2, .width = 0, .height = 1}, CUDA_ERROR_INVALID_VALUE},
		{{.dst = 1, .elementSize = 2, .width = 1, .height = 0}, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(fills); i++) {
		CUDA_MEMSET_NODE_PARAMS p = fills[i].p;
		p.dst = p.dst ? memory : 0;
		CHECK_RESULT(
			cuGraphAddMemsetNode(&node, graph, NULL, 0, &p, NULL), fills[i].result);
	}
	CUDA_HOST_NODE_PARAMS host = {.fn = add_one, .userData = &called}, none = {0};
	OK(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	CHECK_RESULT(cuGraphAddHostNode(&node, graph, NULL, 0, &none), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	OK(cuGraphAddEventWaitNode(&node, graph, &node, 1, event));
	CHECK_RESULT(cuGraphAddEventRecordNode(&node, graph, NULL, 0, (CUevent)(uintptr_t)0x1230),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuGraphAddEventWaitNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, inner));
	CHECK_RESULT(
		cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddChildGraphNode(&node, graph, NULL, 0, (CUgraph)(uintptr_t)0x1230),
		CUDA_ERROR_INVALID_VALUE);
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {.count = 2, .paramArray = ops};
	OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	batch.count = 0;
	CHECK_RESULT(
		cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch), CUDA_ERROR_INVALID_VALUE);
	batch.count = 2;
	batch.flags = 1;
	CHECK_RESULT(
		cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch), CUDA_ERROR_INVALID_VALUE);
	CUgraphNodeParams strange = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL};
	CHECK_RESULT(
		cuGraphAddNode(&node, graph, NULL, NULL, 0, &strange), CUDA_ERROR_NOT_SUPPORTED);
	size_t n = 0;
	OK(cuGraphGetNodes(graph, NULL, &n));
	IS(n, 8);
	/* All of them together run. */
	CUgraphExec exec;
	OK(cuMemsetD32(memory, 99, 64));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	IS(called, 1);
	IS(files_word(memory + 128), 99);
	IS(files_word(memory), 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(inner));
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(event));
}

/*
 * What a node is may not change in an executable graph; where its bytes lie and what they are may.
 */
static void test_exec_set(void)
{
	begin();
	CUgraphExec exec;
	CUgraphNode copy_node, fill_node;
	int host_word = 5;
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory + 64,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory, .value = 3, .elementSize = 4, .width = 1, .height = 1};
	OK(cuGraphAddMemsetNode(&fill_node, graph, NULL, 0, &fill, NULL));
	OK(cuGraphAddMemcpyNode(&copy_node, graph, &fill_node, 1, &copy, NULL));
	OK(cuGraphInstantiate(&exec, graph, 0));
	CHECK_RESULT(cuGraphExecMemcpyNodeSetParams(exec, fill_node, &copy, NULL),
		CUDA_ERROR_INVALID_VALUE);
	copy.dstDevice = memory + 68;
	OK(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, NULL));
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = &host_word;
	CHECK_RESULT(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, NULL),
		CUDA_ERROR_INVALID_VALUE);
	fill.value = 4;
	fill.elementSize = 2; /* in one dimension everything may change */
	fill.width = 2;
	OK(cuGraphExecMemsetNodeSetParams(exec, fill_node, &fill, NULL));
	OK(cuGraphLaunch(exec, NULL));
	IS(files_word(memory + 64), 0);
	IS(files_word(memory + 68), 0x40004);
	IS(host_word, 5);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(cudacommon / graph_node, {"kernel", test_kernel}, {"attributes", test_attributes},
	{"kinds", test_kinds}, {"exec set", test_exec_set})
