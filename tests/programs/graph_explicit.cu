/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs built node by node: every kind of node, questions, parameters set anew, update, clone, child graphs, host nodes with host memory. */
#include "phase.h"

__global__ void axpy(unsigned *y, const unsigned *x, unsigned n, unsigned a)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = a * x[i] + y[i];
}

__global__ void reduce(const unsigned *x, unsigned n, unsigned *total)
{
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(total, x[i]);
}

struct host_state {
	unsigned *result, *factor;	/* host memory that copies of the graph touch */
	unsigned calls, seen;
};

/* In the middle of the graph: reads what a copy before it wrote, writes what a copy behind it reads. */
static void between(void *data)
{
	struct host_state *h = (struct host_state *)data;

	h->calls++;
	h->seen = *h->result;
	*h->factor = h->seen % 7 + 1;
}

static void other_function(void *data)
{
	struct host_state *h = (struct host_state *)data;

	h->calls += 100;
	*h->factor = 2;
}

static void destroyed(void *data)
{
	++*(int *)data;
}

static void name(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count, void *function, void **params, unsigned blocks)
{
	cudaGraphNode_t node;
	cudaKernelNodeParams p = {};

	p.func = function;
	p.gridDim = dim3(blocks);
	p.blockDim = dim3(128);
	p.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&node, graph, deps, count, &p));
	return node;
}

