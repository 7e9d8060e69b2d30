/* SPDX-License-Identifier: Apache-2.0 */
/* Whole executable graphs updated: every kind of node, what CUDA answers where it cannot be, and nodes made in another order. */
#include "phase.h"

__global__ void first(unsigned *p, unsigned n, unsigned a)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * a + i;
}

__global__ void second(unsigned *p, unsigned n, unsigned a)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] ^ (a << 8);
}

static const unsigned n = 512;
static unsigned *x, *y, *in, *out;	/* device, device, pinned, pinned */
static cudaStream_t s;
static cudaEvent_t event[2];
static unsigned called[2];

static void host0(void *data)
{
	called[0] += *(unsigned *)data;
}

static void host1(void *data)
{
	called[1] += *(unsigned *)data;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count, void *function, unsigned *p, unsigned a)
{
	cudaGraphNode_t node;
	cudaKernelNodeParams k = {};
	void *params[] = {&p, (void *)&n, &a};

	k.func = function;
	k.gridDim = dim3(n / 128);
	k.blockDim = dim3(128);
	k.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&node, graph, deps, count, &k));
	return node;
}

static cudaGraphNode_t set(cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count, unsigned *p, unsigned value, size_t width, size_t height)
{
	cudaGraphNode_t node;
	cudaMemsetParams m = {};

	m.dst = p;
	m.elementSize = 4;
	m.value = value;
	m.width = width;
	m.height = height;
	m.pitch = height > 1 ? 256 : 0;
	CHECK(cudaGraphAddMemsetNode(&node, graph, deps, count, &m));
	return node;
}

/* One node of each kind, in a row; `v` makes the difference. */
static cudaGraph_t build(unsigned v)
{
	static unsigned one = 1, ten = 10;
	cudaGraph_t graph, child;
	cudaGraphNode_t at, next;
	cudaHostNodeParams h = {v ? host1 : host0, v ? &ten : &one};

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&at, graph, NULL, 0, v ? y : x, in, n * 4, cudaMemcpyHostToDevice));
	at = kernel(graph, &at, 1, v ? (void *)second : (void *)first, v ? y : x, 3 + v);
	at = set(graph, &at, 1, v ? y : x, 100 + v, 10 + v, 1);
	CHECK(cudaGraphCreate(&child, 0));
	kernel(child, NULL, 0, (void *)first, v ? y : x, 5 + v);
	CHECK(cudaGraphAddChildGraphNode(&next, graph, &at, 1, child));
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaGraphAddEventRecordNode(&at, graph, &next, 1, event[v & 1]));
	CHECK(cudaGraphAddEventWaitNode(&next, graph, &at, 1, event[v & 1]));
	CHECK(cudaGraphAddEmptyNode(&at, graph, &next, 1));
	CHECK(cudaGraphAddMemcpyNode1D(&next, graph, &at, 1, out, v ? y : x, n * 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddHostNode(&at, graph, &next, 1, &h));
	return graph;
}

static void run(const char *what, cudaGraphExec_t exec)
{
	for (unsigned i = 0; i < n; i++)
		in[i] = i * 13;
	memset(out, 0, n * 4);
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	print_checksum(what, out, n * 4);
	printf("called %u %u\n", called[0], called[1]);
}

static void whole(void)
{
	cudaGraph_t a = build(0), b = build(1);
	cudaGraphExec_t exec, direct;
	cudaGraphExecUpdateResultInfo info;
	unsigned sums[2];

	CHECK(cudaGraphInstantiate(&exec, a, 0));
	CHECK(cudaGraphInstantiate(&direct, b, 0));
	run("before", exec);
	run("the other", direct);
	sums[0] = out[7];
	CHECK(cudaGraphExecUpdate(exec, b, &info));
	printf("update: %d\n", info.result);
	EXPECT(info.errorNode == NULL && info.errorFromNode == NULL);
	phase();
	run("after", exec);
	sums[1] = out[7];
	EXPECT(sums[0] == sums[1]);
	CHECK(cudaGraphExecUpdate(exec, a, &info));
	CHECK(cudaGraphDestroy(a));
	CHECK(cudaGraphDestroy(b));
	run("back", exec);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(direct));
}

