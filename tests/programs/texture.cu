/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures of every kind of resource: linear and pitched memory, arrays of one to three dimensions, layers, cubemaps; read by point and
 * filtered, by all address modes, as what is stored and as normalized floats; gathered; through views.  Half of the objects are made
 * before the mid point and used behind it, with holes between their handles.
 */
#include "phase.h"

#include <cmath>

enum { N = 512 };

struct point {
	float x, y, z;
	int layer;
};

__global__ void fetch_1d(cudaTextureObject_t t, float4 *out, int from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<float4>(t, from + i);
}

__global__ void fetch_int(cudaTextureObject_t t, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<int>(t, i);
}

enum kind { K1D, K2D, K3D, K1D_LAYERED, K2D_LAYERED, KCUBE, KCUBE_LAYERED, KGATHER };

__global__ void sample(cudaTextureObject_t t, int kind, const point *p, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	switch (kind) {
	case K1D: out[i] = tex1D<float>(t, p[i].x); break;
	case K2D: out[i] = tex2D<float>(t, p[i].x, p[i].y); break;
	case K3D: out[i] = tex3D<float>(t, p[i].x, p[i].y, p[i].z); break;
	case K1D_LAYERED: out[i] = tex1DLayered<float>(t, p[i].x, p[i].layer); break;
	case K2D_LAYERED: out[i] = tex2DLayered<float>(t, p[i].x, p[i].y, p[i].layer); break;
	case KCUBE: out[i] = texCubemap<float>(t, p[i].x, p[i].y, p[i].z); break;
	case KCUBE_LAYERED: out[i] = texCubemapLayered<float>(t, p[i].x, p[i].y, p[i].z, p[i].layer); break;
	default: {
		float4 v = tex2Dgather<float4>(t, p[i].x, p[i].y, 0);
		out[i] = v.x + 2 * v.y + 4 * v.z + 8 * v.w;
	}
	}
}

__global__ void sample_bits(cudaTextureObject_t t, const point *p, unsigned *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex2D<unsigned>(t, p[i].x, p[i].y);
}

/* ---- What CUDA's documentation says should come out */

static float texel(const float *data, const int size[3], int dims, const long at[3], const int mode, bool normalized)
{
	long i[3] = {0, 0, 0};

	for (int k = 0; k < dims; k++) {
		long n = size[k], v = at[k];

		if (v < 0 || v >= n) {
			if (mode == cudaAddressModeBorder)
				return 0;
			if (mode == cudaAddressModeWrap && normalized)
				v = (v % n + n) % n;
			else if (mode == cudaAddressModeMirror && normalized) {
				v = (v % (2 * n) + 2 * n) % (2 * n);
				v = v < n ? v : 2 * n - 1 - v;
			} else
				v = v < 0 ? 0 : n - 1;
		}
		i[k] = v;
	}
	return data[(i[2] * size[1] + i[1]) * size[0] + i[0]];
}

static float reference(const float *data, const int size[3], int dims, const float c[3], int mode, bool normalized, bool linear)
{
	long low[3] = {0, 0, 0};
	double part[3] = {0, 0, 0}, sum = 0;

	for (int k = 0; k < dims; k++) {
		double v = (double)c[k] * (normalized ? size[k] : 1) - (linear ? 0.5 : 0);

		low[k] = (long)floor(v);
		part[k] = v - floor(v);
	}
	if (!linear)
		return texel(data, size, dims, low, mode, normalized);
	for (int corner = 0; corner < 1 << dims; corner++) {
		long at[3];
		double share = 1;

		for (int k = 0; k < 3; k++) {
			at[k] = low[k] + (corner >> k & 1);
			share *= k >= dims ? 1 : corner >> k & 1 ? part[k] : 1 - part[k];
		}
		sum += share * texel(data, size, dims, at, mode, normalized);
	}
	return (float)sum;
}

static point *points;
static float *results;
static point host_points[N];
static float host_results[N];