int main()
{
	const unsigned n = 700;
	unsigned *x, *y, *total, *hx, *result, *factor, a = 3, expect = 0, *dfactor, final_value;
	struct host_state h = {};
	cudaGraph_t graph, clone, child, embedded, small;
	cudaGraphNode_t copy_in, clear, clear_total, add, sum, copy_out, host, copy_factor, record, empty, sub, found, list[16];
	cudaGraphNodeType type;
	cudaGraphExec_t exec, exec2;
	cudaEvent_t event;
	cudaStream_t s;
	size_t count;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaMalloc(&x, n * 4));
	CHECK(cudaMalloc(&y, n * 4));
	CHECK(cudaMalloc(&total, 4));
	CHECK(cudaMalloc(&dfactor, 4));
	hx = (unsigned *)malloc(n * 4);
	CHECK(cudaMallocHost(&result, 8));	/* pinned: pageable memory would be read when the launch is issued */
	factor = result + 1;
	for (unsigned i = 0; i < n; i++)
		hx[i] = i + 1;
	h.result = result;
	h.factor = factor;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&copy_in, graph, NULL, 0, x, hx, n * 4, cudaMemcpyHostToDevice));
	cudaMemsetParams ms = {};
	ms.dst = y;
	ms.elementSize = 4;
	ms.width = n;
	ms.height = 1;
	ms.value = 5;
	CHECK(cudaGraphAddMemsetNode(&clear, graph, NULL, 0, &ms));
	ms.dst = total;
	ms.width = 1;
	ms.value = 0;
	CHECK(cudaGraphAddMemsetNode(&clear_total, graph, NULL, 0, &ms));
	void *axpy_params[] = {&y, &x, (void *)&n, &a};
	cudaGraphNode_t both[] = {copy_in, clear};
	add = kernel_node(graph, both, 2, (void *)axpy, axpy_params, (n + 127) / 128);
	void *sum_params[] = {&y, (void *)&n, &total};
	cudaGraphNode_t before_sum[] = {add, clear_total};
	sum = kernel_node(graph, before_sum, 2, (void *)reduce, sum_params, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&copy_out, graph, &sum, 1, result, total, 4, cudaMemcpyDeviceToHost));
	cudaHostNodeParams hp = {between, &h};
	CHECK(cudaGraphAddHostNode(&host, graph, &copy_out, 1, &hp));
	CHECK(cudaGraphAddMemcpyNode1D(&copy_factor, graph, &host, 1, dfactor, factor, 4, cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddEventRecordNode(&record, graph, &copy_factor, 1, event));
	CHECK(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
	CHECK(cudaGraphAddDependencies(graph, &record, &empty, NULL, 1));
	name("the same edge twice", cudaGraphAddDependencies(graph, &record, &empty, NULL, 1));
	name("an edge to itself", cudaGraphAddDependencies(graph, &empty, &empty, NULL, 1));

	CHECK(cudaGraphGetNodes(graph, NULL, &count));
	printf("nodes %zu", count);
	CHECK(cudaGraphGetRootNodes(graph, NULL, &count));
	printf(" roots %zu", count);
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
	printf(" edges %zu\n", count);
	count = 16;
	CHECK(cudaGraphGetNodes(graph, list, &count));
	for (size_t i = 0; i < count; i++) {
		CHECK(cudaGraphNodeGetType(list[i], &type));
		printf("%d ", type);
	}
	CHECK(cudaGraphNodeGetDependencies(add, NULL, NULL, &count));
	printf("| add behind %zu", count);
	CHECK(cudaGraphNodeGetDependentNodes(add, NULL, NULL, &count));
	printf(", before %zu\n", count);
	cudaKernelNodeParams kp;
	CHECK(cudaGraphKernelNodeGetParams(add, &kp));
	EXPECT(kp.func == (void *)axpy && kp.gridDim.x == (n + 127) / 128 && *(unsigned *)kp.kernelParams[3] == 3);
	cudaMemcpy3DParms cp;
	CHECK(cudaGraphMemcpyNodeGetParams(copy_in, &cp));
	EXPECT(cp.srcPtr.ptr == hx && cp.dstPtr.ptr == x && cp.extent.width == n * 4);

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned k = 0; k < 3; k++) {
		hx[0] = 1000 * k;
		CHECK(cudaGraphLaunch(exec, s));
		if (k == 1)
			phase();
		CHECK(cudaEventSynchronize(event));
		CHECK(cudaStreamSynchronize(s));
		expect = 0;
		for (unsigned i = 0; i < n; i++)
			expect += a * hx[i] + 5;
		CHECK(cudaMemcpy(&final_value, dfactor, 4, cudaMemcpyDeviceToHost));
		printf("result %u, seen %u, factor %u, calls %u\n", *result, h.seen, final_value, h.calls);
		EXPECT(*result == expect && h.seen == expect && final_value == expect % 7 + 1 && h.calls == k + 1);
	}

	/* Parameters set anew, in the graph (no effect on the executable one) and in the executable one. */
	unsigned b = 10;
	void *b_params[] = {&y, &x, (void *)&n, &b};
	kp.kernelParams = b_params;
	CHECK(cudaGraphKernelNodeSetParams(add, &kp));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	EXPECT(*result == expect);
	CHECK(cudaGraphExecKernelNodeSetParams(exec, add, &kp));
	ms.dst = y;
	ms.width = n;
	ms.value = 1;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, clear, &ms));
	hp.fn = other_function;
	CHECK(cudaGraphExecHostNodeSetParams(exec, host, &hp));
	phase();
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	expect = 0;
	for (unsigned i = 0; i < n; i++)
		expect += b * hx[i] + 1;
	printf("result %u, calls %u\n", *result, h.calls);
	EXPECT(*result == expect && h.calls == 104);
	CHECK(cudaGraphNodeSetEnabled(exec, add, 0));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	printf("without the kernel %u\n", *result);
	EXPECT(*result == n);
	phase();
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	EXPECT(*result == n);

	/* Clone, update, child graph. */
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphNodeFindInClone(&found, add, clone));
	EXPECT(found != add);
	CHECK(cudaGraphKernelNodeGetParams(found, &kp));
	EXPECT(*(unsigned *)kp.kernelParams[3] == 10);
	unsigned c = 4;
	void *c_params[] = {&y, &x, (void *)&n, &c};
	kp.kernelParams = c_params;
	CHECK(cudaGraphKernelNodeSetParams(found, &kp));
	CHECK(cudaGraphInstantiate(&exec2, graph, 0));
	cudaGraphExecUpdateResultInfo info;
	CHECK(cudaGraphExecUpdate(exec2, clone, &info));
	printf("update %d\n", info.result);
	CHECK(cudaGraphLaunch(exec2, s));
	CHECK(cudaStreamSynchronize(s));
	expect = 0;
	for (unsigned i = 0; i < n; i++)
		expect += c * hx[i] + 5;
	printf("result %u\n", *result);
	EXPECT(*result == expect);
	CHECK(cudaGraphCreate(&small, 0));
	CHECK(cudaGraphAddEmptyNode(&empty, small, NULL, 0));
	name("update by another graph", cudaGraphExecUpdate(exec2, small, &info));
	printf("update %d\n", info.result);
	CHECK(cudaGraphCreate(&child, 0));
	CHECK(cudaGraphAddChildGraphNode(&sub, child, NULL, 0, clone));
	CHECK(cudaGraphChildGraphNodeGetGraph(sub, &embedded));
	CHECK(cudaGraphGetNodes(embedded, NULL, &count));
	printf("child of %zu nodes\n", count);
	CHECK(cudaGraphDestroy(clone));
	CHECK(cudaGraphExecDestroy(exec2));
	CHECK(cudaGraphInstantiate(&exec2, child, 0));
	*result = 0;
	CHECK(cudaGraphLaunch(exec2, s));
	CHECK(cudaStreamSynchronize(s));
	printf("by the child %u\n", *result);
	EXPECT(*result == expect);

	/* A circle, a handle that is none, an object that a graph keeps. */
	cudaGraphNode_t e1, e2;
	CHECK(cudaGraphAddEmptyNode(&e1, small, &empty, 1));
	CHECK(cudaGraphAddEmptyNode(&e2, small, &e1, 1));
	int gone = 0;
	cudaUserObject_t user;
	CHECK(cudaUserObjectCreate(&user, &gone, destroyed, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaGraphRetainUserObject(small, user, 1, cudaGraphUserObjectMove));
	EXPECT(gone == 0);
	CHECK(cudaGraphDestroyNode(e1));
	CHECK(cudaGraphNodeGetDependencies(e2, NULL, NULL, &count));
	printf("after its predecessor went: %zu\n", count);
	CHECK(cudaGraphDestroy(small));
	for (int i = 0; i < 1000 && !gone; i++)
		usleep(1000);
	EXPECT(gone == 1);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(exec2));
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaGraphDestroy(graph));
	free(hx);
	CHECK(cudaFreeHost(result));
	return finish();
}
