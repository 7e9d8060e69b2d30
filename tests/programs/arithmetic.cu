/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What C++ computes with whole numbers, and the functions for it that CUDA adds: 128 bits, bit counting, funnel shifts, four numbers in a
 * word, conversions and sums in all four roundings.  Host and device compute the same functions, and every bit is compared.
 */
#include "phase.h"

#include <cfenv>
#include <cmath>

typedef unsigned __int128 u128;
typedef __int128 s128;

struct numbers {
	uint64_t a, b;
	uint32_t c, d;
	double x, y;
	float f, g;
};

enum { COUNT = 2048, RESULTS = 64 };

static __host__ __device__ unsigned put128(uint64_t *out, unsigned k, u128 v)
{
	out[k] = (uint64_t)v;
	out[k + 1] = (uint64_t)(v >> 64);
	return k + 2;
}

/* Nothing but C++. */
static __host__ __device__ unsigned wide(const numbers *n, uint64_t *out)
{
	u128 u = (u128)n->a << 64 | n->b, v = (u128)n->c << (n->d & 127) | 1;
	s128 s = (s128)u;
	int64_t sa = (int64_t)n->a, sb = (int64_t)(n->b | 1);
	int32_t sc = (int32_t)n->c, sd = (int32_t)(n->d | 1);
	unsigned k = 0;

	k = put128(out, k, (u128)n->a * n->b);
	k = put128(out, k, u * v);
	k = put128(out, k, u / v);
	k = put128(out, k, u % v);
	k = put128(out, k, (u128)(s / (s128)((s128)sc << 40 | 1)));
	k = put128(out, k, (u128)(s % sb));
	k = put128(out, k, u - v);
	k = put128(out, k, u >> (n->c & 127) ^ u << (n->d & 127));
	out[k++] = (u < v) + 2 * (s < (s128)v) + 4 * (s < 0);
	out[k++] = n->a / (n->b | 1);
	out[k++] = n->a % (n->c | 1);
	out[k++] = sb == -1 ? 0 : (uint64_t)(sa / sb);
	out[k++] = sb == -1 ? 0 : (uint64_t)(sa % sb);
	out[k++] = sd == -1 ? 0 : (uint64_t)(int64_t)(sc / sd);
	out[k++] = n->c % (n->d | 1);
	out[k++] = (uint64_t)(sa >> (n->c & 63)) ^ n->a >> (n->d & 63);
	return k;
}

/* Functions of CUDA's, and on the host what they are documented to do. */
static __host__ __device__ unsigned bits(const numbers *n, uint64_t *out, unsigned k)
{
	uint64_t a = n->a >> (n->d & 63);
	uint32_t c = n->c, d = n->d, low = c >> (d & 31);
#ifdef __CUDA_ARCH__
	out[k++] = __umul64hi(n->a, n->b);
	out[k++] = (uint64_t)__mul64hi((long long)n->a, (long long)n->b);
	out[k++] = __brevll(n->a);
	out[k++] = (unsigned)__clz((int)low) | (unsigned)__clzll((long long)a) << 8 | (unsigned)__ffs((int)low) << 16 | (unsigned)__ffsll((long long)a) << 24;
	out[k++] = (unsigned)(__popc(c) + __popcll(a));
	out[k++] = __funnelshift_l(c, d, (unsigned)n->a);
	out[k++] = __funnelshift_rc(c, d, (unsigned)n->a & 63);
	out[k++] = __byte_perm(c, d, (unsigned)n->b & 0x7777);
	out[k++] = (unsigned)__dp4a((int)c, (int)d, (int)n->a);
	out[k++] = __usad(c, d, (unsigned)n->a);
	out[k++] = __vaddus4(c, d);
	out[k++] = __vabsdiffs2(c, d);
	out[k++] = (unsigned)__rhadd((int)c, (int)d);
#else
	uint64_t pair = (uint64_t)d << 32 | c, reversed = 0;
	uint32_t sums = (uint32_t)n->a, bytes = 0, chosen = 0, halves = 0;
	unsigned shift = n->a & 63;

	out[k++] = (uint64_t)((u128)n->a * n->b >> 64);
	out[k++] = (uint64_t)((s128)(int64_t)n->a * (int64_t)n->b >> 64);
	for (unsigned i = 0; i < 64; i++)
		reversed |= (n->a >> i & 1) << (63 - i);
	out[k++] = reversed;
	out[k++] = (unsigned)(low ? __builtin_clz(low) : 32) | (unsigned)(a ? __builtin_clzll(a) : 64) << 8 | (unsigned)__builtin_ffs((int)low) << 16 |
		   (unsigned)__builtin_ffsll((long long)a) << 24;
	out[k++] = (unsigned)(__builtin_popcount(c) + __builtin_popcountll(a));
	out[k++] = (uint32_t)(pair << (n->a & 31) >> 32);
	out[k++] = (uint32_t)(pair >> (shift < 32 ? shift : 32));
	for (unsigned i = 0; i < 32; i += 8) {
		unsigned sum = (c >> i & 255) + (d >> i & 255);

		sums += (uint32_t)((int8_t)(c >> i) * (int8_t)(d >> i));
		bytes |= (sum > 255 ? 255 : sum) << i;
		chosen |= (uint32_t)(pair >> (n->b >> (i / 2) & 7) * 8 & 255) << i;
	}
	for (unsigned i = 0; i < 32; i += 16)
		halves |= (uint32_t)(abs((int16_t)(c >> i) - (int16_t)(d >> i)) & 0xffff) << i;
	out[k++] = chosen;
	out[k++] = sums;
	out[k++] = (uint32_t)n->a + (c > d ? c - d : d - c);
	out[k++] = bytes;
	out[k++] = halves;
	out[k++] = (uint32_t)(((int64_t)(int32_t)c + (int32_t)d + 1) >> 1);
#endif
	return k;
}

