/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An iterative solver: conjugate gradients on the Poisson equation of a square, with the state of the iteration on the device.  At the
 * mid point it takes steps of a copy of that state over and over, which must come out the same each time.
 */
#include "phase.h"
#include <cmath>
#include <vector>

#define BLOCK 128

struct state {
	double *x, *r, *p, *q, *partial;
	int side, n, blocks;
	double rho;
};

__device__ double at(const double *v, int side, int i, int k)
{
	return i < 0 || k < 0 || i >= side || k >= side ? 0 : v[i * side + k];
}

/* q = A p, and the sums of p q by blocks. */
__global__ void apply(const double *p, double *q, double *partial, int side)
{
	__shared__ double sum[BLOCK];
	int at_cell = blockIdx.x * BLOCK + threadIdx.x, i = at_cell / side, k = at_cell % side;
	double value = 0;

	if (at_cell < side * side) {
		value = 4 * p[at_cell] - at(p, side, i - 1, k) - at(p, side, i + 1, k) - at(p, side, i, k - 1) - at(p, side, i, k + 1);
		q[at_cell] = value;
		value *= p[at_cell];
	}
	sum[threadIdx.x] = value;
	__syncthreads();
	for (int width = BLOCK / 2; width; width /= 2) {
		if (threadIdx.x < width)
			sum[threadIdx.x] += sum[threadIdx.x + width];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum[0];
}

/* x += alpha p, r -= alpha q, and the sums of r r by blocks. */
__global__ void advance(double *x, double *r, const double *p, const double *q, double *partial, double alpha, int n)
{
	__shared__ double sum[BLOCK];
	int i = blockIdx.x * BLOCK + threadIdx.x;
	double value = 0;

	if (i < n) {
		x[i] += alpha * p[i];
		value = r[i] - alpha * q[i];
		r[i] = value;
		value *= value;
	}
	sum[threadIdx.x] = value;
	__syncthreads();
	for (int width = BLOCK / 2; width; width /= 2) {
		if (threadIdx.x < width)
			sum[threadIdx.x] += sum[threadIdx.x + width];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum[0];
}

__global__ void direction(double *p, const double *r, double beta, int n)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	if (i < n)
		p[i] = r[i] + beta * p[i];
}

static double add_up(const struct state *s)
{
	std::vector<double> partial(s->blocks);
	double sum = 0;

	CHECK(cudaMemcpy(partial.data(), s->partial, s->blocks * sizeof(double), cudaMemcpyDeviceToHost));
	for (int i = 0; i < s->blocks; i++)
		sum += partial[i];
	return sum;
}

static void step(struct state *s)
{
	apply<<<s->blocks, BLOCK>>>(s->p, s->q, s->partial, s->side);
	double alpha = s->rho / add_up(s);
	advance<<<s->blocks, BLOCK>>>(s->x, s->r, s->p, s->q, s->partial, alpha, s->n);
	double rho = add_up(s);
	direction<<<s->blocks, BLOCK>>>(s->p, s->r, rho / s->rho, s->n);
	s->rho = rho;
}

struct trial {
	const struct state *from;
	struct state copy;
	double rho;
	int wrong;
};

/* Two steps of a copy. */
static void try_steps(void *opaque)
{
	struct trial *trial = (struct trial *)opaque;
	size_t bytes = trial->from->n * sizeof(double);

	CHECK(cudaMemcpy(trial->copy.x, trial->from->x, bytes, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(trial->copy.r, trial->from->r, bytes, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(trial->copy.p, trial->from->p, bytes, cudaMemcpyDeviceToDevice));
	trial->copy.rho = trial->from->rho;
	step(&trial->copy);
	step(&trial->copy);
	if (trial->rho == 0)
		trial->rho = trial->copy.rho;
	trial->wrong += trial->rho != trial->copy.rho;
}

static struct state make(int side)
{
	struct state s = {};

	s.side = side;
	s.n = side * side;
	s.blocks = (s.n + BLOCK - 1) / BLOCK;
	CHECK(cudaMalloc(&s.x, s.n * sizeof(double)));
	CHECK(cudaMalloc(&s.r, s.n * sizeof(double)));
	CHECK(cudaMalloc(&s.p, s.n * sizeof(double)));
	CHECK(cudaMalloc(&s.q, s.n * sizeof(double)));
	CHECK(cudaMalloc(&s.partial, s.blocks * sizeof(double)));
	CHECK(cudaMemset(s.x, 0, s.n * sizeof(double)));
	return s;
}

int main(int argc, char **argv)
{
	int side = 24 * (int)size_factor(argc, argv), steps = side * 4;
	struct state s = make(side);
	struct trial trial = { &s, make(side), 0, 0 };
	std::vector<double> b(s.n), x(s.n);
	uint32_t seed = 11;
	double worst = 0;

	for (int i = 0; i < s.n; i++) {
		b[i] = random_float(&seed);
		s.rho += b[i] * b[i];
	}
	CHECK(cudaMemcpy(s.r, b.data(), s.n * sizeof(double), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(s.p, b.data(), s.n * sizeof(double), cudaMemcpyHostToDevice));
	for (int i = 0; i < steps; i++) {
		if (i == steps / 2)
			phase_with(try_steps, &trial);
		step(&s);
		if (i % (steps / 4) == 0)
			printf("step %d: %a\n", i, s.rho);
	}
	CHECK(cudaMemcpy(x.data(), s.x, s.n * sizeof(double), cudaMemcpyDeviceToHost));
	for (int i = 0; i < side; i++)
		for (int k = 0; k < side; k++) {
			double left = 4 * x[i * side + k];

			left -= i ? x[(i - 1) * side + k] : 0;
			left -= i + 1 < side ? x[(i + 1) * side + k] : 0;
			left -= k ? x[i * side + k - 1] : 0;
			left -= k + 1 < side ? x[i * side + k + 1] : 0;
			worst = fmax(worst, fabs(left - b[i * side + k]));
		}
	EXPECT(worst < 1e-6);
	EXPECT(trial.wrong == 0);
	print_checksum("x", x.data(), s.n * sizeof(double));
	return finish();
}
