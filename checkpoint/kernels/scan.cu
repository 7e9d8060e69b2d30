/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanning kernel; scan.h says what it is for, scan.c launches it.  scan.ptx is made from this
 * file by gen_ptx.py.
 *
 * A block of THREADS threads takes one item.  A word is first compared with the hull of all ranges,
 * [low, low + span], which nearly always is the end of it.
 */
typedef unsigned long long word;

enum { THREADS = 256 };

struct range {
	word address, size;
};

struct hit {
	word count, first;
};

/* 16 bytes in one load. */
static __device__ struct range load(const struct range *from)
{
	const ulonglong2 pair = *(const ulonglong2 *)from;
	return {pair.x, pair.y};
}

extern "C" __global__ void ckt_scan(const struct range *items, const struct range *ranges,
	struct hit *hits, word low, word span, unsigned count)
{
	const struct range item = load(&items[blockIdx.x]);
	const word end = item.address + item.size;

#pragma unroll 1
	for (word at = item.address + threadIdx.x * sizeof at; at < end; at += THREADS * sizeof at) {
		const word found = __ldg((const word *)at);
		if (found - low > span)
			continue;
		unsigned i = 0;
#pragma unroll 1
		do {
			const struct range range = load(&ranges[i]);
			if (found - range.address > range.size)
				continue;
			atomicAdd(&hits[i].count, 1);
			atomicMin(&hits[i].first, at);
		} while (++i < count);
	}
}
