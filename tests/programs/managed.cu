/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: CPU and GPU in turn on the same addresses, structures with pointers in them, copies and fills on either side, several
 * threads that read, hints; and a fault that is the program's own.
 */
#include "phase.h"

#include <csetjmp>
#include <csignal>
#include <pthread.h>

__managed__ unsigned variable = 5;
__device__ unsigned between = 11;
__managed__ unsigned many[40000] = {1, 2, 3};
__device__ unsigned *seen;

/* The CPU's value of one, the address of the other, and a neighbour that is the GPU's alone. */
__global__ void variables(void)
{
	variable += between++;
	many[variable % 40000] = variable;
	seen = &many[39999];
}

struct node {
	node *next;
	unsigned value;
};

struct table {
	unsigned *data;
	size_t words;
	node *list;
};

__global__ void add(unsigned *p, size_t n, unsigned what)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += what;
}

__global__ void walk(const table *t, unsigned *sum)
{
	unsigned total = 0;

	for (node *at = t->list; at; at = at->next) {
		total += at->value;
		at->value *= 2;
	}
	*sum = total;
}

static unsigned *shared;
static size_t shared_words;

static void *reader(void *)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < shared_words; i++)
		sum += shared[i];
	return (void *)(uintptr_t)sum;
}

static sigjmp_buf escape;
static int caught;
static volatile int *volatile wild = (volatile int *)16;

static void on_segv(int)
{
	caught++;
	siglongjmp(escape, 1);
}

