/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate and free: in one graph, across graphs and launches, captured, and what the rules forbid. */
#include "phase.h"

__global__ void fill(unsigned *p, unsigned n, unsigned from)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = from + i * 7;
}

__global__ void add(unsigned *to, const unsigned *a, const unsigned *b, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = a[i] + 2 * b[i];
}

static const unsigned n = 3000;
static cudaStream_t s;
static unsigned *result;	/* pinned */

static void name(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static cudaGraphNode_t alloc_node(cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count, size_t size, unsigned **address)
{
	cudaGraphNode_t node;
	cudaMemAllocNodeParams p = {};

	p.poolProps.allocType = cudaMemAllocationTypePinned;
	p.poolProps.location.type = cudaMemLocationTypeDevice;
	p.poolProps.location.id = 0;
	p.bytesize = size;
	CHECK(cudaGraphAddMemAllocNode(&node, graph, deps, count, &p));
	*address = (unsigned *)p.dptr;
	return node;
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count, void *function, void **params)
{
	cudaGraphNode_t node;
	cudaKernelNodeParams p = {};

	p.func = function;
	p.gridDim = dim3((n + 127) / 128);
	p.blockDim = dim3(128);
	p.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&node, graph, deps, count, &p));
	return node;
}

static unsigned long long attribute(cudaGraphMemAttributeType which)
{
	unsigned long long value;

	CHECK(cudaDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

static void show(const char *what, const unsigned *device)
{
	CHECK(cudaMemcpyAsync(result, device, n * 4, cudaMemcpyDeviceToHost, s));
	CHECK(cudaStreamSynchronize(s));
	print_checksum(what, result, n * 4);
}

/* Allocated and freed in the graph. */
static void inside(void)
{
	cudaGraph_t graph, clone, other;
	cudaGraphExec_t exec, second;
	cudaGraphNode_t a, b, fill_a, fill_b, sum, out, free_a, free_b, child, extra;
	cudaMemAllocNodeParams told;
	unsigned *pa, *pb, from = 11, more = 100;
	void *freed;

	CHECK(cudaGraphCreate(&graph, 0));
	a = alloc_node(graph, NULL, 0, n * 4, &pa);
	b = alloc_node(graph, NULL, 0, n * 4, &pb);
	EXPECT(pa && pb && pa != pb);
	void *fa[] = {&pa, (void *)&n, &from}, *fb[] = {&pb, (void *)&n, &more};
	fill_a = kernel_node(graph, &a, 1, (void *)fill, fa);
	fill_b = kernel_node(graph, &b, 1, (void *)fill, fb);
	void *fs[] = {&pa, &pa, &pb, (void *)&n};
	cudaGraphNode_t both[] = {fill_a, fill_b};
	sum = kernel_node(graph, both, 2, (void *)add, fs);
	CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &sum, 1, result, pa, n * 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddMemFreeNode(&free_b, graph, &sum, 1, pb));
	CHECK(cudaGraphAddMemFreeNode(&free_a, graph, &out, 1, pa));
	CHECK(cudaGraphMemAllocNodeGetParams(a, &told));
	EXPECT(told.dptr == pa && told.bytesize == n * 4 && told.poolProps.location.id == 0);
	CHECK(cudaGraphMemFreeNodeGetParams(free_b, &freed));
	EXPECT(freed == pb);

	name("free twice in the graph", cudaGraphAddMemFreeNode(&extra, graph, &free_a, 1, pa));
	name("free what no graph allocated", cudaGraphAddMemFreeNode(&extra, graph, NULL, 0, result));
	CHECK(cudaGraphCreate(&other, 0));
	name("free in another graph as well", cudaGraphAddMemFreeNode(&extra, other, NULL, 0, pa));
	EXPECT(cudaGraphClone(&clone, graph) != cudaSuccess);
	EXPECT(cudaGraphDestroyNode(out) != cudaSuccess);
	EXPECT(cudaGraphRemoveDependencies(graph, &sum, &out, NULL, 1) != cudaSuccess);
	EXPECT(cudaGraphAddChildGraphNode(&child, other, NULL, 0, graph) != cudaSuccess);
	CHECK(cudaGraphDestroy(other));
	(void)cudaGetLastError();

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);
	(void)cudaGetLastError();
	for (unsigned k = 0; k < 4; k++) {
		memset(result, 0, n * 4);
		CHECK(cudaGraphLaunch(exec, s));
		if (k == 1)
			phase();
		CHECK(cudaStreamSynchronize(s));
		for (unsigned i = 0; i < n; i++)
			if (result[i] != from + i * 7 + 2 * (more + i * 7)) {
				EXPECT(!"the graph's sum");
				break;
			}
		print_checksum("inside", result, n * 4);
	}
	name("cudaFree of what the graph frees", cudaFree(pa));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamSynchronize(s));
	print_checksum("inside", result, n * 4);
}