/* Weights have eight bits: of values from 0 to 1 the sums differ by little.  want NULL: what comes is only printed. */
static void compare(const char *name, const float *want, float tolerance)
{
	int wrong = 0;

	CHECK(cudaMemcpy(host_results, results, sizeof(host_results), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		wrong += want && !(fabsf(host_results[i] - want[i]) <= tolerance);
	if (wrong)
		printf("%s: %d of %d are wrong\n", name, wrong, N);
	EXPECT(wrong == 0);
	print_checksum(name, host_results, sizeof(host_results));
}

static void run(cudaTextureObject_t t, int kind)
{
	CHECK(cudaMemcpy(points, host_points, sizeof(host_points), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(results, 0xff, sizeof(host_results)));
	sample<<<N / 64, 64>>>(t, kind, points, results, N);
	CHECK(cudaGetLastError());
}

static cudaTextureObject_t make(cudaResourceDesc *r, int mode, bool linear, bool normalized, cudaTextureReadMode read = cudaReadModeElementType,
				const cudaResourceViewDesc *view = NULL)
{
	cudaTextureObject_t t;
	cudaTextureDesc d;

	memset(&d, 0, sizeof(d));
	for (int k = 0; k < 3; k++)
		d.addressMode[k] = (cudaTextureAddressMode)mode;
	d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	d.normalizedCoords = normalized;
	d.readMode = read;
	CHECK(cudaCreateTextureObject(&t, r, &d, view));
	return t;
}

static cudaResourceDesc of_array(cudaArray_t a)
{
	cudaResourceDesc r;

	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	return r;
}

static void fill_random(float *data, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		data[i] = random_float(&seed);
}

/* Coordinates from -1 to 2 of the whole, away from where rounding decides which texel is nearest. */
static void random_points(const int size[3], bool normalized, int layers, uint32_t seed)
{
	for (int i = 0; i < N; i++) {
		float c[3];

		for (int k = 0; k < 3; k++) {
			int cell = (int)(random_u32(&seed) % (3 * size[k])) - size[k];
			float in = (float)(1 + random_u32(&seed) % 7) / 8.0f;

			c[k] = normalized ? (cell + in) / size[k] : cell + in;
		}
		host_points[i] = (point){c[0], c[1], c[2], layers ? (int)(random_u32(&seed) % layers) : 0};
	}
}

struct made {
	cudaArray_t array;
	cudaTextureObject_t textures[4][2][2];	/* mode, linear, normalized */
	float *data;
	int size[3], dims;
};

static void make_all(made *m, int dims, int w, int h, int d, uint32_t seed)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	size_t n = (size_t)w * (h ? h : 1) * (d ? d : 1);
	cudaTextureObject_t hole;

	m->dims = dims;
	m->size[0] = w;
	m->size[1] = h ? h : 1;
	m->size[2] = d ? d : 1;
	m->data = (float *)malloc(n * sizeof(float));
	fill_random(m->data, n, seed);
	CHECK(cudaMalloc3DArray(&m->array, &f, make_cudaExtent(w, h, d), 0));
	cudaMemcpy3DParms p;
	memset(&p, 0, sizeof(p));
	p.srcPtr = make_cudaPitchedPtr(m->data, w * sizeof(float), w, m->size[1]);
	p.dstArray = m->array;
	p.extent = make_cudaExtent(w, m->size[1], m->size[2]);
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&p));
	cudaResourceDesc r = of_array(m->array);
	for (int mode = 0; mode < 4; mode++)
		for (int linear = 0; linear < 2; linear++)
			for (int normalized = 0; normalized < 2; normalized++) {
				hole = make(&r, mode, false, false);
				m->textures[mode][linear][normalized] = make(&r, mode, linear, normalized);
				CHECK(cudaDestroyTextureObject(hole));
			}
}

