/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE3 by its specification: chunks of 1 KiB are the leaves of a binary tree, each compressed in
 * blocks of 64 bytes.
 *
 * LANES whole chunks, or LANES pairs of nodes, are compressed at once, one in each lane of a
 * vector; what is left over goes through the same code with idle lanes.  The compiler makes the
 * vectors fit the machine (target_clones).
 */
#include "checkpoint/format/blake3.h"

#include <string.h>

enum { LANES = 16, CHUNK = 1024, BLOCK = 64, TREE_MAX = 64 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define CLONES
#endif

static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint8_t schedule[7][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
	{3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
	{10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
	{12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
	{9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
	{11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

#define ROTATE(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define MIX(a, b, c, d, x, y)                   \
	do {                                    \
		v[a] += v[b] + (x);             \
		v[d] = ROTATE(v[d] ^ v[a], 16); \
		v[c] += v[d];                   \
		v[b] = ROTATE(v[b] ^ v[c], 12); \
		v[a] += v[b] + (y);             \
		v[d] = ROTATE(v[d] ^ v[a], 8);  \
		v[c] += v[d];                   \
		v[b] = ROTATE(v[b] ^ v[c], 7);  \
	} while (0)

/*
 * in[i] -> blocks of `count` 64-byte blocks each, hashed as a chunk (first and last flags added) or
 * as a parent (count 1); the chaining values go to out[i].  last_size is the size of the last block
 * (of lane 0's data where it matters: whole otherwise).
 */
CLONES static void compress(const uint8_t *const in[LANES], unsigned count, uint32_t last_size,
	const uint64_t counters[LANES], uint32_t flags, uint32_t first_flags, uint32_t last_flags,
	uint32_t out[LANES][8])
{
	lanes h[8], low, high;
	for (int i = 0; i < 8; i++)
		h[i] = (lanes){0} + iv[i];
	for (int l = 0; l < LANES; l++) {
		low[l] = (uint32_t)counters[l];
		high[l] = (uint32_t)(counters[l] >> 32);
	}
	for (unsigned block = 0; block < count; block++) {
		lanes m[16], v[16] = {0};
		uint32_t words[16][LANES];
		for (int l = 0; l < LANES; l++) {
			uint32_t w[16];
			memcpy(w, in[l] + block * BLOCK, BLOCK);
			for (int i = 0; i < 16; i++)
				words[i][l] = w[i];
		}
		memcpy(m, words, sizeof m);
		for (int i = 0; i < 8; i++)
			v[i] = h[i];
		for (int i = 0; i < 4; i++)
			v[8 + i] = (lanes){0} + iv[i];
		v[12] = low;
		v[13] = high;
		v[14] = (lanes){0} + (block + 1 == count ? last_size : BLOCK);
		v[15] = (lanes){0} +
			(flags | (block ? 0 : first_flags) | (block + 1 == count ? last_flags : 0));
#pragma GCC unroll 7
		for (int round = 0; round < 7; round++) {
			const uint8_t *s = schedule[round];
			MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
			MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
			MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
			MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
			MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
			MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
			MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
			MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
		}
		for (int i = 0; i < 8; i++)
			h[i] = v[i] ^ v[i + 8];
	}
	for (int i = 0; i < 8; i++)
		for (int l = 0; l < LANES; l++)
			out[l][i] = h[i][l];
}

/* One chunk of any size, perhaps the root; lane 0 works alone. */
static void leaf(const uint8_t *data, size_t size, uint64_t counter, uint32_t root, uint32_t out[8])
{
	uint8_t padded[CHUNK] = {0};
	const uint8_t *in[LANES];
	uint64_t counters[LANES];
	uint32_t all[LANES][8];
	unsigned blocks = size ? (unsigned)((size + BLOCK - 1) / BLOCK) : 1;
	memcpy(padded, data, size);
	for (int l = 0; l < LANES; l++) {
		in[l] = padded;
		counters[l] = counter;
	}
	compress(in, blocks, (uint32_t)(size - (blocks - 1) * BLOCK), counters, 0, CHUNK_START,
		CHUNK_END | root, all);
	memcpy(out, all[0], 32);
}

/* Combines pairs of nodes; root only if there is one pair. */
static void parents(const uint32_t (*nodes)[8], size_t pairs, uint32_t root, uint32_t (*out)[8])
{
	static const uint64_t zeros[LANES];
	for (size_t at = 0; at < pairs; at += LANES) {
		const uint8_t *in[LANES];
		uint32_t all[LANES][8];
		size_t some = pairs - at < LANES ? pairs - at : LANES;
		for (size_t l = 0; l < LANES; l++)
			in[l] = (const uint8_t *)nodes[2 * (at + (l < some ? l : 0))];
		compress(in, 1, BLOCK, zeros, PARENT | root, 0, 0, all);
		memcpy(out[at], all, some * 32);
	}
}

/*
 * The node above `size` bytes from chunk number `counter` on; size is at most CHUNK * TREE_MAX,
 * whole subtrees below.
 */
static void subtree(
	const uint8_t *data, size_t size, uint64_t counter, uint32_t root, uint32_t out[8])
{
	uint32_t nodes[TREE_MAX][8];
	size_t count = 0, whole = size / CHUNK;
	if (size <= CHUNK) {
		leaf(data, size, counter, root, out);
		return;
	}
	while (count < whole) {
		const uint8_t *in[LANES];
		uint64_t counters[LANES];
		uint32_t all[LANES][8];
		size_t some = whole - count < LANES ? whole - count : LANES;
		for (size_t l = 0; l < LANES; l++) {
			size_t i = count + (l < some ? l : 0);
			in[l] = data + i * CHUNK;
			counters[l] = counter + i;
		}
		compress(in, CHUNK / BLOCK, BLOCK, counters, 0, CHUNK_START, CHUNK_END, all);
		memcpy(nodes[count], all, some * 32);
		count += some;
	}
	if (size % CHUNK) {
		leaf(data + whole * CHUNK, size % CHUNK, counter + whole, 0, nodes[count]);
		count++;
	}
	/*
	 * Level by level, an odd node passing through: this gives the same tree as splitting at the
	 * largest power of two.
	 */
	while (count > 1) {
		parents((const uint32_t(*)[8])nodes, count / 2, count == 2 ? root : 0, nodes);
		if (count % 2)
			memcpy(nodes[count / 2], nodes[count - 1], 32);
		count = (count + 1) / 2;
	}
	memcpy(out, nodes[0], 32);
}

static void node(const uint8_t *data, size_t size, uint64_t counter, uint32_t root, uint32_t out[8])
{
	if (size <= (size_t)CHUNK * TREE_MAX) {
		subtree(data, size, counter, root, out);
		return;
	}
	size_t left = CHUNK;
	while (left * 2 < size)
		left *= 2;
	uint32_t pair[2][8];
	node(data, left, counter, 0, pair[0]);
	node(data + left, size - left, counter + left / CHUNK, 0, pair[1]);
	parents((const uint32_t(*)[8])pair, 1, root, (uint32_t(*)[8])out);
}

void ckt_blake3(const void *data, size_t size, uint8_t ret_hash[32])
{
	uint32_t out[8];
	node(data, size, 0, ROOT, out);
	memcpy(ret_hash, out, 32);
}
