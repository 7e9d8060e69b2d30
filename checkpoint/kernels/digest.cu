/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel that hashes device memory with BLAKE3; digest.h says what it is for, digest.c launches
 * it.  digest.ptx is made from this file by gen_ptx.py.
 *
 * A block of THREADS threads takes one item {address, size}: whole KiB, at most 2 MiB, 16-byte
 * aligned.  out: 32 bytes an item.
 *
 * A thread compresses the leaves (chunks of 1 KiB) tid, tid + THREADS, ...; then the block halves
 * the row of nodes level by level, an odd one moving up as it is, which is BLAKE3's tree.  A row of
 * ROW nodes fits shared memory; of an item with more, the first ROW leaves are a whole subtree whose
 * root waits in registers for the root of the rest.
 *
 * There is one compression in the code, and its rounds are a loop, so that the driver compiles the
 * kernel in a moment.
 */
typedef unsigned long long word64;
typedef unsigned word;

enum { THREADS = 256, ROW = 1024, WORDS = 8, LEAF = 1024, BLOCK = 64, BLOCKS = LEAF / BLOCK };
/* Blocks that a multiprocessor of an H100 has shared memory for: they need registers, too. */
enum { BLOCKS_EACH = 4 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

#define IV \
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, \
		0x5be0cd19

static __shared__ word nodes[(ROW + ROW / 2) * WORDS];

/* A row of nodes there: word w of node i is nodes[base + w * stride + i]. */
struct row {
	unsigned base, stride;
};

static __device__ word rotate(word value, unsigned bits)
{
	return __funnelshift_r(value, value, bits);
}

static __device__ void mix(word &a, word &b, word &c, word &d, word x, word y)
{
	a += b + x;
	d = __byte_perm(d ^ a, 0, 0x1032);
	c += d;
	b = rotate(b ^ c, 12);
	a += b + y;
	d = __byte_perm(d ^ a, 0, 0x0321);
	c += d;
	b = rotate(b ^ c, 7);
}

static __device__ void compress(word h[WORDS], word m[2 * WORDS], word low, word flags)
{
	const word iv[WORDS] = {IV};
	word v[2 * WORDS] = {h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], iv[0], iv[1], iv[2],
		iv[3], low, 0, BLOCK, flags};

#pragma unroll 1
	for (int round = 0; round < 7; round++) {
		mix(v[0], v[4], v[8], v[12], m[0], m[1]);
		mix(v[1], v[5], v[9], v[13], m[2], m[3]);
		mix(v[2], v[6], v[10], v[14], m[4], m[5]);
		mix(v[3], v[7], v[11], v[15], m[6], m[7]);
		mix(v[0], v[5], v[10], v[15], m[8], m[9]);
		mix(v[1], v[6], v[11], v[12], m[10], m[11]);
		mix(v[2], v[7], v[8], v[13], m[12], m[13]);
		mix(v[3], v[4], v[9], v[14], m[14], m[15]);
		const word n[2 * WORDS] = {m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1],
			m[11], m[12], m[5], m[9], m[14], m[15], m[8]};
#pragma unroll
		for (int i = 0; i < 2 * WORDS; i++)
			m[i] = n[i];
	}
#pragma unroll
	for (int i = 0; i < WORDS; i++)
		h[i] = v[i] ^ v[i + WORDS];
}

static __device__ void load_node(word to[WORDS], struct row row, unsigned at)
{
#pragma unroll
	for (int w = 0; w < WORDS; w++)
		to[w] = nodes[row.base + w * row.stride + at];
}

static __device__ void store_node(struct row row, unsigned at, const word from[WORDS])
{
#pragma unroll
	for (int w = 0; w < WORDS; w++)
		nodes[row.base + w * row.stride + at] = from[w];
}

static __device__ void load_block(word m[2 * WORDS], const uint4 *at)
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const uint4 v = __ldg(at + i);
		m[4 * i] = v.x;
		m[4 * i + 1] = v.y;
		m[4 * i + 2] = v.z;
		m[4 * i + 3] = v.w;
	}
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
	ckt_digest(const ulonglong2 *table, uint4 *out)
{
	const ulonglong2 item = table[blockIdx.x];
	const unsigned self = threadIdx.x, count = (unsigned)(item.y / LEAF);
	const struct row long_row = {0, ROW}, short_row = {ROW * WORDS, ROW / 2};
	/* A level's nodes are made in target: of leaves from `first` on, or of `pairs` nodes. */
	struct row source = long_row, target = long_row;
	unsigned first = 0, made = min(count, ROW), pairs = 0;
	bool leaves = true;
	word whole = count <= ROW ? ROOT : 0, h[WORDS], m[2 * WORDS], kept[WORDS];

	/* One level a turn. */
#pragma unroll 1
	for (;;) {
#pragma unroll 1
		for (unsigned t = self; t < made; t += THREADS) {
			const word iv[WORDS] = {IV};
			const word low = leaves ? first + t : 0;
			const uint4 *at = (const uint4 *)(item.x + (word64)low * LEAF);
			unsigned block = leaves ? 0 : BLOCKS - 1;
#pragma unroll
			for (int i = 0; i < WORDS; i++)
				h[i] = iv[i];
#pragma unroll 1
			do {
				word flags;
				if (leaves) {
					load_block(m, at);
					at += BLOCK / sizeof *at;
					flags = block == 0 ? CHUNK_START : 0;
					if (block == BLOCKS - 1)
						flags |= count == 1 ? CHUNK_END | ROOT : CHUNK_END;
				} else {
					load_node(m, source, 2 * t);
					load_node(m + WORDS, source, 2 * t + 1);
					/* The last pair of the whole item is its root. */
					flags = (pairs == 2 ? whole : 0) | PARENT;
				}
				compress(h, m, low, flags);
			} while (++block < BLOCKS);
			store_node(target, t, h);
		}
		/* An odd node moves up; thread 0 takes it. */
		if (!leaves && self == 0 && pairs % 2) {
			load_node(h, source, pairs - 1);
			store_node(target, made, h);
		}
		__syncthreads();
		/* What was made is what the next level reads. */
		pairs = leaves ? made : made + pairs % 2;
		leaves = false;
		source = target;
		target = source.base == long_row.base ? short_row : long_row;
		made = pairs / 2;
		if (pairs > 1)
			continue;
		load_node(h, source, 0);
		__syncthreads();
		if (whole)
			break;
		if (first == 0) {
#pragma unroll
			for (int i = 0; i < WORDS; i++)
				kept[i] = h[i];
			first = ROW;
			made = min(count - ROW, ROW);
			leaves = true;
			target = long_row;
			continue;
		}
		/* The roots of both halves become the item's. */
		source = long_row;
		target = short_row;
		if (self == 0) {
			store_node(source, 0, kept);
			store_node(source, 1, h);
		}
		__syncthreads();
		pairs = 2;
		made = 1;
		whole = ROOT;
	}
	if (self == 0) {
		out[2 * blockIdx.x] = make_uint4(h[0], h[1], h[2], h[3]);
		out[2 * blockIdx.x + 1] = make_uint4(h[4], h[5], h[6], h[7]);
	}
}
