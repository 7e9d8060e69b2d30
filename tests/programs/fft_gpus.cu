/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms over several GPUs (cufftXtSetGPUs): each beside the same one on one GPU, there and back, with memory of cufftXtMalloc and with
 * memory of the program's own, before and after the mid point.  With one GPU there is nothing to do.
 */
#include "phase.h"

#include <cufftXt.h>

#include <cmath>
#include <vector>

#define FFT(call)                                                                                                                \
	do {                                                                                                                     \
		cufftResult fft_result = (call);                                                                                 \
		if (fft_result != CUFFT_SUCCESS) {                                                                               \
			printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)fft_result);                                    \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

enum { GPUS = 2 };

struct shape {
	const char *name;
	int rank, n[3], batch;
	bool real;
};

static const struct shape shapes[] = {
	{"1d", 1, {1 << 12}, 1, false},
	{"1d of 6", 1, {1 << 8}, 6, false},
	{"2d", 2, {64, 96}, 1, false},
	{"3d", 3, {32, 48, 64}, 1, false},
	{"2d of real numbers", 2, {64, 96}, 1, true},
	{"3d of real numbers", 3, {32, 48, 64}, 1, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A transform over several GPUs, and what one GPU makes of the same numbers. */
struct transform {
	cufftHandle forward, backward;
	cudaLibXtDesc *numbers, *sorted;
	/* as complex numbers: rows of real ones are padded */
	std::vector<cufftComplex> given, wanted;
};

static size_t complex_numbers(const struct shape *s)
{
	size_t count = s->real ? s->n[s->rank - 1] / 2 + 1 : s->n[s->rank - 1];

	for (int i = 0; i + 1 < s->rank; i++)
		count *= s->n[i];
	return count * s->batch;
}

static double scale(const struct shape *s)
{
	double count = 1;

	for (int i = 0; i < s->rank; i++)
		count *= s->n[i];
	return count;
}

/* sizes: one a GPU. */
static void make(cufftHandle plan, const struct shape *s, cufftType type, size_t *sizes)
{
	switch (s->rank) {
	case 1:
		FFT(cufftMakePlan1d(plan, s->n[0], type, s->batch, sizes));
		break;
	case 2:
		FFT(cufftMakePlan2d(plan, s->n[0], s->n[1], type, sizes));
		break;
	default:
		FFT(cufftMakePlan3d(plan, s->n[0], s->n[1], s->n[2], type, sizes));
	}
}

static cufftHandle over_gpus(const struct shape *s, cufftType type)
{
	int gpus[GPUS] = {0, 1};
	size_t sizes[GPUS] = {(size_t)-1, (size_t)-1}, again[GPUS] = {(size_t)-1, (size_t)-1};
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	FFT(cufftXtSetGPUs(plan, GPUS, gpus));
	make(plan, s, type, sizes);
	FFT(cufftGetSize(plan, again));
	for (int i = 0; i < GPUS; i++)
		EXPECT(sizes[i] != (size_t)-1 && sizes[i] == again[i]);
	return plan;
}

/* What one GPU makes of the numbers. */
static std::vector<cufftComplex> on_one_gpu(const struct shape *s, const std::vector<cufftComplex> &given)
{
	std::vector<cufftComplex> result(given.size());
	size_t bytes = given.size() * sizeof(cufftComplex), work;
	cufftComplex *data;
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	make(plan, s, s->real ? CUFFT_R2C : CUFFT_C2C, &work);
	CHECK(cudaMalloc(&data, bytes));
	CHECK(cudaMemcpy(data, given.data(), bytes, cudaMemcpyHostToDevice));
	if (s->real)
		FFT(cufftExecR2C(plan, (cufftReal *)data, data));
	else
		FFT(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
	CHECK(cudaMemcpy(result.data(), data, bytes, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(data));
	FFT(cufftDestroy(plan));
	return result;
}

static void fill(const struct shape *s, struct transform *t, uint32_t seed)
{
	size_t count = complex_numbers(s);

	t->given.assign(count, cufftComplex{0, 0});
	float *numbers = (float *)t->given.data();
	size_t row = 2 * (s->real ? s->n[s->rank - 1] / 2 + 1 : s->n[s->rank - 1]);
	size_t used = s->real ? s->n[s->rank - 1] : row;

	for (size_t i = 0; i < 2 * count; i++)
		if (i % row < used)
			numbers[i] = random_float(&seed);
	t->wanted = on_one_gpu(s, t->given);
}

/* The numbers that count: the rest of a row of real ones is anything. */
static void compare(const char *what, const struct shape *s, const std::vector<cufftComplex> &got, const std::vector<cufftComplex> &wanted, double by,
	bool spectrum)
{
	const float *a = (const float *)got.data(), *b = (const float *)wanted.data();
	size_t row = 2 * (s->real ? s->n[s->rank - 1] / 2 + 1 : s->n[s->rank - 1]);
	size_t used = s->real && !spectrum ? s->n[s->rank - 1] : row;
	double off = 0, greatest = 0;

	for (size_t i = 0; i < 2 * got.size(); i++) {
		if (i % row >= used)
			continue;
		off = fmax(off, fabs(a[i] - b[i] * by));
		greatest = fmax(greatest, fabs(b[i] * by));
	}
	if (!(off < 2e-6 * greatest * log2(scale(s))))
		printf("%s: off by %g of %g\n", what, off, greatest);
	EXPECT(off < 2e-6 * greatest * log2(scale(s)));
}

/* Forward; the spectrum in its natural order comes to the host. */
static void forward(const struct shape *s, struct transform *t)
{
	std::vector<cufftComplex> got(t->given.size());

	if (s->real)
		FFT(cufftXtExecDescriptorR2C(t->forward, t->numbers, t->numbers));
	else
		FFT(cufftXtExecDescriptorC2C(t->forward, t->numbers, t->numbers, CUFFT_FORWARD));
	EXPECT(t->numbers->subFormat == CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
	if (s->real)   /* the host gets the natural order by itself */
		FFT(cufftXtMemcpy(t->forward, got.data(), t->numbers, CUFFT_COPY_DEVICE_TO_HOST));
	else {
		FFT(cufftXtMemcpy(t->forward, t->sorted, t->numbers, CUFFT_COPY_DEVICE_TO_DEVICE));
		FFT(cufftXtMemcpy(t->forward, got.data(), t->sorted, CUFFT_COPY_DEVICE_TO_HOST));
	}
	compare(s->name, s, got, t->wanted, 1, true);
}

static void backward(const struct shape *s, struct transform *t)
{
	std::vector<cufftComplex> got(t->given.size());

	if (s->real)
		FFT(cufftXtExecDescriptorC2R(t->backward, t->numbers, t->numbers));
	else
		FFT(cufftXtExecDescriptorC2C(t->forward, t->numbers, t->numbers, CUFFT_INVERSE));
	EXPECT(t->numbers->subFormat == CUFFT_XT_FORMAT_INPLACE);
	FFT(cufftXtMemcpy(s->real ? t->backward : t->forward, got.data(), t->numbers, CUFFT_COPY_DEVICE_TO_HOST));
	compare(s->name, s, got, t->given, scale(s), false);
	printf("%s: ok\n", s->name);
}

/* A descriptor of the program's own, as CuPy has them: its memory is cudaMalloc's, and the rest is zero. */
static void own_memory(void)
{
	const struct shape *s = &shapes[1];
	struct transform t = {};
	cudaXtDesc memory = {};
	cudaLibXtDesc own = {};
	std::vector<cufftComplex> got;

	fill(s, &t, 99);
	got.resize(t.given.size());
	t.forward = over_gpus(s, CUFFT_C2C);
	memory.nGPUs = GPUS;
	for (int i = 0; i < GPUS; i++) {
		memory.GPUs[i] = i;
		memory.size[i] = t.given.size() / GPUS * sizeof(cufftComplex);
		CHECK(cudaSetDevice(i));
		CHECK(cudaMalloc(&memory.data[i], memory.size[i]));
		CHECK(cudaMemcpy(memory.data[i], &t.given[t.given.size() / GPUS * i], memory.size[i], cudaMemcpyHostToDevice));
	}
	own.descriptor = &memory;
	own.subFormat = CUFFT_XT_FORMAT_INPLACE;
	/* With another GPU current than the plan was made on. */
	FFT(cufftXtExecDescriptorC2C(t.forward, &own, &own, CUFFT_FORWARD));
	for (int i = 0; i < GPUS; i++) {
		CHECK(cudaMemcpy(&got[t.given.size() / GPUS * i], memory.data[i], memory.size[i], cudaMemcpyDeviceToHost));
		CHECK(cudaFree(memory.data[i]));
	}
	CHECK(cudaSetDevice(0));
	/* Whole transforms lie on each GPU: their order is the natural one. */
	compare("own memory", s, got, t.wanted, 1, true);
	EXPECT(cufftXtFree(&own) != CUFFT_SUCCESS);
	FFT(cufftDestroy(t.forward));
	printf("own memory: ok\n");
}

int main()
{
	struct transform t[SHAPES];
	int count, none[] = {0, 77};
	cufftHandle refused;

	CHECK(cudaGetDeviceCount(&count));
	if (count < GPUS) {
		phase();
		printf("one GPU\n");
		return finish();
	}
	FFT(cufftCreate(&refused));
	EXPECT(cufftXtSetGPUs(refused, 2, none) == CUFFT_INVALID_DEVICE);
	EXPECT(cufftXtSetGPUs(refused, 0, none) == CUFFT_INVALID_VALUE);
	FFT(cufftDestroy(refused));
	for (int i = 0; i < SHAPES; i++) {
		const struct shape *s = &shapes[i];

		fill(s, &t[i], 7 + i);
		t[i].forward = over_gpus(s, s->real ? CUFFT_R2C : CUFFT_C2C);
		t[i].backward = s->real ? over_gpus(s, CUFFT_C2R) : 0;
		FFT(cufftXtMalloc(t[i].forward, &t[i].numbers, CUFFT_XT_FORMAT_INPLACE));
		FFT(cufftXtMalloc(t[i].forward, &t[i].sorted, CUFFT_XT_FORMAT_INPLACE));
		EXPECT(t[i].numbers->descriptor->nGPUs == GPUS);
		FFT(cufftXtMemcpy(t[i].forward, t[i].numbers, t[i].given.data(), CUFFT_COPY_HOST_TO_DEVICE));
		forward(s, &t[i]);
	}
	phase();
	for (int i = 0; i < SHAPES; i++) {
		backward(&shapes[i], &t[i]);
		/* And once more with what the mid point kept. */
		FFT(cufftXtMemcpy(t[i].forward, t[i].numbers, t[i].given.data(), CUFFT_COPY_HOST_TO_DEVICE));
		forward(&shapes[i], &t[i]);
		FFT(cufftXtFree(t[i].numbers));
		FFT(cufftXtFree(t[i].sorted));
		FFT(cufftDestroy(t[i].forward));
		if (t[i].backward)
			FFT(cufftDestroy(t[i].backward));
	}
	own_memory();
	return finish();
}
