/* SPDX-License-Identifier: Apache-2.0 */
/* cudaLaunchKernelExC, cudaLaunchKernel and <<<>>> with arguments of every size and alignment. */
#include "phase.h"

struct big {
	char c;
	double d[40];
	short s;
};

__global__ void gather(char a, double b, short c, struct big big, float4 v, unsigned char tail, double *out)
{
	if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0) {
		out[0] = a;
		out[1] = b;
		out[2] = c;
		out[3] = big.c + big.d[0] + big.d[39] + big.s;
		out[4] = v.x + v.y + v.z + v.w;
		out[5] = tail;
	}
	if (threadIdx.x + threadIdx.y + threadIdx.z == 0)
		atomicAdd(&out[6 + (blockIdx.x + blockIdx.y + blockIdx.z) % 4], 1.0);
}

__global__ void nothing(void)
{
}

static void show(double *d, const char *name)
{
	double h[10];

	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	EXPECT(h[0] == -7 && h[1] == 2.5 && h[2] == -1234 && h[3] == 3 + 1.25 + 77 - 9 && h[4] == 10 && h[5] == 200);
	EXPECT(h[6] + h[7] + h[8] + h[9] == 3 * 4 * 5);
	printf("%s:", name);
	for (int i = 0; i < 10; i++)
		printf(" %g", h[i]);
	printf("\n");
	CHECK(cudaMemset(d, 0, sizeof(h)));
}

int main(void)
{
	char a = -7;
	double b = 2.5, *d;
	short c = -1234;
	struct big big = {};
	float4 v = make_float4(1, 2, 3, 4);
	unsigned char tail = 200;
	void *args[] = { &a, &b, &c, &big, &v, &tail, &d };
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute[1];
	cudaStream_t stream;

	big.c = 3;
	big.d[0] = 1.25;
	big.d[39] = 77;
	big.s = -9;
	CHECK(cudaMalloc(&d, 10 * sizeof(double)));
	CHECK(cudaMemset(d, 0, 10 * sizeof(double)));
	CHECK(cudaStreamCreate(&stream));
	gather<<<dim3(3, 4, 5), 64>>>(a, b, c, big, v, tail, d);
	show(d, "triple chevron");
	phase();
	CHECK(cudaLaunchKernel((const void *)gather, dim3(3, 4, 5), dim3(4, 4, 2), args, 128, stream));
	CHECK(cudaStreamSynchronize(stream));
	show(d, "cudaLaunchKernel");
	config.gridDim = dim3(3, 4, 5);
	config.blockDim = dim3(32);
	config.dynamicSmemBytes = 64;
	config.stream = stream;
	attribute[0].id = cudaLaunchAttributePriority;
	attribute[0].val.priority = 0;
	config.attrs = attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelExC(&config, (const void *)gather, args));
	CHECK(cudaStreamSynchronize(stream));
	show(d, "cudaLaunchKernelExC");
	config.numAttrs = 0;
	CHECK(cudaLaunchKernelEx(&config, nothing));
	nothing<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(d));
	return finish();
}
