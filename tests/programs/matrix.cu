/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a warp, by wmma and by mma.sync with the registers that PTX says, against sums on the host: small integers, so exact. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "phase.h"

using namespace nvcuda;

static int bad;

/* Memory in two places. */
template <class T> struct twin {
	T *host, *device;
	size_t bytes;

	explicit twin(size_t n) : host((T *)calloc(n, sizeof(T))), bytes(n * sizeof(T)) { CHECK(cudaMalloc(&device, bytes)); }
	~twin() { cudaFree(device); free(host); }
	T &operator[](size_t i) { return host[i]; }
	T *up() { CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)); return device; }
	void down() { CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost)); }
};

template <class T, class S, class D, int M, int N, int K, class LA, class LB>
__global__ void wmma_kernel(const S *a, const S *b, const D *c, D *d)
{
	wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
	wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
	wmma::fragment<wmma::accumulator, M, N, K, D> fc;
	bool ra = std::is_same<LA, wmma::row_major>::value, rb = std::is_same<LB, wmma::row_major>::value;

	wmma::load_matrix_sync(fa, a, ra ? K : M);
	wmma::load_matrix_sync(fb, b, rb ? N : K);
	wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
	wmma::mma_sync(fc, fa, fb, fc);
	for (int i = 0; i < fc.num_elements; i++)
		fc.x[i] = fc.x[i] + fc.x[i];
	wmma::store_matrix_sync(d, fc, N, wmma::mem_row_major);
}

template <class T, class S, class D, int M, int N, int K, class LA = wmma::row_major, class LB = wmma::col_major>
static void try_wmma(const char *name)
{
	bool ra = std::is_same<LA, wmma::row_major>::value, rb = std::is_same<LB, wmma::row_major>::value;
	twin<S> a(M * K), b(K * N);
	twin<D> c(M * N), d(M * N);

	for (int i = 0; i < M * K; i++)
		a[i] = (S)(float)(i * 7 % 5);
	for (int i = 0; i < K * N; i++)
		b[i] = (S)(float)(i * 3 % 4);
	for (int i = 0; i < M * N; i++)
		c[i] = (D)(float)(i % 9);
	wmma_kernel<T, S, D, M, N, K, LA, LB><<<1, 32>>>(a.up(), b.up(), c.up(), d.up());
	d.down();
	int wrong = 0;
	for (int m = 0; m < M; m++) {
		for (int n = 0; n < N; n++) {
			float sum = (float)c[m * N + n];

			for (int k = 0; k < K; k++)
				sum += (float)a[ra ? m * K + k : k * M + m] * (float)b[rb ? k * N + n : n * K + k];
			wrong += (float)d[m * N + n] != 2 * sum;
		}
	}
	bad += wrong;
	printf("wmma %-24s %s\n", name, wrong ? "WRONG" : "right");
}

/* One mma.sync on matrices in shared memory; the element (row, column) of every register as the PTX document gives it. */
__global__ void mma_f16_k16(const __half *a, const __half *b, float *d)	/* a: 16 x 16 by rows, b: 16 x 8 by rows */
{
	unsigned l = threadIdx.x, g = l / 4, t = l % 4;
	unsigned ra[4], rb[2];
	float c[4] = {1, 2, 3, 4};

	for (int r = 0; r < 4; r++) {
		__half2 h = __halves2half2(a[(g + 8 * (r & 1)) * 16 + t * 2 + 8 * (r >> 1)], a[(g + 8 * (r & 1)) * 16 + t * 2 + 8 * (r >> 1) + 1]);
		ra[r] = *(unsigned *)&h;
	}
	for (int r = 0; r < 2; r++) {
		__half2 h = __halves2half2(b[(t * 2 + 8 * r) * 8 + g], b[(t * 2 + 8 * r + 1) * 8 + g]);
		rb[r] = *(unsigned *)&h;
	}
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	for (int i = 0; i < 4; i++)
		d[(g + 8 * (i >> 1)) * 8 + t * 2 + (i & 1)] = c[i];
}

/* The same through ldmatrix. */
__global__ void mma_ldmatrix(const __half *a, const __half *b, float *d)
{
	__shared__ __align__(16) __half sa[16 * 16], sb[16 * 8];
	unsigned l = threadIdx.x, g = l / 4, t = l % 4, ra[4], rb[2];
	float c[4] = {1, 2, 3, 4};

	for (int i = l; i < 256; i += 32)
		sa[i] = a[i];
	for (int i = l; i < 128; i += 32)
		sb[i] = b[i];
	__syncwarp();
	unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[(l % 16) * 16 + 8 * (l / 16)]), pb = (unsigned)__cvta_generic_to_shared(&sb[(l % 16) * 8]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	for (int i = 0; i < 4; i++)
		d[(g + 8 * (i >> 1)) * 8 + t * 2 + (i & 1)] = c[i];
}

