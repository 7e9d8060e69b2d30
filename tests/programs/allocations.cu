/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1,000 allocations of many sizes, freed and taken again in another order, before, at and after the mid point.  Every one holds a
 * pattern of its own, which kernels check through a table of the addresses that lies on the device itself.
 */
#include "phase.h"

#define COUNT 1000

struct slot {
	unsigned *data;
	unsigned words, value;
};

struct heap {
	struct slot slots[COUNT], *table;
	unsigned long long *wrong, found;
	uint32_t seed;
	unsigned made;
};

__global__ void fill(struct slot slot)
{
	for (unsigned i = threadIdx.x; i < slot.words; i += blockDim.x)
		slot.data[i] = slot.value + i;
}

__global__ void verify(const struct slot *slots, unsigned long long *wrong)
{
	struct slot slot = slots[blockIdx.x];

	for (unsigned i = threadIdx.x; i < slot.words; i += blockDim.x)
		if (slot.data[i] != slot.value + i)
			atomicAdd(wrong, 1ull);
}

static void take(struct heap *heap, unsigned i)
{
	struct slot *slot = &heap->slots[i];
	uint32_t r = random_u32(&heap->seed);

	/* A few large ones among many small. */
	slot->words = 1 + (r % 50 ? r / 64 % 97 : r / 64 % 1500);
	slot->value = heap->made++ * 2654435761u;
	CHECK(cudaMalloc(&slot->data, slot->words * 4ul + (r % 250 == 1 ? 3 << 20 : 0)));
	fill<<<1, 32>>>(*slot);
}

static void check(struct heap *heap)
{
	CHECK(cudaMemcpy(heap->table, heap->slots, sizeof(heap->slots), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(heap->wrong, 0, sizeof(*heap->wrong)));
	verify<<<COUNT, 32>>>(heap->table, heap->wrong);
	CHECK(cudaMemcpy(&heap->found, heap->wrong, sizeof(heap->found), cudaMemcpyDeviceToHost));
	EXPECT(heap->found == 0);
}

/* Some of them, anywhere. */
static void turn(void *opaque)
{
	struct heap *heap = (struct heap *)opaque;
	unsigned freed[20];

	for (unsigned k = 0; k < 20; k++) {
		freed[k] = random_u32(&heap->seed) % (COUNT / 20) * 20 + k;
		CHECK(cudaFree(heap->slots[freed[k]].data));
	}
	for (unsigned k = 20; k-- > 0;)
		take(heap, freed[k]);
}

int main(void)
{
	static struct heap heap;
	unsigned long long words = 0;

	heap.seed = 3;
	CHECK(cudaMalloc(&heap.table, sizeof(heap.slots)));
	CHECK(cudaMalloc(&heap.wrong, sizeof(*heap.wrong)));
	for (unsigned i = 0; i < COUNT; i++)
		take(&heap, i);
	for (unsigned k = 0; k < 10; k++)
		turn(&heap);
	check(&heap);
	phase_with(turn, &heap);
	check(&heap);
	/* All of them, every second first; the seed is the same however long the mid point lasted. */
	heap.seed = 4;
	heap.made = 0;
	for (unsigned i = 0; i < COUNT; i++)
		CHECK(cudaFree(heap.slots[(i * 2 + i / (COUNT / 2)) % COUNT].data));
	for (unsigned i = 0; i < COUNT; i++)
		take(&heap, i);
	check(&heap);
	for (unsigned i = 0; i < COUNT; i++)
		words += heap.slots[i].words * (unsigned long long)heap.slots[i].value;
	for (unsigned i = 0; i < COUNT; i++)
		CHECK(cudaFree(heap.slots[i].data));
	printf("words %llu\n", words);
	return finish();
}
