/* SPDX-License-Identifier: Apache-2.0 */
/* -rdc=true: kernels, device functions and globals used across two files. */
#include "phase.h"
#include "rdc.h"

__global__ void transform(unsigned *data, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = rdc_mix(data[i]) ^ rdc_salt;
}

int main(void)
{
	unsigned n = 5003, *d, *h = (unsigned *)malloc(n * 4ul), wrong = 0, salt = 0x5a5a0000u, calls;

	CHECK(cudaMalloc(&d, n * 4ul));
	rdc_fill<<<(n + 127) / 128, 128>>>(d, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyToSymbol(rdc_salt, &salt, sizeof(salt)));
	phase();
	transform<<<(n + 127) / 128, 128>>>(d, n);
	CHECK(cudaMemcpy(h, d, n * 4ul, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpyFromSymbol(&calls, rdc_calls, sizeof(calls)));
	for (unsigned i = 0; i < n; i++) {
		unsigned v = i * 3;

		v = (v ^ v >> 7) * 0x2545f491u;
		wrong += h[i] != (v ^ salt);
	}
	EXPECT(wrong == 0);
	EXPECT(calls == n);
	print_checksum("data", h, n * 4ul);
	CHECK(cudaFree(d));
	return finish();
}