__global__ void mma_tf32(const float *a, const float *b, float *d)	/* m16n8k8 */
{
	unsigned l = threadIdx.x, g = l / 4, t = l % 4, ra[4], rb[2];
	float c[4] = {1, 2, 3, 4};

	for (int r = 0; r < 4; r++)
		ra[r] = __float_as_uint(a[(g + 8 * (r & 1)) * 8 + t + 4 * (r >> 1)]);
	for (int r = 0; r < 2; r++)
		rb[r] = __float_as_uint(b[(t + 4 * r) * 8 + g]);
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	for (int i = 0; i < 4; i++)
		d[(g + 8 * (i >> 1)) * 8 + t * 2 + (i & 1)] = c[i];
}

__global__ void mma_s8(const signed char *a, const signed char *b, int *d)	/* m16n8k32 */
{
	unsigned l = threadIdx.x, g = l / 4, t = l % 4, ra[4] = {0}, rb[2] = {0};
	int c[4] = {1, 2, 3, 4};

	for (int r = 0; r < 4; r++)
		for (int k = 0; k < 4; k++)
			ra[r] |= (unsigned)(unsigned char)a[(g + 8 * (r & 1)) * 32 + t * 4 + 16 * (r >> 1) + k] << (8 * k);
	for (int r = 0; r < 2; r++)
		for (int k = 0; k < 4; k++)
			rb[r] |= (unsigned)(unsigned char)b[(t * 4 + 16 * r + k) * 8 + g] << (8 * k);
	asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	for (int i = 0; i < 4; i++)
		d[(g + 8 * (i >> 1)) * 8 + t * 2 + (i & 1)] = c[i];
}

__global__ void mma_f64(const double *a, const double *b, double *d)	/* m8n8k4 */
{
	unsigned l = threadIdx.x, g = l / 4, t = l % 4;
	double c[2] = {1, 2};

	asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(a[g * 4 + t]), "d"(b[t * 8 + g]));
	d[g * 8 + t * 2] = c[0];
	d[g * 8 + t * 2 + 1] = c[1];
}

__global__ void movmatrix(unsigned *d)
{
	unsigned l = threadIdx.x, v = (l * 2) | (l * 2 + 1) << 16, r;	/* element (row, column) is 8 row + column */

	asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
	d[l] = r;
}

template <class S, class D> static void try_mma(const char *name, void (*kernel)(const S *, const S *, D *), int M, int K)
{
	twin<S> a(M * K), b(K * 8);
	twin<D> d(M * 8);
	int wrong = 0;

	for (int i = 0; i < M * K; i++)
		a[i] = (S)(float)(i * 7 % 5 - 2);
	for (int i = 0; i < K * 8; i++)
		b[i] = (S)(float)(i * 3 % 4 - 1);
	kernel<<<1, 32>>>(a.up(), b.up(), d.up());
	d.down();
	for (int m = 0; m < M; m++) {
		for (int n = 0; n < 8; n++) {
			float sum = 1 + (n & 1) + (m >= 8 ? 2 : 0);

			for (int k = 0; k < K; k++)
				sum += (float)a[m * K + k] * (float)b[k * 8 + n];
			wrong += (float)d[m * 8 + n] != sum;
		}
	}
	bad += wrong;
	printf("mma %-25s %s\n", name, wrong ? "WRONG" : "right");
}

int main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	CHECK(cudaFree(NULL));	/* the session begins before the mid point */
	phase();
	try_wmma<__half, __half, float, 16, 16, 16>("f16 f32 16x16x16");
	try_wmma<__half, __half, float, 16, 16, 16, wmma::col_major, wmma::row_major>("f16 f32 col row");
	try_wmma<__half, __half, float, 32, 8, 16>("f16 f32 32x8x16");
	try_wmma<__half, __half, float, 8, 32, 16>("f16 f32 8x32x16");
	try_wmma<__half, __half, __half, 16, 16, 16>("f16 f16 16x16x16");
	try_wmma<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>("bf16 16x16x16");
	try_wmma<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 16>("bf16 8x32x16");
	try_wmma<wmma::precision::tf32, float, float, 16, 16, 8>("tf32 16x16x8");
	try_wmma<signed char, signed char, int, 16, 16, 16>("s8 16x16x16");
	try_wmma<unsigned char, unsigned char, int, 32, 8, 16>("u8 32x8x16");
	try_wmma<double, double, double, 8, 8, 4>("f64 8x8x4");
	try_mma<__half, float>("f16 16x8x16", mma_f16_k16, 16, 16);
	try_mma<__half, float>("f16 by ldmatrix", mma_ldmatrix, 16, 16);
	try_mma<float, float>("tf32 16x8x8", mma_tf32, 16, 8);
	try_mma<signed char, int>("s8 16x8x32", mma_s8, 16, 32);
	try_mma<double, double>("f64 8x8x4", mma_f64, 8, 4);
	twin<unsigned> d(32);
	unsigned wrong = 0;
	movmatrix<<<1, 32>>>(d.up());
	d.down();
	for (unsigned l = 0; l < 32; l++)
		wrong += d[l] != ((l % 4 * 2 * 8 + l / 4) | ((l % 4 * 2 + 1) * 8 + l / 4) << 16);
	bad += wrong;
	printf("movmatrix %s\n", wrong ? "WRONG" : "right");
	return bad ? 1 : 0;
}
