/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash kernel; hash.h says what it is for, hash.c launches it.  hash.ptx is made from this file
 * by gen_ptx.py.
 *
 * A block of THREADS threads takes one item {address, size}.  Thread t folds the 16-byte vectors
 * t, t + THREADS, ... into its two sums, LOADS loads in flight; t below size % 16 takes a byte of
 * the rest.  The threads' sums, mixed with their numbers, are added up.  The sums are part of the
 * image format.
 */
typedef unsigned long long word;

enum { THREADS = 256, LOADS = 4 };

struct item {
	word address, size;
};

struct value {
	word hash[2];
	word any;
};

/* One thread's two chains, and everything that it has read. */
struct sums {
	word a, b, any;
};

static __device__ word fold(word a, word b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;
	return (word)product ^ (word)(product >> 64);
}

static __device__ void take(struct sums *sums, ulonglong2 v, word key0, word key1)
{
	sums->a = fold(v.x ^ key0, v.y ^ sums->a);
	sums->b = fold(v.y ^ key1, v.x ^ sums->b);
	sums->any |= v.x | v.y;
}

extern "C" __global__ void ckt_hash(const struct item *table, struct value *out, word key0,
	word key1, word key2, word key3)
{
	__shared__ word parts[3][THREADS];
	const ulonglong2 entry = ((const ulonglong2 *)table)[blockIdx.x];
	const ulonglong2 *vectors = (const ulonglong2 *)entry.x;
	const word size = entry.y, count = size / 16;
	const unsigned self = threadIdx.x;
	struct sums sums = {key2, key3, 0};
	word i = self;

#pragma unroll 1
	for (; i + (LOADS - 1) * THREADS < count; i += LOADS * THREADS) {
		ulonglong2 v[LOADS];
#pragma unroll
		for (int k = 0; k < LOADS; k++)
			v[k] = __ldg(&vectors[i + k * THREADS]);
#pragma unroll
		for (int k = 0; k < LOADS; k++)
			take(&sums, v[k], key0, key1);
	}
#pragma unroll 1
	for (; i < count; i += THREADS)
		take(&sums, __ldg(&vectors[i]), key0, key1);
	if (self < size % 16) {
		const unsigned char *rest = (const unsigned char *)(vectors + count);
		take(&sums, make_ulonglong2(__ldg(&rest[self]), 0), key0, key1);
	}

	const word number = self + 1;
	parts[0][self] = fold((number * 0x9e3779b97f4a7c15 + key3) ^ sums.a, key2 | 1);
	parts[1][self] = fold((number * 0xc2b2ae3d27d4eb4f + key2) ^ sums.b, key3 | 1);
	parts[2][self] = sums.any;
	__syncthreads();

	/* Three threads add up one sum each. */
	if (self < 3) {
		word sum = 0, any = 0;
#pragma unroll 32
		for (unsigned t = 0; t < THREADS; t++) {
			sum += parts[self][t];
			any |= parts[self][t];
		}
		((word *)&out[blockIdx.x])[self] = self == 2 ? any : sum;
	}
}
