/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS in a worker, at the driver: every allocation in the window, the memory limit as the
 * library's own status, what the first use costs, and where variables of modules lie that are
 * loaded before, between and after.  On the soft GPU with its cuBLAS; tests/gpu/libraries-inside
 * runs it with the genuine one, many times.
 *
 *	libraries_inside DRIVER
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/worker/libs/genuine.h"
#include "server/worker/libs/inside/inside.h"
#include "tests/unit/worker/inside.h"

enum { N = 256, ALLOC_FAILED = 3, MIB = 1 << 20 };

static struct {
	int (*create)(void **);
	int (*destroy)(void *);
	int (*set_workspace)(void *, void *, size_t);
	int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int,
		const float *, int, const float *, float *, int);
} cublas;

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint64_t driver_free(void)
{
	size_t bytes = 0, total;
	IS(ckt_driver.cuMemGetInfo_v2(&bytes, &total), CUDA_SUCCESS);
	return bytes;
}

/* Where the variable of a new module lies. */
static uint64_t variable(unsigned number)
{
	char ptx[512];
	CUdeviceptr address = 0;
	size_t size;
	snprintf(ptx, sizeof ptx,
		".version 7.8\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 v = %u;\n.visible .entry k()\n{\n.reg .u32 %%r;\n"
		"ld.global.u32 %%r, [v]; st.global.u32 [v], %%r; ret;\n}\n",
		number);
	struct ckt_object *module = inside_module(ID(MODULE, 900 + number), ptx);
	if (!module)
		CU_FAIL_FATAL("a module of PTX is not loaded");
	IS(ckt_driver.cuModuleGetGlobal_v2(&address, &size, module->real, "v"), CUDA_SUCCESS);
	IS(inside_word(address), number);
	return address;
}

/*
 * Every block of the library's lies in the window by its nature: what else the driver gave is code,
 * contexts, local memory.
 */
static void tell(const char *what, uint64_t before, double begun)
{
	struct ckt_inside_figures f = ckt_inside_figures();
	printf("%-8s %8.1f ms, %5lld MiB of the GPU; in the window %llu allocations, %llu KiB; pinned %llu KiB, other %llu KiB; %llu modules, %llu "
	       "streams, %llu events\n",
		what, now_ms() - begun, ((long long)before - (long long)driver_free()) / MIB,
		(unsigned long long)f.allocations, (unsigned long long)f.bytes >> 10,
		(unsigned long long)f.host_bytes >> 10, (unsigned long long)f.other_bytes >> 10,
		(unsigned long long)f.modules, (unsigned long long)f.streams,
		(unsigned long long)f.events);
}

static int multiply(void *handle, uint64_t a, uint64_t b, uint64_t c)
{
	const float one = 1, zero = 0;
	return cublas.sgemm(
		handle, 0, 0, N, N, N, &one, (float *)a, N, (float *)b, N, &zero, (float *)c, N);
}

static void check_product(uint64_t c)
{
	static float result[N * N];
	IS(ckt_driver.cuCtxSynchronize(), CUDA_SUCCESS);
	IS(ckt_driver.cuMemcpyDtoH_v2(result, c, sizeof result), CUDA_SUCCESS);
	for (unsigned i = 0; i < N * N; i++)
		if (result[i] != 2.0f * 3.0f * N) {
			CU_FAIL("a wrong product");
			return;
		}
}

/* The session has room for little: the library says so, and works again when there is more. */
static void check_limit(uint64_t a, uint64_t b, uint64_t c)
{
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	void *handles[64];
	unsigned made = 0;
	int status = 0;
	uint64_t limit = memory->limit;
	memory->limit = memory->held + CKT_MEMORY_RESERVED + 2 * MIB;
	while (!status && made < COUNT(handles)) {
		status = cublas.create(&handles[made]);
		made += !status;
		if (!status)
			status = multiply(handles[made - 1], a, b, c);
	}
	memory->limit = limit;
	printf("limit    %u handles, then status %d\n", made, status);
	/* A cuBLAS that needs no memory of its own never comes to it: the soft GPU's. */
	if (ckt_inside_figures().allocations)
		IS(status, ALLOC_FAILED);
	while (made)
		IS(cublas.destroy(handles[--made]), 0);
}

/* What the library keeps of handles that have ended it keeps once: the limit does not creep. */
static void check_cycles(uint64_t a, uint64_t b, uint64_t c)
{
	enum { CYCLES = 20 };
	struct ckt_inside_figures first = {0}, last = {0};
	for (unsigned i = 0; i < CYCLES; i++) {
		void *handle;
		MUST(cublas.create(&handle), 0);
		IS(multiply(handle, a, b, c), 0);
		IS(cublas.destroy(handle), 0);
		last = ckt_inside_figures();
		if (i == 1)
			first = last;
	}
	IS(last.bytes, first.bytes);
	IS(last.allocations, first.allocations);
	IS(last.host_bytes, first.host_bytes);
	IS(last.other_bytes, first.other_bytes);
	IS(last.streams, first.streams);
	IS(last.events, first.events);
}

static void test_cublas(void)
{
	const struct ckt_genuine *genuine;
	char message[1024];
	void *handle;
	uint64_t first = variable(1), before = driver_free(), matrix[3];
	const float values[] = {2, 3, 0};
	for (unsigned i = 0; i < 3; i++) {
		uint32_t word;
		memcpy(&word, &values[i], sizeof word);
		matrix[i] = inside_memory(N * N * sizeof(float), word);
	}
	double begun = now_ms();
	if (ckt_genuine_open(
		    &ckt_worker, "libcublas.so", 13, "", &genuine, message, sizeof message)) {
		printf("%s\n", message);
		CU_FAIL("no cuBLAS");
		return;
	}
	printf("library  %s\n", genuine->found.path);
	*(void **)&cublas.create = dlsym(genuine->handle, "cublasCreate_v2");
	*(void **)&cublas.destroy = dlsym(genuine->handle, "cublasDestroy_v2");
	*(void **)&cublas.sgemm = dlsym(genuine->handle, "cublasSgemm_v2");
	tell("open", before, begun);
	MUST(cublas.create(&handle), 0);
	tell("create", before, begun);
	uint64_t second = variable(2);
	MUST(multiply(handle, matrix[0], matrix[1], matrix[2]), 0);
	check_product(matrix[2]);
	tell("multiply", before, begun);
	uint64_t third = variable(3);
	printf("address  %llx %llx %llx\n", (unsigned long long)first, (unsigned long long)second,
		(unsigned long long)third);
	check_limit(matrix[0], matrix[1], matrix[2]);
	MUST(multiply(handle, matrix[0], matrix[1], matrix[2]), 0);
	check_product(matrix[2]);
	IS(cublas.destroy(handle), 0);
	tell("end", before, begun);
	check_cycles(matrix[0], matrix[1], matrix[2]);
	tell("cycles", before, begun);
}

UNIT_SUITE(libraries_inside, {"cublas", test_cublas})
