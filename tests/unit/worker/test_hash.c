/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed hashes of device memory against the same sums made on the CPU: every byte and the key
 * count, zeros are told.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/kernels/hash.h"
#include "tests/unit/worker/inside.h"

static const uint64_t key[4] = {
	0x123456789abcdef1, 0xfedcba9876543211, 0x0f1e2d3c4b5a6979, 0x8796a5b4c3d2e1f1};

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * As the kernel's head says: 256 sums, vectors of 16 bytes in turn, the rest byte by byte, then
 * mixed with their numbers and added.
 */
static struct ckt_hash_value expected(const uint8_t *data, size_t size, const uint64_t k[4])
{
	struct ckt_hash_value value = {0};
	for (uint64_t t = 0; t < 256; t++) {
		uint64_t a = k[2], b = k[3];
		for (size_t i = t; i <= size / 16; i += 256) {
			uint64_t v[2] = {0};
			if (i < size / 16)
				memcpy(v, data + i * 16, 16);
			else
				break;
			a = fold(v[0] ^ k[0], v[1] ^ a);
			b = fold(v[1] ^ k[1], v[0] ^ b);
			value.any |= v[0] | v[1];
		}
		if (t < size % 16) {
			uint64_t byte = data[size / 16 * 16 + t];
			a = fold(byte ^ k[0], a);
			b = fold(k[1], byte ^ b);
			value.any |= byte;
		}
		value.hash[0] += fold(((t + 1) * 0x9e3779b97f4a7c15 + k[3]) ^ a, k[2] | 1);
		value.hash[1] += fold(((t + 1) * 0xc2b2ae3d27d4eb4f + k[2]) ^ b, k[3] | 1);
	}
	return value;
}

static void test_equal(void)
{
	static const uint64_t sizes[] = {
		16, 32, 4096, 4096 + 7, 16384, 16384 + 16 * 300 + 3, 1 << 20, 15};
	enum { ROOM = 2 << 20 };
	uint64_t memory = inside_memory(ROOM, 0);
	uint8_t *data = malloc(ROOM);
	struct ckt_hash_item items[COUNT(sizes)];
	struct ckt_hash_value values[COUNT(sizes)];
	uint64_t at = 0;
	srand(3);
	for (size_t i = 0; i < ROOM; i++)
		data[i] = (uint8_t)(rand() >> 5);
	for (size_t i = 0; i < COUNT(sizes); at += (sizes[i++] + 15) / 16 * 16)
		items[i] = (struct ckt_hash_item){memory + at, sizes[i]};
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory, data, ROOM), 0);
	IS(ckt_hash_run(&ckt_worker, 0, key, items, COUNT(sizes), values), CUDA_SUCCESS);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct ckt_hash_value wanted =
			expected(data + (items[i].address - memory), sizes[i], key);
		IS(values[i].hash[0], wanted.hash[0]);
		IS(values[i].hash[1], wanted.hash[1]);
		IS(values[i].any, wanted.any);
	}
	/* One bit, at the very end and in the middle; and another key. */
	static const uint64_t places[] = {0, 8191, (1 << 19) + 1, (1 << 20) - 1};
	struct ckt_hash_item item = {memory, 1 << 20};
	struct ckt_hash_value first, other;
	IS(ckt_hash_run(&ckt_worker, 0, key, &item, 1, &first), CUDA_SUCCESS);
	for (size_t i = 0; i < COUNT(places); i++) {
		uint8_t flipped = data[places[i]] ^ 1;
		ckt_driver.cuMemcpyHtoD_v2(memory + places[i], &flipped, 1);
		IS(ckt_hash_run(&ckt_worker, 0, key, &item, 1, &other), CUDA_SUCCESS);
		YES(other.hash[0] != first.hash[0] && other.hash[1] != first.hash[1]);
		ckt_driver.cuMemcpyHtoD_v2(memory + places[i], &data[places[i]], 1);
	}
	uint64_t another[4];
	memcpy(another, key, sizeof another);
	another[2] ^= 1;
	IS(ckt_hash_run(&ckt_worker, 0, another, &item, 1, &other), CUDA_SUCCESS);
	YES(other.hash[0] != first.hash[0]);
	/* Nothing but zeros. */
	inside_fill(memory, 0, ROOM);
	IS(ckt_hash_run(&ckt_worker, 0, key, &item, 1, &other), CUDA_SUCCESS);
	IS(other.any, 0);
	free(data);
	inside_free(memory);
}

/*
 * What images hold: values that the kernel of 2026-11-23 returned, before it was CUDA C.  They never
 * change: an image that builds on another finds by them what has changed.
 */
static void test_recorded(void)
{
	static const struct {
		uint64_t size;
		struct ckt_hash_value value;
	} recorded[] = {
		{15, {{0x958aa4c86d8d2ea1, 0x26c0d482b80e1128}, 0xff}},
		{16, {{0x5d6b6938d374e06d, 0xfb1b78ac1fd64922}, 0xfede9ffcc1ff3c8e}},
		{4096 + 7, {{0xbab3f6f43a6b0250, 0x8faf215507a5f131}, UINT64_MAX}},
		{16384 + 16 * 300 + 3, {{0x3f30a4c500f6cc8, 0xc0ed833c1f22d909}, UINT64_MAX}},
		{1 << 20, {{0x1d135645fc4b66a3, 0xfe7502136164c63f}, UINT64_MAX}},
	};
	enum { ROOM = 2 << 20 };
	uint64_t memory = inside_memory(ROOM, 0);
	uint8_t *data = malloc(ROOM);
	for (uint32_t i = 0, state = 1; i < ROOM; i++, state = state * 1664525 + 1013904223)
		data[i] = (uint8_t)(state >> 24);
	MUST(ckt_driver.cuMemcpyHtoD_v2(memory, data, ROOM), 0);
	for (size_t i = 0; i < COUNT(recorded); i++) {
		struct ckt_hash_item item = {memory, recorded[i].size};
		struct ckt_hash_value value;
		IS(ckt_hash_run(&ckt_worker, 0, key, &item, 1, &value), CUDA_SUCCESS);
		IS(value.hash[0], recorded[i].value.hash[0]);
		IS(value.hash[1], recorded[i].value.hash[1]);
		IS(value.any, recorded[i].value.any);
	}
	free(data);
	inside_free(memory);
}

static void test_refused(void)
{
	struct ckt_hash_item item = {0x1000, 16};
	struct ckt_hash_value value;
	/* none: nothing is asked of the device */
	IS(ckt_hash_run(&ckt_worker, 0, key, &item, 0, &value), CUDA_SUCCESS);
	/* The second device has no context yet, so no kernel either. */
	CU_ASSERT_PTR_NULL_FATAL(ckt_objects_find(&ckt_worker.objects, ckt_handle_primary(1)));
	IS(ckt_hash_run(&ckt_worker, 1, key, &item, 1, &value), CUDA_ERROR_NOT_SUPPORTED);
}

UNIT_SUITE(hash, {"equal", test_equal}, {"recorded", test_recorded}, {"refused", test_refused})
