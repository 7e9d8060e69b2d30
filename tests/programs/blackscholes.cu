/* SPDX-License-Identifier: Apache-2.0 */
/* European options by Black and Scholes: exp, log, sqrt, division and erfc in float and in double. */
#include "phase.h"
#include <cmath>
#include <vector>

template <typename T> __global__ void price(const T *spot, const T *strike, const T *years, T *call, T *put, int n)
{
	const T rate = T(0.02), volatility = T(0.3);
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	T root = sqrt(years[i]);
	T d1 = (log(spot[i] / strike[i]) + (rate + T(0.5) * volatility * volatility) * years[i]) / (volatility * root);
	T d2 = d1 - volatility * root;
	T n1 = T(0.5) * erfc(-d1 * T(0.70710678118654752)), n2 = T(0.5) * erfc(-d2 * T(0.70710678118654752));
	T discounted = strike[i] * exp(-rate * years[i]);

	call[i] = spot[i] * n1 - discounted * n2;
	put[i] = discounted * (T(1) - n2) - spot[i] * (T(1) - n1);
}

/* Prices in the device's own exp2 and log2 too: the fast intrinsics. */
__global__ void fast_price(const float *spot, const float *strike, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = __expf(__logf(spot[i]) - __logf(strike[i])) + __fdividef(spot[i], strike[i]) + __sinf(spot[i] * 0.01f);
}

template <typename T> static void run(int n, double tolerance, const char *name, bool mid)
{
	std::vector<T> h[5];
	T *d[5];
	uint32_t seed = 7;
	double worst = 0;

	for (auto &v : h)
		v.resize(n);
	for (int i = 0; i < n; i++) {
		h[0][i] = T(5) + T(25) * random_float(&seed);
		h[1][i] = T(1) + T(99) * random_float(&seed);
		h[2][i] = T(0.25) + T(9.75) * random_float(&seed);
	}
	for (int k = 0; k < 5; k++) {
		CHECK(cudaMalloc(&d[k], n * sizeof(T)));
		if (k < 3)
			CHECK(cudaMemcpy(d[k], h[k].data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	if (mid)
		phase();
	price<T><<<(n + 127) / 128, 128>>>(d[0], d[1], d[2], d[3], d[4], n);
	for (int k = 3; k < 5; k++)
		CHECK(cudaMemcpy(h[k].data(), d[k], n * sizeof(T), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		double s = h[0][i], x = h[1][i], t = h[2][i], root = std::sqrt(t);
		double d1 = (std::log(s / x) + (0.02 + 0.5 * 0.09) * t) / (0.3 * root), d2 = d1 - 0.3 * root;
		double n1 = 0.5 * std::erfc(-d1 * M_SQRT1_2), n2 = 0.5 * std::erfc(-d2 * M_SQRT1_2), k = x * std::exp(-0.02 * t);

		worst = fmax(worst, fabs(s * n1 - k * n2 - h[3][i]));
		worst = fmax(worst, fabs(k * (1 - n2) - s * (1 - n1) - h[4][i]));
	}
	EXPECT(worst < tolerance);
	printf("%s ", name);
	print_checksum("calls", h[3].data(), n * sizeof(T));
	printf("%s ", name);
	print_checksum("puts", h[4].data(), n * sizeof(T));
	if (sizeof(T) == sizeof(float)) {
		worst = 0;
		fast_price<<<(n + 127) / 128, 128>>>((float *)d[0], (float *)d[1], (float *)d[3], n);
		CHECK(cudaMemcpy(h[3].data(), d[3], n * sizeof(T), cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++)
			worst = fmax(worst, fabs(2.0 * h[0][i] / h[1][i] + std::sin((double)h[0][i] * 0.01) - h[3][i]));
		EXPECT(worst < 1e-4);
	}
	for (int k = 0; k < 5; k++)
		CHECK(cudaFree(d[k]));
}

int main(int argc, char **argv)
{
	int n = 20011 * (int)size_factor(argc, argv);

	run<float>(n, 2e-4, "float", true);
	run<double>(n / 4, 1e-10, "double", false);
	return finish();
}
