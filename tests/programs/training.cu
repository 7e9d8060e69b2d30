/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training does between its losses: a batch to the device, a row of launches on a stream with
 * events, and one number back.  The mid point comes after the first result and the steps that the
 * second argument says (5), so that the messages up to there can be counted.
 */
#include "phase.h"

enum { LAUNCHES = 20, WIDTH = 1024 };

__global__ void forward(const float *batch, const float *weights, float *state)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < WIDTH)
		state[i] = fmaf(weights[i], batch[i], 0.5f * state[i]);
}

__global__ void backward(const float *batch, float *weights, const float *state)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < WIDTH)
		weights[i] = fmaf(-0.001f * state[i], batch[i], weights[i]);
}

__global__ void sum(const float *state, float *loss)
{
	float total = 0;

	for (unsigned i = 0; i < WIDTH; i++)
		total = fmaf(state[i], state[i], total);
	*loss = total;
}

/* The same on the host, in the same order. */
static float step_here(const float *batch, float *weights, float *state)
{
	float total = 0;

	for (unsigned i = 0; i < WIDTH; i++) {
		for (unsigned k = 0; k < LAUNCHES / 2; k++) {
			state[i] = fmaf(weights[i], batch[i], 0.5f * state[i]);
			weights[i] = fmaf(-0.001f * state[i], batch[i], weights[i]);
		}
		total = fmaf(state[i], state[i], total);
	}
	return total;
}

static struct {
	float *batch, *weights, *state, *loss;
	cudaStream_t stream;
	cudaEvent_t done;
} device;

static float step(const float *batch)
{
	float loss;

	CHECK(cudaMemcpyAsync(device.batch, batch, WIDTH * sizeof *batch, cudaMemcpyHostToDevice, device.stream));
	for (unsigned k = 0; k < LAUNCHES / 2; k++) {
		forward<<<WIDTH / 128, 128, 0, device.stream>>>(device.batch, device.weights, device.state);
		backward<<<WIDTH / 128, 128, 0, device.stream>>>(device.batch, device.weights, device.state);
	}
	sum<<<1, 1, 0, device.stream>>>(device.state, device.loss);
	CHECK(cudaGetLastError());
	CHECK(cudaEventRecord(device.done, device.stream));
	CHECK(cudaMemcpyAsync(&loss, device.loss, sizeof loss, cudaMemcpyDeviceToHost, device.stream));
	/* Programs that time their steps ask for more than they need. */
	CHECK(cudaStreamSynchronize(device.stream));
	CHECK(cudaEventSynchronize(device.done));
	return loss;
}

int main(int argc, char **argv)
{
	static float batch[WIDTH], weights[WIDTH], state[WIDTH], losses[64];
	unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
	uint32_t seed = 1;
	size_t wrong = 0;

	if (steps >= 64)
		steps = 63;
	for (unsigned i = 0; i < WIDTH; i++) {
		weights[i] = random_float(&seed);
		state[i] = 0;
	}
	CHECK(cudaMalloc(&device.batch, sizeof batch));
	CHECK(cudaMalloc(&device.weights, 3 * sizeof weights));
	device.state = device.weights + WIDTH;
	device.loss = device.state + WIDTH;
	CHECK(cudaStreamCreate(&device.stream));
	CHECK(cudaEventCreateWithFlags(&device.done, cudaEventDisableTiming));
	CHECK(cudaMemcpy(device.weights, weights, sizeof weights, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(device.state, 0, sizeof state));
	for (unsigned s = 0; s <= steps; s++) {
		for (unsigned i = 0; i < WIDTH; i++)
			batch[i] = random_float(&seed);
		losses[s] = step(batch);
		wrong += losses[s] != step_here(batch, weights, state);
	}
	phase();
	for (unsigned i = 0; i < WIDTH; i++)
		batch[i] = random_float(&seed);
	wrong += step(batch) != step_here(batch, weights, state);
	EXPECT(wrong == 0);
	print_checksum("losses", losses, (steps + 1) * sizeof *losses);
	CHECK(cudaEventDestroy(device.done));
	CHECK(cudaStreamDestroy(device.stream));
	CHECK(cudaFree(device.batch));
	CHECK(cudaFree(device.weights));
	return finish();
}