/* Left by a launch, used behind it, and freed in each of the ways there are. */
static void outside(void)
{
	cudaGraph_t graph, freeing;
	cudaGraphExec_t exec, free_exec, auto_exec;
	cudaGraphNode_t a, f, node;
	unsigned *p, from = 5;
	unsigned long long flags;

	CHECK(cudaGraphCreate(&graph, 0));
	a = alloc_node(graph, NULL, 0, n * 4, &p);
	void *params[] = {&p, (void *)&n, &from};
	f = kernel_node(graph, &a, 1, (void *)fill, params);
	(void)f;
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	name("cudaFreeAsync before the launch", cudaFreeAsync(p, s));
	CHECK(cudaGraphLaunch(exec, s));
	fill<<<1, 1, 0, s>>>(p, 1, 77);
	EXPECT(attribute(cudaGraphMemAttrUsedMemCurrent) >= n * 4);
	EXPECT(attribute(cudaGraphMemAttrReservedMemCurrent) >= n * 4);
	phase();
	show("outside", p);
	name("launch again", cudaGraphLaunch(exec, s));
	CHECK(cudaFreeAsync(p, s));
	name("cudaFreeAsync twice", cudaFreeAsync(p, s));
	CHECK(cudaGraphLaunch(exec, s));
	show("outside", p);
	CHECK(cudaFree(p));

	CHECK(cudaGraphCreate(&freeing, 0));
	CHECK(cudaGraphAddMemFreeNode(&node, freeing, NULL, 0, p));
	name("a second free node", cudaGraphAddMemFreeNode(&node, freeing, NULL, 0, p));
	name("a free node in the owner too", cudaGraphAddMemFreeNode(&node, graph, &f, 1, p));
	CHECK(cudaGraphInstantiate(&free_exec, freeing, 0));
	name("free what is not there", cudaGraphLaunch(free_exec, s));
	for (unsigned k = 0; k < 3; k++) {
		CHECK(cudaGraphLaunch(exec, s));
		if (k == 1)
			phase();
		show("outside", p);
		CHECK(cudaGraphLaunch(free_exec, s));
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(free_exec));
	CHECK(cudaGraphDestroy(freeing));

	CHECK(cudaGraphInstantiateWithFlags(&auto_exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	CHECK(cudaGraphExecGetFlags(auto_exec, &flags));
	printf("flags %llu\n", flags);
	for (unsigned k = 0; k < 3; k++)
		CHECK(cudaGraphLaunch(auto_exec, s));
	show("auto free", p);
	/* Live memory outlives its graphs. */
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaGraphExecDestroy(auto_exec));
	CHECK(cudaGraphDestroy(graph));
	phase();
	show("without its graph", p);
	fill<<<(n + 127) / 128, 128, 0, s>>>(p, n, 1);
	show("without its graph", p);
	CHECK(cudaFreeAsync(p, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaDeviceGraphMemTrim(0));
	printf("used %llu\n", attribute(cudaGraphMemAttrUsedMemCurrent));
}

/* Stream-ordered allocation, captured. */
static void captured(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t list[32];
	cudaGraphNodeType type;
	unsigned *a, *b, *c, *plain;
	size_t count = 32;
	cudaMemPool_t pool;

	CHECK(cudaMalloc(&plain, 64));
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaMallocAsync(&a, n * 4, s));
	fill<<<(n + 127) / 128, 128, 0, s>>>(a, n, 3);
	CHECK(cudaMallocFromPoolAsync(&b, n * 4, pool, s));
	add<<<(n + 127) / 128, 128, 0, s>>>(b, a, a, n);
	CHECK(cudaFreeAsync(a, s));
	CHECK(cudaMallocAsync(&c, n * 4, s));
	CHECK(cudaMemsetAsync(c, 0, n * 4, s));
	add<<<(n + 127) / 128, 128, 0, s>>>(c, b, c, n);
	CHECK(cudaMemcpyAsync(result, c, n * 4, cudaMemcpyDeviceToHost, s));
	CHECK(cudaFreeAsync(b, s));
	phase();
	CHECK(cudaFreeAsync(c, s));
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphGetNodes(graph, list, &count));
	for (size_t i = 0; i < count; i++) {
		CHECK(cudaGraphNodeGetType(list[i], &type));
		printf("%d ", type);
	}
	printf("\n");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned k = 0; k < 3; k++) {
		memset(result, 0, n * 4);
		CHECK(cudaGraphLaunch(exec, s));
		CHECK(cudaStreamSynchronize(s));
		print_checksum("captured", result, n * 4);
	}
	CHECK(cudaGraphDestroy(graph));
	phase();
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	print_checksum("captured", result, n * 4);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaFree(plain));
}

static void attributes(void)
{
	unsigned long long value = 1, zero = 0;

	EXPECT(attribute(cudaGraphMemAttrUsedMemHigh) >= n * 4);
	EXPECT(attribute(cudaGraphMemAttrReservedMemHigh) >= n * 4);
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
	EXPECT(attribute(cudaGraphMemAttrUsedMemHigh) == attribute(cudaGraphMemAttrUsedMemCurrent));
	name("reset to something", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &value));
	name("set what is", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero));
	name("no such device", cudaDeviceGraphMemTrim(99));
}

int main()
{
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMallocHost(&result, n * 4));
	inside();
	outside();
	captured();
	attributes();
	CHECK(cudaFreeHost(result));
	CHECK(cudaStreamDestroy(s));
	return finish();
}