__global__ void on_device(const numbers *in, uint64_t *out)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k;
	const numbers *n = &in[i];

	out += i * RESULTS;
	k = bits(n, out, wide(n, out));
	out[k++] = __double_as_longlong(__dadd_rd(n->x, n->y));
	out[k++] = __double_as_longlong(__dmul_ru(n->x, n->y));
	out[k++] = __double_as_longlong(__ddiv_rz(n->x, n->y));
	out[k++] = __double_as_longlong(__fma_rd(n->x, n->y, 0.1));
	out[k++] = __double_as_longlong(__dsqrt_ru(fabs(n->x)));
	out[k++] = __float_as_uint(__fadd_ru(n->f, n->g));
	out[k++] = __float_as_uint(__fmul_rz(n->f, n->g));
	out[k++] = __float_as_uint(__fdiv_rd(n->f, n->g));
	out[k++] = __float_as_uint(__double2float_rd(n->x));
	out[k++] = __float_as_uint(__ll2float_ru((long long)n->a));
	out[k++] = __double_as_longlong(__ull2double_rz(n->b));
	out[k++] = (uint64_t)__double2ll_rd(n->x) ^ (uint64_t)__double2ll_ru(n->y) << 20;
	out[k++] = (unsigned)__float2int_rn(n->f * 1e9f) ^ __float2uint_rz(n->g * 1e9f);
}

static uint64_t of(double v)
{
	uint64_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

static uint64_t of(float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

/* Volatile: the compiler does not know of roundings. */
#define ROUNDED(mode, expression)                                                                                                \
	do {                                                                                                                     \
		fesetround(mode);                                                                                                \
		volatile auto rounded = expression;                                                                              \
		fesetround(FE_TONEAREST);                                                                                        \
		out[k++] = of(rounded);                                                                                          \
	} while (0)

static void on_host(const numbers *n, uint64_t *out)
{
	volatile double x = n->x, y = n->y, tenth = 0.1;
	volatile float f = n->f, g = n->g;
	volatile int64_t a = (int64_t)n->a;
	volatile uint64_t b = n->b;
	unsigned k = bits(n, out, wide(n, out));

	ROUNDED(FE_DOWNWARD, x + y);
	ROUNDED(FE_UPWARD, x * y);
	ROUNDED(FE_TOWARDZERO, x / y);
	ROUNDED(FE_DOWNWARD, fma(x, y, tenth));
	ROUNDED(FE_UPWARD, sqrt(fabs(x)));
	ROUNDED(FE_UPWARD, f + g);
	ROUNDED(FE_TOWARDZERO, f * g);
	ROUNDED(FE_DOWNWARD, f / g);
	ROUNDED(FE_DOWNWARD, (float)x);
	ROUNDED(FE_UPWARD, (float)a);
	ROUNDED(FE_TOWARDZERO, (double)b);
	out[k++] = (uint64_t)(int64_t)floor(x) ^ (uint64_t)(int64_t)ceil(y) << 20;
	float whole = rintf(f * 1e9f), positive = g * 1e9f;
	/* What does not fit becomes the nearest that does. */
	out[k++] = (uint32_t)(whole >= 2147483648.0f ? INT32_MAX : whole <= -2147483648.0f ? INT32_MIN : (int32_t)whole) ^
		   (positive >= 4294967296.0f ? UINT32_MAX : positive <= 0 ? 0 : (uint32_t)positive);
}

int main(void)
{
	static numbers in[COUNT];
	static uint64_t got[COUNT * RESULTS], want[RESULTS];
	uint32_t state = 5;
	numbers *din;
	uint64_t *dout;

	for (unsigned i = 0; i < COUNT; i++) {
		numbers *n = &in[i];

		n->a = ((uint64_t)random_u32(&state) << 32 | random_u32(&state)) >> (i % 5 * 13);
		n->b = ((uint64_t)random_u32(&state) << 32 | random_u32(&state)) >> (i % 7 * 9);
		n->c = random_u32(&state) >> (i % 3 * 12);
		n->d = random_u32(&state) >> (i % 4 * 7);
		n->x = ldexp(random_float(&state) - 0.5 + 1e-9 * random_float(&state), (int)(random_u32(&state) % 50));
		n->y = ldexp(random_float(&state) + 1e-9, (int)(random_u32(&state) % 40));
		n->f = ldexpf(random_float(&state) - 0.5f, (int)(random_u32(&state) % 6));
		n->g = ldexpf(random_float(&state) + 1e-3f, (int)(random_u32(&state) % 4));
	}
	in[0] = {};
	in[0].y = in[0].g = 1;
	in[1].a = in[1].b = UINT64_MAX;
	in[1].c = in[1].d = UINT32_MAX;
	CHECK(cudaMalloc(&din, sizeof(in)));
	CHECK(cudaMalloc(&dout, sizeof(got)));
	CHECK(cudaMemset(dout, 0, sizeof(got)));
	CHECK(cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice));
	phase();
	on_device<<<COUNT / 128, 128>>>(din, dout);
	CHECK(cudaMemcpy(got, dout, sizeof(got), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < COUNT && !test_failures; i++) {
		on_host(&in[i], want);
		for (unsigned k = 0; k < RESULTS; k++)
			if (got[i * RESULTS + k] != want[k]) {
				printf("numbers %u, result %u: %llx instead of %llx\n", i, k, (unsigned long long)got[i * RESULTS + k],
				       (unsigned long long)want[k]);
				test_failures++;
			}
	}
	print_checksum("results", got, sizeof(got));
	CHECK(cudaFree(din));
	CHECK(cudaFree(dout));
	return finish();
}
