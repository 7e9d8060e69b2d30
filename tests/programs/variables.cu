/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of variables, kept in device memory: of modules that are loaded before, between and after the first uses of the math libraries there are.
 * Wherever the session is restored, each must lie where it lay: kernels ask each module anew, write through the addresses kept, and the libraries go on.
 *
 * The libraries are opened by name, so that a build needs none; which there are is not printed.  With VARIABLES_TELL=1 the times and the memory of the first
 * uses, and the addresses, go to stderr (tests/gpu/variables).
 */
#include <dlfcn.h>

#include "phase.h"

enum { MODULES_MAX = 64, N = 32 };

static cudaLibrary_t libraries[MODULES_MAX];
static cudaKernel_t wheres[MODULES_MAX];
static uint64_t seen[MODULES_MAX], (*kept)[2];
static uint32_t rounds;
static int count;
static bool telling;

/*
 * One variable that the host asks for, and one that only kernels know; `where` gives both.  Each module has sizes of its own, so that none is taken for
 * another.
 */
static void load_module()
{
	char text[2048];
	void *address;
	size_t size;

	snprintf(text, sizeof text,
		 ".version 6.4\n.target sm_70\n.address_size 64\n"
		 ".visible .global .align 8 .b8 hidden[%d];\n.visible .global .align 8 .b8 known[%d];\n"
		 ".visible .entry where(.param .u64 out)\n{\n.reg .b64 %%d<6>;\n"
		 "ld.param.u64 %%d1, [out];\ncvta.to.global.u64 %%d2, %%d1;\nmov.u64 %%d3, known;\ncvta.global.u64 %%d3, %%d3;\nst.global.u64 [%%d2], %%d3;\n"
		 "mov.u64 %%d4, hidden;\ncvta.global.u64 %%d4, %%d4;\nst.global.u64 [%%d2+8], %%d4;\nret;\n}\n",
		 1000 + 8 * count, 3000 + 1608 * count);
	CHECK(cudaLibraryLoadData(&libraries[count], text, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernel(&wheres[count], libraries[count], "where"));
	CHECK(cudaLibraryGetGlobal(&address, &size, libraries[count], "known"));
	EXPECT(size == (size_t)(3000 + 1608 * count));
	seen[count] = (uint64_t)(uintptr_t)address;
	uint64_t *place = kept[count];
	void *parameters[] = {&place};
	CHECK(cudaLaunchKernel((const void *)wheres[count], dim3(1), dim3(1), parameters, 0, 0));
	CHECK(cudaDeviceSynchronize());
	if (telling)
		fprintf(stderr, "address %d %llx\n", count, (unsigned long long)seen[count]);
	count++;
}

/* Writes through all addresses that device memory has. */
__global__ void write_all(uint64_t (*all)[2], int n, uint32_t value)
{
	for (int i = 0; i < n; i++) {
		*(uint32_t *)all[i][0] += value + i;
		*(uint32_t *)(all[i][1] + 992) += value + 2 * i;
	}
}

/* The host may not copy from what it has not asked for. */
__global__ void read_hidden(uint64_t (*all)[2], int n, uint32_t *out)
{
	for (int i = 0; i < n; i++)
		out[i] = *(uint32_t *)(all[i][1] + 992);
}

static void check_all()
{
	uint64_t (*now)[2], told[MODULES_MAX][2], before[MODULES_MAX][2];
	uint32_t *out, hidden[MODULES_MAX];

	CHECK(cudaMalloc(&now, sizeof told));
	CHECK(cudaMalloc(&out, sizeof hidden));
	for (int i = 0; i < count; i++) {
		uint64_t *place = now[i];
		void *parameters[] = {&place};
		CHECK(cudaLaunchKernel((const void *)wheres[i], dim3(1), dim3(1), parameters, 0, 0));
	}
	CHECK(cudaMemcpy(told, now, sizeof told, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(before, kept, sizeof before, cudaMemcpyDeviceToHost));
	write_all<<<1, 1>>>(kept, count, 1);
	/* By the addresses that the modules told just now. */
	read_hidden<<<1, 1>>>(now, count, out);
	CHECK(cudaMemcpy(hidden, out, sizeof hidden, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(now));
	CHECK(cudaFree(out));
	rounds++;
	for (int i = 0; i < count; i++) {
		uint32_t value = 0;
		EXPECT(told[i][0] == seen[i]);
		EXPECT(before[i][0] == told[i][0] && before[i][1] == told[i][1]);
		CHECK(cudaMemcpy(&value, (void *)(uintptr_t)seen[i], 4, cudaMemcpyDeviceToHost));
		/* As often as checked since it was loaded, which is as often for both. */
		EXPECT(value % (1 + i) == 0 && value >= (uint32_t)(1 + i));
		EXPECT(hidden[i] == value / (1 + i) * (1 + 2 * i));
	}
}

/* ---- Libraries: a first use each, and more of other kinds later */

static void *blas, *blas_handle, *lt_handle, *memory;
static int fft_plan;

#define CALL(library, name, ...)                                                                                                 \
	do {                                                                                                                     \
		int (*function)(...) = (int (*)(...))dlsym(library, name);                                                       \
		int status = function ? function(__VA_ARGS__) : -1;                                                              \
		if (status) {                                                                                                    \
			printf("%s: status %d\n", name, status);                                                                 \
			test_failures++;                                                                                         \
		}                                                                                                                \
	} while (0)

static void use_cublas(void *library)
{
	float one = 1, zero = 0, *m = (float *)memory;
	int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);

	blas = library;
	CALL(library, "cublasCreate_v2", &blas_handle);
	*(void **)&sgemm = dlsym(library, "cublasSgemm_v2");
	EXPECT(sgemm && sgemm(blas_handle, 0, 0, N, N, N, &one, m, N, m + N * N, N, &zero, m + 2 * N * N, N) == 0);
}

static void use_cublaslt(void *library)
{
	CALL(library, "cublasLtCreate", &lt_handle);
}

static void use_cufft(void *library)
{
	CALL(library, "cufftPlan1d", &fft_plan, N * N / 2, 0x29, 1);
	CALL(library, "cufftExecC2C", fft_plan, memory, memory, -1);
}

static void use_cusolver(void *library)
{
	static void *handle;
	CALL(library, "cusolverDnCreate", &handle);
}

static void use_cusparse(void *library)
{
	static void *handle;
	CALL(library, "cusparseCreate", &handle);
}

static void use_curand(void *library)
{
	static void *generator;
	CALL(library, "curandCreateGenerator", &generator, 100);
	CALL(library, "curandGenerate", generator, memory, (size_t)N * N);
}

static void use_cudnn(void *library)
{
	static void *handle;
	CALL(library, "cudnnCreate", &handle);
}

static const struct {
	const char *name;
	void (*use)(void *library);
} known[] = {{"libcublas.so.13", use_cublas}, {"libcublasLt.so.13", use_cublaslt}, {"libcufft.so.12", use_cufft}, {"libcusolver.so.12", use_cusolver},
	     {"libcusparse.so.12", use_cusparse}, {"libcurand.so.10", use_curand}, {"libcudnn.so.9", use_cudnn}};

static double now_ms()
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void use_all()
{
	/* The others run in the client, and some of them on a real GPU alone. */
	for (unsigned i = 0; i < (telling ? sizeof known / sizeof *known : 3); i++) {
		void *library = dlopen(known[i].name, RTLD_NOW);
		size_t before = 0, after = 0, total;
		if (!library) {
			if (telling)
				fprintf(stderr, "first use of %s: not here\n", known[i].name);
			continue;
		}
		int failures = test_failures;
		cudaMemGetInfo(&before, &total);
		double begun = now_ms();
		known[i].use(library);
		CHECK(cudaDeviceSynchronize());
		double ms = now_ms() - begun;
		/* Those that run in the client need a real GPU; what they load counts in any case. */
		if (i >= 3)
			test_failures = failures;
		cudaMemGetInfo(&after, &total);
		if (telling)
			fprintf(stderr, "first use of %s: %.1f ms, %.1f MiB\n", known[i].name, ms, ((double)before - (double)after) / (1 << 20));
		load_module();
	}
}

/* What has not been used yet: another kind of work each time, with a module behind it while there is room. */
static void use_more(void *)
{
	static unsigned times;
	float two = 2, *m = (float *)memory;
	double three = 3, *d = (double *)memory;

	check_all();
	if (blas) {
		int (*dscal)(void *, int, const double *, double *, int);
		int (*saxpy)(void *, int, const float *, const float *, int, float *, int);
		int (*sscal)(void *, int, const float *, float *, int);
		*(void **)&dscal = dlsym(blas, "cublasDscal_v2");
		*(void **)&saxpy = dlsym(blas, "cublasSaxpy_v2");
		*(void **)&sscal = dlsym(blas, "cublasSscal_v2");
		switch (times++ % 3) {
		case 0:
			EXPECT(sscal(blas_handle, N, &two, m, 1) == 0);
			break;
		case 1:
			EXPECT(saxpy(blas_handle, N, &two, m, 1, m + N, 1) == 0);
			break;
		default:
			EXPECT(dscal(blas_handle, N, &three, d, 1) == 0);
		}
		CHECK(cudaDeviceSynchronize());
	}
	if (count < MODULES_MAX - 4)
		load_module();
	check_all();
}

int main()
{
	uint32_t first = 0;

	telling = getenv("VARIABLES_TELL") != NULL;
	CHECK(cudaMalloc(&memory, 4 * N * N * sizeof(float)));
	CHECK(cudaMemset(memory, 0, 4 * N * N * sizeof(float)));
	CHECK(cudaMalloc(&kept, MODULES_MAX * sizeof *kept));
	load_module();
	load_module();
	use_all();
	load_module();
	check_all();
	phase_with(use_more, NULL);
	load_module();
	check_all();
	/* The first has been there in every round, and each added one. */
	CHECK(cudaMemcpy(&first, (void *)(uintptr_t)seen[0], 4, cudaMemcpyDeviceToHost));
	EXPECT(first == rounds);
	printf("%s\n", test_failures ? "variables have moved" : "every variable lies where it lay");
	return finish();
}
