/* SPDX-License-Identifier: Apache-2.0 */
/* printf from kernels: every conversion, strings, many threads in turns, several launches before one synchronisation. */
#include "phase.h"

__global__ void formats(int number, float real, const char *where)
{
	printf("%s: %d %5d|%-5d|%05d %+d %u %x %X %#x %o %c %%\n", "formats", number, number, number, number, number, 4000000000u, 48879,
	       48879, 48879, 8, 'z');
	printf("%f %.3f %10.2f|%-10.2f| %e %g %s\n", real, real, real, real, real, 1e-10, where ? "pointer" : "none");
	printf("%lld %llu %llx %ld %zu %hhd %hd\n", -1234567890123456789ll, 12345678901234567890ull, 0xfeedfacecafebeefull, -5l, (size_t)99, (signed char)-7,
	       (short)-300);
	printf("no arguments\n");
}

__global__ void turns(int launch)
{
	for (unsigned t = 0; t < blockDim.x; t++) {
		if (t == threadIdx.x && t % 5 == 0)
			printf("launch %d thread %u says %s\n", launch, t, t % 2 ? "odd" : "even");
		__syncthreads();
	}
}

__global__ void one_line(void)
{
	printf("from the device\n");
}

/* What the host printed before comes first, also where it is still in a buffer of the host's. */
static void order(void)
{
	char text[256];
	int ends[2], out = dup(1);

	fflush(stdout);
	if (out < 0 || pipe(ends) || dup2(ends[1], 1) < 0)
		exit(1);
	printf("from the host\n");
	one_line<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(out, 1);
	close(out);
	close(ends[1]);
	ssize_t n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	text[n > 0 ? n : 0] = '\0';
	EXPECT(!strcmp(text, "from the host\nfrom the device\n"));
}

int main(void)
{
	formats<<<1, 1>>>(42, 3.14159274f, NULL);
	CHECK(cudaDeviceSynchronize());
	printf("host line between\n");
	fflush(stdout);
	phase();
	for (int k = 0; k < 3; k++)
		turns<<<1, 40>>>(k);
	CHECK(cudaDeviceSynchronize());
	formats<<<1, 1>>>(-1, -0.5f, "x");
	/* The end of a program does not flush: a synchronisation must, or a copy that blocks. */
	CHECK(cudaStreamSynchronize(0));
	int *d, n = 1;
	CHECK(cudaMalloc(&d, sizeof(n)));
	CHECK(cudaMemset(d, 0, sizeof(n)));
	formats<<<1, 1>>>(7, 0.25f, NULL);
	CHECK(cudaMemcpy(&n, d, sizeof(n), cudaMemcpyDeviceToHost));
	EXPECT(n == 0);
	printf("host line behind a copy\n");
	order();
	return finish();
}
