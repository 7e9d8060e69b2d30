/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convolution by cuFFT: two images are transformed, multiplied and transformed back, before and after the mid point with the same plans, and
 * once more by a graph that was captured before it.
 * The CPU computes it by its definition.
 */
#include "phase.h"

#include <cufft.h>

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

/* Rows with a prime, and columns that are odd. */
enum { ROWS = 37, COLUMNS = 45, HALF = COLUMNS / 2 + 1 };

__global__ static void multiply(cufftComplex *a, const cufftComplex *b, float scale, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		a[i] = make_float2((a[i].x * b[i].x - a[i].y * b[i].y) * scale, (a[i].x * b[i].y + a[i].y * b[i].x) * scale);
}

struct convolution {
	cufftHandle forward, backward;
	cudaStream_t stream;
	float *image, *filter;
	cufftComplex *image_spectrum, *filter_spectrum;
	void *work;
};

static void convolve(struct convolution *c)
{
	FFT(cufftExecR2C(c->forward, c->image, c->image_spectrum));
	FFT(cufftExecR2C(c->forward, c->filter, c->filter_spectrum));
	multiply<<<(ROWS * HALF + 255) / 256, 256, 0, c->stream>>>(c->image_spectrum, c->filter_spectrum, 1.0f / (ROWS * COLUMNS), ROWS * HALF);
	CHECK(cudaGetLastError());
	FFT(cufftExecC2R(c->backward, c->image_spectrum, c->image));
}

static cudaGraphExec_t capture(struct convolution *c)
{
	cudaGraph_t graph;
	cudaGraphExec_t captured;

	CHECK(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal));
	convolve(c);
	CHECK(cudaStreamEndCapture(c->stream, &graph));
	CHECK(cudaGraphInstantiate(&captured, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return captured;
}

static std::vector<double> expected(const std::vector<double> &image, const std::vector<float> &filter)
{
	std::vector<double> out(ROWS * COLUMNS);

	for (int y = 0; y < ROWS; y++)
		for (int x = 0; x < COLUMNS; x++) {
			double sum = 0;
			for (int v = 0; v < ROWS; v++)
				for (int u = 0; u < COLUMNS; u++)
					sum += image[(y - v + ROWS) % ROWS * COLUMNS + (x - u + COLUMNS) % COLUMNS] * filter[v * COLUMNS + u];
			out[y * COLUMNS + x] = sum;
		}
	return out;
}

static void compare(const char *what, const struct convolution *c, const std::vector<double> &wanted)
{
	std::vector<float> got(ROWS * COLUMNS);
	double off = 0, greatest = 0;

	CHECK(cudaMemcpyAsync(got.data(), c->image, got.size() * sizeof(float), cudaMemcpyDeviceToHost, c->stream));
	CHECK(cudaStreamSynchronize(c->stream));
	for (size_t i = 0; i < got.size(); i++) {
		off = fmax(off, fabs(got[i] - wanted[i]));
		greatest = fmax(greatest, fabs(wanted[i]));
	}
	EXPECT(off < 1e-5 * greatest);
	print_checksum(what, got.data(), got.size() * sizeof(float));
}

int main()
{
	struct convolution c;
	std::vector<float> image(ROWS * COLUMNS), filter(ROWS * COLUMNS);
	uint32_t seed = 12;
	int n[] = {ROWS, COLUMNS}, version;
	size_t work_bytes;

	for (auto &pixel : image)
		pixel = random_float(&seed);
	for (auto &weight : filter)
		weight = random_float(&seed) / (ROWS * COLUMNS);
	FFT(cufftGetVersion(&version));
	EXPECT(version >= 11000);
	CHECK(cudaStreamCreate(&c.stream));
	CHECK(cudaMalloc(&c.image, image.size() * sizeof(float)));
	CHECK(cudaMalloc(&c.filter, image.size() * sizeof(float)));
	CHECK(cudaMalloc(&c.image_spectrum, ROWS * HALF * sizeof(cufftComplex)));
	CHECK(cudaMalloc(&c.filter_spectrum, ROWS * HALF * sizeof(cufftComplex)));
	CHECK(cudaMemcpy(c.image, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(c.filter, filter.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice));

	/* One plan with a work area of its own, one with the program's. */
	FFT(cufftPlan2d(&c.forward, ROWS, COLUMNS, CUFFT_R2C));
	FFT(cufftCreate(&c.backward));
	FFT(cufftSetAutoAllocation(c.backward, 0));
	FFT(cufftMakePlanMany(c.backward, 2, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2R, 1, &work_bytes));
	CHECK(cudaMalloc(&c.work, work_bytes + 1));
	FFT(cufftSetWorkArea(c.backward, c.work));
	FFT(cufftSetStream(c.forward, c.stream));
	FFT(cufftSetStream(c.backward, c.stream));

	std::vector<double> wanted(image.begin(), image.end());
	convolve(&c);
	wanted = expected(wanted, filter);
	compare("once", &c, wanted);
	cudaGraphExec_t captured = capture(&c);
	phase();
	convolve(&c);
	wanted = expected(wanted, filter);
	compare("twice", &c, wanted);
	/* What was captured before the mid point, on the plans as they were then. */
	CHECK(cudaGraphLaunch(captured, c.stream));
	wanted = expected(wanted, filter);
	compare("as a graph", &c, wanted);
	CHECK(cudaGraphExecDestroy(captured));

	/* Plans can be made after it as before, and refused. */
	cufftHandle third;
	FFT(cufftPlan1d(&third, 16, CUFFT_C2C, 2));
	FFT(cufftDestroy(third));
	EXPECT(cufftDestroy(third) == CUFFT_INVALID_PLAN);
	EXPECT(cufftPlan1d(&third, -1, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
	FFT(cufftDestroy(c.forward));
	FFT(cufftDestroy(c.backward));
	return finish();
}