static void check_all(made *m, const char *name)
{
	static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
	float want[N];
	char text[64];

	for (int mode = 0; mode < 4; mode++)
		for (int linear = 0; linear < 2; linear++)
			for (int normalized = 0; normalized < 2; normalized++) {
				/* CUDA says what wrap and mirror mean for normalized coordinates only. */
				if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
					continue;
				random_points(m->size, normalized, 0, 77 + mode);
				for (int i = 0; i < N; i++)
					want[i] = reference(m->data, m->size, m->dims, &host_points[i].x, mode, normalized, linear);
				run(m->textures[mode][linear][normalized], m->dims == 1 ? K1D : m->dims == 2 ? K2D : K3D);
				snprintf(text, sizeof(text), "%s %s %s %s", name, modes[mode], linear ? "linear" : "point",
					 normalized ? "normalized" : "texels");
				/* A filtered texture of one dimension may count as a plane of one row, whose neighbours are border: no word of CUDA's. */
				compare(text, m->dims == 1 && linear && mode == cudaAddressModeBorder ? NULL : want, linear ? 0.02f : 0);
			}
	for (int mode = 0; mode < 4; mode++)
		for (int linear = 0; linear < 2; linear++)
			for (int normalized = 0; normalized < 2; normalized++)
				CHECK(cudaDestroyTextureObject(m->textures[mode][linear][normalized]));
	CHECK(cudaFreeArray(m->array));
	free(m->data);
}

/* ---- Layers and cubemaps */

static void layers(void)
{
	enum { W = 24, H = 10, L = 5 };
	static float data[L][H][W];
	float want[N];
	int size[3] = {W, H, 1};
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaArray_t a;
	cudaMemcpy3DParms p;

	fill_random(&data[0][0][0], L * H * W, 5);
	for (int dims = 1; dims <= 2; dims++) {
		int h = dims == 1 ? 1 : H;

		CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(W, dims == 1 ? 0 : H, L), cudaArrayLayered));
		memset(&p, 0, sizeof(p));
		p.srcPtr = make_cudaPitchedPtr(data, sizeof(data[0][0]), W, H);
		p.dstArray = a;
		p.extent = make_cudaExtent(W, h, L);
		p.kind = cudaMemcpyHostToDevice;
		CHECK(cudaMemcpy3D(&p));
		cudaResourceDesc r = of_array(a);
		cudaTextureObject_t t = make(&r, cudaAddressModeClamp, true, false);
		size[1] = h;
		random_points(size, false, L, 9);
		for (int i = 0; i < N; i++)
			want[i] = reference(&data[host_points[i].layer][0][0], size, dims, &host_points[i].x, cudaAddressModeClamp, false, true);
		run(t, dims == 1 ? K1D_LAYERED : K2D_LAYERED);
		compare(dims == 1 ? "1D layers" : "2D layers", want, 0.02f);
		CHECK(cudaDestroyTextureObject(t));
		CHECK(cudaFreeArray(a));
	}
}

static void cubemaps(void)
{
	enum { W = 8, L = 3 };
	static float data[6 * L][W][W];
	float want[N];
	uint32_t seed = 31;
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();

	fill_random(&data[0][0][0], 6 * L * W * W, 6);
	for (int layered = 0; layered < 2; layered++) {
		int faces = layered ? 6 * L : 6;
		cudaArray_t a;
		cudaMemcpy3DParms p;

		CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(W, W, faces), cudaArrayCubemap | (layered ? cudaArrayLayered : 0)));
		memset(&p, 0, sizeof(p));
		p.srcPtr = make_cudaPitchedPtr(data, sizeof(data[0][0]), W, W);
		p.dstArray = a;
		p.extent = make_cudaExtent(W, W, faces);
		p.kind = cudaMemcpyHostToDevice;
		CHECK(cudaMemcpy3D(&p));
		cudaResourceDesc r = of_array(a);
		cudaTextureObject_t t = make(&r, cudaAddressModeClamp, false, true);
		for (int i = 0; i < N; i++) {
			int face = random_u32(&seed) % 6, x = random_u32(&seed) % W, y = random_u32(&seed) % W, layer = layered ? random_u32(&seed) % L : 0;
			/* Through the middle of a texel: s and t go from -1 to 1. */
			float s = (x + 0.5f) * 2 / W - 1, v = (y + 0.5f) * 2 / W - 1;
			const float dirs[6][3] = {{1, -v, -s}, {-1, -v, s}, {s, 1, v}, {s, -1, -v}, {s, -v, 1}, {-s, -v, -1}};

			host_points[i] = (point){dirs[face][0], dirs[face][1], dirs[face][2], layer};
			want[i] = data[layer * 6 + face][y][x];
		}
		run(t, layered ? KCUBE_LAYERED : KCUBE);
		compare(layered ? "cubemap layers" : "cubemap", want, 0);
		CHECK(cudaDestroyTextureObject(t));
		CHECK(cudaFreeArray(a));
	}
}

