/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries with kernels that are opened and closed while the program runs: a static CUDA runtime in each, with symbols and without,
 * beside the program's own; opened by several threads at once; work still under way when one is closed.
 */
#include "phase.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

enum { N = 10000, PLUGINS = 2 };

typedef unsigned (*scale_function)(unsigned *data, unsigned n, cudaStream_t stream);

static char directory[PATH_MAX];

__global__ void fill(unsigned *data, unsigned n)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = i;
}

static void *open_plugin(unsigned number, scale_function *scale)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/plugin%u.so", directory, number);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("plugin%u does not open: %s\n", number, strstr(dlerror(), "plugin"));
		exit(1);
	}
	*scale = (scale_function)dlsym(library, "plugin_scale");
	return library;
}

/* data[i] = i, times 3, plus the plugin's number, `times` times */
static unsigned wrong_after(const unsigned *host, unsigned number, unsigned times)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < N; i++) {
		unsigned value = i;

		for (unsigned t = 0; t < times; t++)
			value = value * 3 + number;
		bad += host[i] != value;
	}
	return bad;
}

static void use(unsigned number, scale_function scale, unsigned *data, unsigned before)
{
	unsigned *host = (unsigned *)malloc(N * 4);

	fill<<<8, 128>>>(data, N);
	EXPECT(scale(data, N, NULL) == before + 1);
	EXPECT(scale(data, N, cudaStreamPerThread) == before + 2);
	CHECK(cudaMemcpy(host, data, N * 4, cudaMemcpyDeviceToHost));
	EXPECT(wrong_after(host, number, 2) == 0);
	free(host);
}

static void *opener(void *opaque)
{
	unsigned number = (unsigned)(size_t)opaque % PLUGINS, *data;

	CHECK(cudaMalloc(&data, N * 4));
	for (int round = 0; round < 5; round++) {
		scale_function scale;
		void *library = open_plugin(number, &scale);

		fill<<<8, 128, 0, cudaStreamPerThread>>>(data, N);
		EXPECT(scale(data, N, cudaStreamPerThread) > 1000);
		dlclose(library);
	}
	CHECK(cudaFree(data));
	return NULL;
}

int main(void)
{
	scale_function scale[PLUGINS];
	void *library[PLUGINS];
	pthread_t threads[6];
	unsigned *data;

	if (readlink("/proc/self/exe", directory, sizeof(directory) - 1) < 0)
		return 1;
	*strrchr(directory, '/') = 0;
	CHECK(cudaMalloc(&data, N * 4));
	/* Opened anew, a library begins anew: its variables have their first values. */
	for (int round = 0; round < 8; round++)
		for (unsigned p = 0; p < PLUGINS; p++) {
			library[p] = open_plugin(p, &scale[p]);
			use(p, scale[p], data, 1000);
			dlclose(library[p]);
		}
	for (unsigned p = 0; p < PLUGINS; p++) {
		library[p] = open_plugin(p, &scale[p]);
		use(p, scale[p], data, 1000);
	}
	for (size_t t = 0; t < 6; t++)
		if (pthread_create(&threads[t], NULL, opener, (void *)t))
			return 1;
	for (size_t t = 0; t < 6; t++)
		pthread_join(threads[t], NULL);

	phase();

	for (unsigned p = 0; p < PLUGINS; p++) {
		fill<<<8, 128>>>(data, N);
		EXPECT(scale[p](data, N, NULL) > 1002);
		dlclose(library[p]);
		library[p] = open_plugin(p, &scale[p]);
		use(p, scale[p], data, 1000);
	}
	return finish();	/* with both open */
}