int main(void)
{
	unsigned *a, *b, *sum, *device;
	table *t;
	node *nodes;
	size_t words = 3 << 18, wrong = 0;
	int supported = 0;
	cudaStream_t stream;
	cudaPointerAttributes attributes;
	cudaMemLocation here = {};

	signal(SIGSEGV, on_segv);
	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrManagedMemory, 0));
	EXPECT(supported == 1);
	EXPECT(variable == 5 && many[2] == 3 && many[3] == 0);
	variable = 100;
	many[39999] = 8;
	variables<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	EXPECT(variable == 111 && many[111] == 111 && many[39999] == 8);
	CHECK(cudaMemcpyFromSymbol(&sum, seen, sizeof(sum)));
	EXPECT(sum == &many[39999]);

	/* A copy over all of a large variable, of which the CPU has written the end. */
	static unsigned all[40000];
	many[39998] = 17;
	CHECK(cudaMemcpy(all, many, sizeof(all), cudaMemcpyDefault));
	EXPECT(all[111] == 111 && all[39998] == 17 && all[39999] == 8);
	all[39997] = 18;
	CHECK(cudaMemcpy(many, all, sizeof(all), cudaMemcpyDefault));
	EXPECT(many[39997] == 18 && many[39998] == 17 && many[0] == 1);

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocManaged(&a, words * 4));
	CHECK(cudaMallocManaged(&b, words * 4, cudaMemAttachGlobal));
	CHECK(cudaMallocManaged(&t, sizeof(*t)));
	CHECK(cudaMallocManaged(&nodes, 10 * sizeof(*nodes)));
	CHECK(cudaMallocManaged(&sum, 4));
	CHECK(cudaMalloc(&device, words * 4));
	CHECK(cudaPointerGetAttributes(&attributes, a + 5));
	EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == a + 5 && attributes.hostPointer == a + 5);

	/* CPU, GPU, CPU, GPU, CPU. */
	for (size_t i = 0; i < words; i++)
		a[i] = (unsigned)i;
	add<<<8, 128>>>(a, words, 7);
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < words; i++)
		wrong += a[i] != i + 7;
	for (size_t i = 0; i < words; i += 1000)
		a[i] = 1;
	/* A stream that does not wait for the default stream. */
	add<<<8, 128, 0, stream>>>(a, words, 1);
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < words; i++)
		wrong += a[i] != (i % 1000 ? i + 8 : 2);
	EXPECT(wrong == 0);

	/* A structure that both follow; parameters that lie in it. */
	t->data = b;
	t->words = words;
	t->list = nodes;
	for (int i = 0; i < 10; i++) {
		nodes[i].next = i < 9 ? &nodes[i + 1] : NULL;
		nodes[i].value = i + 1;
	}
	for (size_t i = 0; i < words; i++)
		b[i] = 5;
	walk<<<1, 1>>>(t, sum);
	CHECK(cudaDeviceSynchronize());
	EXPECT(*sum == 55 && nodes[9].value == 20 && nodes[9].next == NULL);
	add<<<8, 128>>>(t->data, t->words, 3);
	void *params[] = {&t->data, &t->words, &nodes[0].value};
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaLaunchKernel((const void *)add, dim3(8), dim3(128), params, 0, 0));

	/* Half way: some of it is the GPU's, some the CPU's, some written and not sent. */
	add<<<8, 128>>>(a, words, 0);
	CHECK(cudaDeviceSynchronize());
	a[12345] = 99;
	nodes[3].value = 1000;
	variable = 200;
	phase();
	EXPECT(variable == 200 && many[111] == 111);
	variables<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	EXPECT(variable == 212 && many[212] == 212);
	EXPECT(a[12345] == 99 && a[12346] == 12346 + 8);
	EXPECT(nodes[3].value == 1000 && nodes[4].value == 10);
	walk<<<1, 1>>>(t, sum);
	CHECK(cudaDeviceSynchronize());
	printf("sum %u\n", *sum);
	EXPECT(*sum == 110 - 8 + 1000);

	shared = b;
	shared_words = words;
	pthread_t threads[4];
	void *result;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		EXPECT((uintptr_t)result == words * 10ul);
	}

	/* Copies and fills see what the CPU wrote, and the CPU what they wrote. */
	unsigned *host = (unsigned *)malloc(words * 4);

	for (size_t i = 0; i < words; i++)
		a[i] = (unsigned)(i * 3);
	CHECK(cudaMemcpy(device, a, words * 4, cudaMemcpyDefault));
	CHECK(cudaMemcpy(host, device, words * 4, cudaMemcpyDeviceToHost));
	EXPECT(memcmp(host, a, words * 4) == 0);
	a[1] = 77;
	CHECK(cudaMemset(a + 4, 0, 4000));
	EXPECT(a[1] == 77 && a[3] == 9 && a[4] == 0 && a[1003] == 0 && a[1004] == 3012);
	CHECK(cudaMemcpy(a + 100, host, 400, cudaMemcpyHostToDevice));
	EXPECT(a[100] == 0 && a[101] == 3 && a[1] == 77);
	CHECK(cudaMemcpy(host, a, words * 4, cudaMemcpyDeviceToHost));
	EXPECT(memcmp(host, a, words * 4) == 0);
	print_checksum("a", a, words * 4);

	here.type = cudaMemLocationTypeDevice;
	(void)cudaMemAdvise(a, words * 4, cudaMemAdviseSetReadMostly, here);
	(void)cudaMemPrefetchAsync(a, words * 4, here, 0, stream);
	(void)cudaGetLastError();
	CHECK(cudaStreamAttachMemAsync(stream, b, 0, cudaMemAttachSingle));
	CHECK(cudaMallocManaged(&device, 0));

	/* A wild pointer of the program is still its own affair. */
	if (sigsetjmp(escape, 1) == 0)
		*wild = 1;
	EXPECT(caught == 1);
	a[0] = 4;
	add<<<1, 32>>>(a, 1, 1);
	CHECK(cudaDeviceSynchronize());
	EXPECT(a[0] == 5);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(t));
	CHECK(cudaFree(nodes));
	CHECK(cudaFree(sum));
	if (sigsetjmp(escape, 1) == 0)
		*wild = 1;
	EXPECT(caught == 2);
	return finish();
}
