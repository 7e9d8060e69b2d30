/* SPDX-License-Identifier: Apache-2.0 */
/* All-pairs gravity: float4 loads, tiles in shared memory, approximate reciprocal square root, a dozen dependent steps. */
#include "phase.h"
#include <cmath>
#include <vector>

#define BLOCK 64

__global__ void step(const float4 *in, float4 *out, float3 *velocity, int n, float dt)
{
	__shared__ float4 tile[BLOCK];
	int i = blockIdx.x * BLOCK + threadIdx.x;
	float4 me = in[i];
	float ax = 0, ay = 0, az = 0;

	for (int base = 0; base < n; base += BLOCK) {
		tile[threadIdx.x] = in[base + threadIdx.x];
		__syncthreads();
		for (int k = 0; k < BLOCK; k++) {
			float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
			float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
			float s = tile[k].w * inverse * inverse * inverse;

			ax += dx * s;
			ay += dy * s;
			az += dz * s;
		}
		__syncthreads();
	}
	velocity[i].x += ax * dt;
	velocity[i].y += ay * dt;
	velocity[i].z += az * dt;
	out[i] = make_float4(me.x + velocity[i].x * dt, me.y + velocity[i].y * dt, me.z + velocity[i].z * dt, me.w);
}

static void step_cpu(std::vector<double> &p, std::vector<double> &v, const std::vector<float4> &mass, int n, double dt)
{
	std::vector<double> a(3 * n, 0.0);

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double d[3], r = 0.01, s;

			for (int c = 0; c < 3; c++) {
				d[c] = p[3 * j + c] - p[3 * i + c];
				r += d[c] * d[c];
			}
			s = mass[j].w / (r * std::sqrt(r));
			for (int c = 0; c < 3; c++)
				a[3 * i + c] += d[c] * s;
		}
	for (int i = 0; i < 3 * n; i++) {
		v[i] += a[i] * dt;
		p[i] += v[i] * dt;
	}
}

int main(int argc, char **argv)
{
	int n = BLOCK * 4 * (int)size_factor(argc, argv), steps = 12;
	std::vector<float4> body(n);
	std::vector<double> p(3 * n), v(3 * n, 0.0);
	float4 *d[2];
	float3 *dv;
	uint32_t seed = 6;
	double worst = 0;

	for (int i = 0; i < n; i++) {
		body[i] = make_float4(random_float(&seed) - 0.5f, random_float(&seed) - 0.5f, random_float(&seed) - 0.5f,
				      random_float(&seed) / n);
		p[3 * i] = body[i].x;
		p[3 * i + 1] = body[i].y;
		p[3 * i + 2] = body[i].z;
	}
	CHECK(cudaMalloc(&d[0], n * sizeof(float4)));
	CHECK(cudaMalloc(&d[1], n * sizeof(float4)));
	CHECK(cudaMalloc(&dv, n * sizeof(float3)));
	CHECK(cudaMemset(dv, 0, n * sizeof(float3)));
	CHECK(cudaMemcpy(d[0], body.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
	for (int s = 0; s < steps; s++) {
		if (s == steps / 2)
			phase();
		step<<<n / BLOCK, BLOCK>>>(d[s & 1], d[!(s & 1)], dv, n, 0.01f);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(body.data(), d[steps & 1], n * sizeof(float4), cudaMemcpyDeviceToHost));
	if (n <= 2048) {
		for (int s = 0; s < steps; s++)
			step_cpu(p, v, body, n, 0.01);
		for (int i = 0; i < n; i++) {
			worst = fmax(worst, fabs(p[3 * i] - body[i].x));
			worst = fmax(worst, fabs(p[3 * i + 1] - body[i].y));
			worst = fmax(worst, fabs(p[3 * i + 2] - body[i].z));
		}
		EXPECT(worst < 1e-5);
	}
	print_checksum("positions", body.data(), n * sizeof(float4));
	CHECK(cudaFree(d[0]));
	CHECK(cudaFree(d[1]));
	CHECK(cudaFree(dv));
	return finish();
}
