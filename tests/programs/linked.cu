/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search tree that lives on the device: nodes taken from an arena by kernels, every link an address made there, its root in a module
 * variable.  At the mid point it is walked over and over; afterwards it grows on.
 */
#include "phase.h"
#include <algorithm>
#include <set>
#include <vector>

struct node {
	struct node *left, *right, *parent;
	unsigned key, times;
};

struct arena {
	struct node *next, *end;
};

__device__ struct node *root;
__device__ struct arena arena;

__global__ void prepare(struct node *nodes, unsigned count)
{
	arena.next = nodes;
	arena.end = nodes + count;
	root = nullptr;
}

/* One thread: the tree's shape then depends on nothing but the keys. */
__global__ void insert(const unsigned *keys, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct node **place = &root, *parent = nullptr;

		while (*place && (*place)->key != keys[i]) {
			parent = *place;
			place = keys[i] < parent->key ? &parent->left : &parent->right;
		}
		if (*place) {
			(*place)->times++;
			continue;
		}
		if (arena.next == arena.end)
			return;
		struct node *made = arena.next++;
		made->left = made->right = nullptr;
		made->parent = parent;
		made->key = keys[i];
		made->times = 1;
		*place = made;
	}
}

/* In order, by the links to the parents: keys and how often each came. */
__global__ void walk(unsigned *keys, unsigned *times, unsigned *count)
{
	struct node *at = root;
	unsigned n = 0;

	while (at && at->left)
		at = at->left;
	while (at) {
		keys[n] = at->key;
		times[n++] = at->times;
		if (at->right) {
			at = at->right;
			while (at->left)
				at = at->left;
		} else {
			while (at->parent && at == at->parent->right)
				at = at->parent;
			at = at->parent;
		}
	}
	*count = n;
}

struct check {
	unsigned *keys, *times, *count, n;
	uint64_t sum;
	const std::multiset<unsigned> *expected;
	int wrong;
};

static void look(void *opaque)
{
	struct check *c = (struct check *)opaque;
	unsigned n = 0, at = 0;

	walk<<<1, 1>>>(c->keys, c->times, c->count);
	CHECK(cudaMemcpy(&n, c->count, sizeof(n), cudaMemcpyDeviceToHost));
	std::vector<unsigned> keys(n), times(n);
	CHECK(cudaMemcpy(keys.data(), c->keys, n * 4ul, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(times.data(), c->times, n * 4ul, cudaMemcpyDeviceToHost));
	for (auto key = c->expected->begin(); key != c->expected->end(); key = c->expected->upper_bound(*key), at++)
		c->wrong += at >= n || keys[at] != *key || times[at] != c->expected->count(*key);
	c->wrong += at != n;
	c->n = n;
	c->sum = checksum(keys.data(), n * 4ul) ^ checksum(times.data(), n * 4ul);
}

int main(int argc, char **argv)
{
	unsigned n = 600 * size_factor(argc, argv), *keys;
	struct node *nodes;
	std::multiset<unsigned> expected;
	std::vector<unsigned> host(n);
	struct check c = {};
	uint32_t seed = 5;

	c.expected = &expected;
	CHECK(cudaMalloc(&nodes, 2 * n * sizeof(*nodes)));
	CHECK(cudaMalloc(&keys, n * 4ul));
	CHECK(cudaMalloc(&c.keys, 2 * n * 4ul));
	CHECK(cudaMalloc(&c.times, 2 * n * 4ul));
	CHECK(cudaMalloc(&c.count, 4));
	prepare<<<1, 1>>>(nodes, 2 * n);
	for (int half = 0; half < 2; half++) {
		for (unsigned i = 0; i < n; i++)
			expected.insert(host[i] = random_u32(&seed) % (4 * n));
		CHECK(cudaMemcpy(keys, host.data(), n * 4ul, cudaMemcpyHostToDevice));
		insert<<<1, 1>>>(keys, n);
		if (half == 0)
			phase_with(look, &c);
		else
			look(&c);
		printf("%u nodes: %016llx\n", c.n, (unsigned long long)c.sum);
	}
	EXPECT(c.wrong == 0);
	return finish();
}