/* Tries the update, and says whose fault it is found to be. */
static void attempt(const char *what, cudaGraphExec_t exec, cudaGraph_t graph, const cudaGraphNode_t *nodes, unsigned count)
{
	cudaGraphExecUpdateResultInfo info;
	cudaError_t error = cudaGraphExecUpdate(exec, graph, &info);

	printf("%s: %s, %d", what, cudaGetErrorName(error), info.result);
	for (unsigned i = 0; i < count; i++) {
		if (info.errorNode == nodes[i])
			printf(", node %u", i);
		if (info.errorFromNode == nodes[i])
			printf(", from %u", i);
	}
	printf("%s\n", info.errorNode ? "" : ", no node");
	(void)cudaGetLastError();
	CHECK(cudaGraphDestroy(graph));
}

static void refused(void)
{
	cudaGraph_t graph, other;
	cudaGraphExec_t exec;
	cudaGraphNode_t k[4];

	/* 0 -> 1 -> 2, and a copy at the end. */
	CHECK(cudaGraphCreate(&graph, 0));
	k[0] = kernel(graph, NULL, 0, (void *)first, x, 1);
	k[1] = set(graph, k, 1, x, 1, 8, 4);
	k[2] = kernel(graph, k + 1, 1, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], graph, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	attempt("fewer nodes", exec, other, k, 1);

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	k[1] = kernel(other, k, 1, (void *)first, x, 1);
	k[2] = kernel(other, k + 1, 1, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	attempt("another kind", exec, other, k, 4);

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	k[1] = set(other, k, 1, x, 1, 8, 4);
	k[2] = kernel(other, NULL, 0, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	attempt("an end more", exec, other, k, 4);

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	k[1] = set(other, k, 1, x, 1, 8, 4);
	k[2] = kernel(other, k, 2, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	attempt("an edge more", exec, other, k, 4);

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	k[1] = set(other, k, 1, x, 1, 8, 5);
	k[2] = kernel(other, k + 1, 1, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	attempt("rows of a memset", exec, other, k, 4);

	CHECK(cudaGraphCreate(&other, 0));
	k[0] = kernel(other, NULL, 0, (void *)first, x, 1);
	k[1] = set(other, k, 1, x, 1, 8, 4);
	k[2] = kernel(other, k + 1, 1, (void *)first, x, 1);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, y, x, n * 4, cudaMemcpyDeviceToDevice));
	attempt("another memory type", exec, other, k, 4);

	/* Made in another order, and the same graph. */
	CHECK(cudaGraphCreate(&other, 0));
	k[2] = kernel(other, NULL, 0, (void *)second, x, 9);
	CHECK(cudaGraphAddMemcpyNode1D(&k[3], other, k + 2, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	k[1] = set(other, NULL, 0, x, 7, 8, 4);
	k[0] = kernel(other, NULL, 0, (void *)second, x, 8);
	CHECK(cudaGraphAddDependencies(other, k + 1, k + 2, NULL, 1));
	CHECK(cudaGraphAddDependencies(other, k, k + 1, NULL, 1));
	attempt("another order", exec, other, k, 4);
	phase();
	CHECK(cudaMemset(x, 0x11, n * 4));
	run("updated", exec);
	EXPECT(out[100] == ((0x11111111u ^ (8 << 8)) ^ (9 << 8)));
	EXPECT(out[0] == (7 ^ (9 << 8)) && out[8] == out[100] && out[64] == out[0]);
	CHECK(cudaGraphExecDestroy(exec));
}

/* A child graph's parameters set at once, and then one of its nodes, by the handle it had in the beginning. */
static void children(void)
{
	cudaGraph_t graph, child, inner, other;
	cudaGraphExec_t exec;
	cudaGraphNode_t clear, node, inside[2], extra;
	cudaKernelNodeParams k;
	size_t count = 2;
	unsigned a = 50, *p = x;
	void *params[] = {&p, (void *)&n, &a};

	CHECK(cudaGraphCreate(&graph, 0));
	clear = set(graph, NULL, 0, x, 1, n, 1);
	CHECK(cudaGraphCreate(&child, 0));
	inside[0] = kernel(child, NULL, 0, (void *)first, x, 2);
	kernel(child, inside, 1, (void *)first, x, 3);
	CHECK(cudaGraphAddChildGraphNode(&node, graph, &clear, 1, child));
	CHECK(cudaGraphAddMemcpyNode1D(&extra, graph, &node, 1, out, x, n * 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphChildGraphNodeGetGraph(node, &inner));
	CHECK(cudaGraphGetNodes(inner, inside, &count));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run("child", exec);
	EXPECT(out[5] == (1 * 2 + 5) * 3 + 5);
	CHECK(cudaGraphCreate(&other, 0));
	extra = kernel(other, NULL, 0, (void *)first, x, 20);
	kernel(other, &extra, 1, (void *)first, x, 30);
	CHECK(cudaGraphExecChildGraphNodeSetParams(exec, node, other));
	run("child set", exec);
	EXPECT(out[5] == (1 * 20 + 5) * 30 + 5);
	CHECK(cudaGraphKernelNodeGetParams(inside[1], &k));
	k.kernelParams = params;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, inside[1], &k));
	phase();
	run("inner node set", exec);
	EXPECT(out[5] == (1 * 20 + 5) * 50 + 5);
	kernel(other, &extra, 1, (void *)first, x, 30);
	EXPECT(cudaGraphExecChildGraphNodeSetParams(exec, node, other) != cudaSuccess);
	(void)cudaGetLastError();
	CHECK(cudaGraphDestroy(other));
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphExecDestroy(exec));
}

static void destroyed(void *data)
{
	++*(unsigned *)data;
}

/* Objects of the program live as long as the graphs that they were given to. */
static void users(void)
{
	cudaGraph_t a, b;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	cudaUserObject_t object[2];
	unsigned gone[2] = {0, 0};

	CHECK(cudaGraphCreate(&a, 0));
	CHECK(cudaGraphCreate(&b, 0));
	kernel(a, NULL, 0, (void *)first, x, 1);
	kernel(b, NULL, 0, (void *)first, x, 2);
	for (unsigned i = 0; i < 2; i++)
		CHECK(cudaUserObjectCreate(&object[i], &gone[i], destroyed, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaGraphRetainUserObject(a, object[0], 1, cudaGraphUserObjectMove));
	CHECK(cudaGraphRetainUserObject(b, object[1], 1, 0));
	CHECK(cudaGraphInstantiate(&exec, a, 0));
	CHECK(cudaGraphDestroy(a));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	printf("held by the executable graph: %u %u\n", gone[0], gone[1]);
	EXPECT(gone[0] == 0);
	CHECK(cudaGraphExecUpdate(exec, b, &info));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaGraphDestroy(b));
	CHECK(cudaUserObjectRelease(object[1], 1));
	EXPECT(gone[1] == 0);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaDeviceSynchronize());
	for (unsigned k = 0; k < 1000 && (!gone[0] || !gone[1]); k++)
		usleep(1000);
	printf("in the end: %u %u\n", *(volatile unsigned *)&gone[0], *(volatile unsigned *)&gone[1]);
}

int main()
{
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaEventCreate(&event[0]));
	CHECK(cudaEventCreate(&event[1]));
	CHECK(cudaMalloc(&x, n * 4));
	CHECK(cudaMalloc(&y, n * 4));
	CHECK(cudaMallocHost(&in, n * 4));
	CHECK(cudaMallocHost(&out, n * 4));
	CHECK(cudaMemset(x, 0, n * 4));
	CHECK(cudaMemset(y, 0, n * 4));
	whole();
	refused();
	children();
	users();
	return finish();
}