/* ---- Memory, formats, views */

struct linear_memory {
	uchar4 *bytes;
	int *ints;
	float *pitched;
	size_t pitch;
	cudaTextureObject_t of_bytes, of_ints, of_pitched;
};

enum { PW = 40, PH = 12 };
static uchar4 host_bytes[N];
static int host_ints[N];
static float host_pitched[PH][PW];

static void make_linear(linear_memory *m)
{
	cudaResourceDesc r;
	uint32_t seed = 12;

	for (int i = 0; i < N; i++) {
		uint32_t v = random_u32(&seed);

		host_bytes[i] = make_uchar4(v, v >> 8, v >> 16, v >> 24);
		host_ints[i] = (int)random_u32(&seed);
	}
	fill_random(&host_pitched[0][0], PW * PH, 3);
	CHECK(cudaMalloc(&m->bytes, sizeof(host_bytes)));
	CHECK(cudaMalloc(&m->ints, sizeof(host_ints)));
	CHECK(cudaMallocPitch(&m->pitched, &m->pitch, PW * sizeof(float), PH));
	CHECK(cudaMemcpy(m->bytes, host_bytes, sizeof(host_bytes), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(m->ints, host_ints, sizeof(host_ints), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(m->pitched, m->pitch, host_pitched, sizeof(host_pitched[0]), PW * sizeof(float), PH, cudaMemcpyHostToDevice));
	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = m->bytes;
	r.res.linear.desc = cudaCreateChannelDesc<uchar4>();
	r.res.linear.sizeInBytes = sizeof(host_bytes);
	m->of_bytes = make(&r, cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
	r.res.linear.devPtr = m->ints;
	r.res.linear.desc = cudaCreateChannelDesc<int>();
	r.res.linear.sizeInBytes = sizeof(host_ints);
	m->of_ints = make(&r, cudaAddressModeClamp, false, false);
	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.devPtr = m->pitched;
	r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	r.res.pitch2D.width = PW;
	r.res.pitch2D.height = PH;
	r.res.pitch2D.pitchInBytes = m->pitch;
	m->of_pitched = make(&r, cudaAddressModeMirror, true, true);
}

static void check_linear(linear_memory *m)
{
	static float4 got[N + 16];
	static int ints[N];
	float4 *out;
	float want[N];
	int size[3] = {PW, PH, 1}, wrong = 0;

	CHECK(cudaMalloc(&out, sizeof(got)));
	/* Outside of the memory there are zeros. */
	fetch_1d<<<(N + 16 + 63) / 64, 64>>>(m->of_bytes, out, -8, N + 16);
	CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N + 16; i++) {
		uchar4 b = i < 8 || i >= N + 8 ? make_uchar4(0, 0, 0, 0) : host_bytes[i - 8];

		wrong += fabsf(got[i].x - b.x / 255.0f) > 1e-6f || fabsf(got[i].y - b.y / 255.0f) > 1e-6f || fabsf(got[i].z - b.z / 255.0f) > 1e-6f ||
			 fabsf(got[i].w - b.w / 255.0f) > 1e-6f;
	}
	EXPECT(wrong == 0);
	print_checksum("linear bytes", got, sizeof(got));
	fetch_int<<<N / 64, 64>>>(m->of_ints, (int *)out, N);
	CHECK(cudaMemcpy(ints, out, sizeof(ints), cudaMemcpyDeviceToHost));
	EXPECT(memcmp(ints, host_ints, sizeof(ints)) == 0);
	random_points(size, true, 0, 55);
	for (int i = 0; i < N; i++)
		want[i] = reference(&host_pitched[0][0], size, 2, &host_points[i].x, cudaAddressModeMirror, true, true);
	run(m->of_pitched, K2D);
	compare("pitched memory", want, 0.02f);
	CHECK(cudaDestroyTextureObject(m->of_bytes));
	CHECK(cudaDestroyTextureObject(m->of_ints));
	CHECK(cudaDestroyTextureObject(m->of_pitched));
	CHECK(cudaFree(m->bytes));
	CHECK(cudaFree(m->ints));
	CHECK(cudaFree(m->pitched));
	CHECK(cudaFree(out));
}

static void formats(void)
{
	enum { W = 16, H = 8 };
	static unsigned char bytes[H][W];
	static short shorts[H][W];
	static unsigned short halves[H][W];
	static float floats[H][W];
	float want[N];
	unsigned bits[N], *out;
	int size[3] = {W, H, 1}, wrong = 0;
	uint32_t seed = 71;
	cudaArray_t a;
	cudaResourceDesc r;
	cudaTextureObject_t t;
	cudaChannelFormatDesc f;
	cudaResourceViewDesc view;

	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			bytes[y][x] = (unsigned char)random_u32(&seed);
			shorts[y][x] = (short)random_u32(&seed);
			/* From 1 to 2, and powers of two below. */
			halves[y][x] = (unsigned short)(0x3c00 - 0x400 * (x % 3) + random_u32(&seed) % 0x400);
			floats[y][x] = random_float(&seed);
		}
	random_points(size, false, 0, 14);
	CHECK(cudaMalloc(&out, sizeof(bits)));

	f = cudaCreateChannelDesc<unsigned char>();
	CHECK(cudaMallocArray(&a, &f, W, H));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, bytes, W, W, H, cudaMemcpyHostToDevice));
	r = of_array(a);
	t = make(&r, cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
	for (int i = 0; i < N; i++) {
		int x = (int)floorf(host_points[i].x), y = (int)floorf(host_points[i].y);

		want[i] = bytes[y < 0 ? 0 : y >= H ? H - 1 : y][x < 0 ? 0 : x >= W ? W - 1 : x] / 255.0f;
	}
	run(t, K2D);
	compare("bytes as floats", want, 1e-6f);
	CHECK(cudaDestroyTextureObject(t));
	t = make(&r, cudaAddressModeClamp, false, false);
	sample_bits<<<N / 64, 64>>>(t, points, out, N);
	CHECK(cudaMemcpy(bits, out, sizeof(bits), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		wrong += bits[i] != (unsigned)(want[i] * 255 + 0.5f);
	EXPECT(wrong == 0);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(a));

	f = cudaCreateChannelDesc<short>();
	CHECK(cudaMallocArray(&a, &f, W, H));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, shorts, W * 2, W * 2, H, cudaMemcpyHostToDevice));
	r = of_array(a);
	t = make(&r, cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
	for (int i = 0; i < N; i++) {
		int x = (int)floorf(host_points[i].x), y = (int)floorf(host_points[i].y);
		float v = shorts[y < 0 ? 0 : y >= H ? H - 1 : y][x < 0 ? 0 : x >= W ? W - 1 : x] / 32767.0f;

		want[i] = v < -1 ? -1 : v;
	}
	run(t, K2D);
	compare("shorts as floats", want, 1e-6f);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(a));

	f = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
	CHECK(cudaMallocArray(&a, &f, W, H));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, halves, W * 2, W * 2, H, cudaMemcpyHostToDevice));
	r = of_array(a);
	t = make(&r, cudaAddressModeClamp, false, false);
	for (int i = 0; i < N; i++) {
		int x = (int)floorf(host_points[i].x), y = (int)floorf(host_points[i].y);
		unsigned short h = halves[y < 0 ? 0 : y >= H ? H - 1 : y][x < 0 ? 0 : x >= W ? W - 1 : x];

		want[i] = ldexpf(1 + (h & 0x3ff) / 1024.0f, (h >> 10) - 15);
	}
	run(t, K2D);
	compare("halves", want, 0);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(a));

	/* The same bits as another format, and four neighbours at once. */
	f = cudaCreateChannelDesc<float>();
	CHECK(cudaMallocArray(&a, &f, W, H, cudaArrayTextureGather));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, floats, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	r = of_array(a);
	memset(&view, 0, sizeof(view));
	view.format = cudaResViewFormatUnsignedInt1;
	view.width = W;
	view.height = H;
	t = make(&r, cudaAddressModeClamp, false, false, cudaReadModeElementType, &view);
	sample_bits<<<N / 64, 64>>>(t, points, out, N);
	CHECK(cudaMemcpy(bits, out, sizeof(bits), cudaMemcpyDeviceToHost));
	wrong = 0;
	for (int i = 0; i < N; i++) {
		int x = (int)floorf(host_points[i].x), y = (int)floorf(host_points[i].y);

		wrong += memcmp(&bits[i], &floats[y < 0 ? 0 : y >= H ? H - 1 : y][x < 0 ? 0 : x >= W ? W - 1 : x], 4) != 0;
	}
	EXPECT(wrong == 0);
	cudaResourceViewDesc said;
	cudaResourceDesc said_resource;
	cudaTextureDesc said_texture;
	CHECK(cudaGetTextureObjectResourceViewDesc(&said, t));
	CHECK(cudaGetTextureObjectResourceDesc(&said_resource, t));
	CHECK(cudaGetTextureObjectTextureDesc(&said_texture, t));
	EXPECT(said.format == view.format && said.width == W && said.height == H);
	EXPECT(said_resource.resType == cudaResourceTypeArray && said_resource.res.array.array == a);
	EXPECT(said_texture.addressMode[0] == cudaAddressModeClamp && said_texture.filterMode == cudaFilterModePoint);
	CHECK(cudaDestroyTextureObject(t));
	t = make(&r, cudaAddressModeClamp, false, false);
	for (int i = 0; i < N; i++) {
		static const int corner[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};

		want[i] = 0;
		for (int k = 0; k < 4; k++) {
			long at[3] = {(long)floorf(host_points[i].x - 0.5f) + corner[k][0], (long)floorf(host_points[i].y - 0.5f) + corner[k][1], 0};

			want[i] += (1 << k) * texel(&floats[0][0], size, 2, at, cudaAddressModeClamp, false);
		}
	}
	/* Half texels are where rounding decides. */
	for (int i = 0; i < N; i++)
		if (host_points[i].x - floorf(host_points[i].x) == 0.5f || host_points[i].y - floorf(host_points[i].y) == 0.5f)
			want[i] = NAN;
	run(t, KGATHER);
	CHECK(cudaMemcpy(host_results, results, sizeof(host_results), cudaMemcpyDeviceToHost));
	wrong = 0;
	for (int i = 0; i < N; i++)
		wrong += want[i] == want[i] && fabsf(host_results[i] - want[i]) > 1e-5f;
	EXPECT(wrong == 0);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFree(out));
}

int main(void)
{
	static made m[3];
	linear_memory memory;
	cudaResourceDesc r;
	cudaTextureObject_t orphan;
	cudaArray_t short_lived;
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();

	CHECK(cudaMalloc(&points, sizeof(host_points)));
	CHECK(cudaMalloc(&results, sizeof(host_results)));
	make_all(&m[0], 1, 100, 0, 0, 1);
	make_all(&m[1], 2, 31, 17, 0, 2);
	make_all(&m[2], 3, 9, 7, 5, 3);
	make_linear(&memory);
	/* Its array goes first. */
	CHECK(cudaMallocArray(&short_lived, &f, 16, 16));
	r = of_array(short_lived);
	orphan = make(&r, cudaAddressModeClamp, false, false);
	CHECK(cudaFreeArray(short_lived));
	phase();
	check_all(&m[0], "1D");
	check_all(&m[1], "2D");
	check_all(&m[2], "3D");
	check_linear(&memory);
	CHECK(cudaDestroyTextureObject(orphan));
	layers();
	cubemaps();
	formats();
	CHECK(cudaDeviceSynchronize());
	return finish();
}
