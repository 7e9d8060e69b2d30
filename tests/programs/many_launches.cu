/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of launches: many_launches [N [FIRST]].  Prints the process's resident memory on stderr after FIRST launches (default 10,000, or N/2
 * when N is smaller) and after N, and passes a mid point at both, so that a script can look at the server's side too.
 */
#include "phase.h"

__global__ void count(unsigned long long *counter, unsigned step)
{
	*counter += step;
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	if (f) {
		if (fscanf(f, "%ld %ld", &size, &resident) != 2)
			resident = 0;
		fclose(f);
	}
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
	unsigned long long n = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000, *d, h;
	struct timespec t0, t1;

	if (first >= n)
		first = n / 2;
	CHECK(cudaMalloc(&d, sizeof(*d)));
	CHECK(cudaMemset(d, 0, sizeof(*d)));
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (unsigned long long i = 0; i < n; i++) {
		if (i == first) {
			CHECK(cudaDeviceSynchronize());
			fprintf(stderr, "after %llu launches: %ld KiB resident\n", first, resident_kib());
			phase();
		}
		count<<<1, 1>>>(d, (unsigned)(i % 7));
	}
	CHECK(cudaDeviceSynchronize());
	clock_gettime(CLOCK_MONOTONIC, &t1);
	fprintf(stderr, "after %llu launches: %ld KiB resident, %.3f us a launch\n", n, resident_kib(),
		((t1.tv_sec - t0.tv_sec) * 1e6 + (t1.tv_nsec - t0.tv_nsec) * 1e-3) / n);
	phase();
	CHECK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	EXPECT(h == n / 7 * 21 + (n % 7) * (n % 7 - 1) / 2);
	printf("%llu launches, counter %llu\n", n, h);
	CHECK(cudaFree(d));
	return finish();
}
