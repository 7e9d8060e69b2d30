/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What single CUDA calls cost: one line "name value unit" for each row, the median of several rounds.
 *
 *	bench [--small]		--small: few repetitions and small copies, for the soft GPU
 *	bench --launches	launches alone, once a line comes from standard input
 *	bench --idle		nothing, until standard input ends
 *
 * The program is the same natively and through Cricket; benchmarks/run puts both beside each other.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#define CHECK(call)                                                                                                              \
	do {                                                                                                                     \
		cudaError_t check_error = (call);                                                                                \
		if (check_error != cudaSuccess) {                                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(check_error));             \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static int rounds = 7;
static int repeat = 1;	/* divides the repetitions */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

static void report(const char *name, double value, const char *unit)
{
	printf("%s %.4f %s\n", name, value, unit);
	fflush(stdout);
}

/* body() once for warming up, then the median over the rounds of its mean over n calls. */
template <typename F> static void row(const char *name, int n, F body)
{
	std::vector<double> times;

	n = std::max(1, n / repeat);
	body();
	CHECK(cudaDeviceSynchronize());
	for (int r = 0; r < rounds; r++) {
		double start = now_us();

		for (int i = 0; i < n; i++)
			body();
		times.push_back((now_us() - start) / n);
		CHECK(cudaDeviceSynchronize());
	}
	report(name, median(times), "us");
}

__global__ void empty(void)
{
}

/* Long enough that whoever waits for it may have gone to sleep. */
__global__ void takes_1ms(void)
{
	unsigned long long begun, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - begun < 1000000);
}

__global__ void with_arguments(int *p, float a, long long b, int n)
{
	if (n < 0)
		*p = (int)(a + b);
}

static void launches(cudaStream_t stream, int *d)
{
	std::vector<double> issue, drained;
	int n = 20000 / repeat;

	for (int r = 0; r < rounds; r++) {
		double start = now_us(), issued;

		for (int i = 0; i < n; i++)
			with_arguments<<<1, 32, 0, stream>>>(d, 1.0f, 2, i);
		issued = now_us();
		CHECK(cudaStreamSynchronize(stream));
		issue.push_back((issued - start) / n);
		drained.push_back((now_us() - start) / n);
	}
	report("launch_issue", median(issue), "us");
	report("launch_drained", median(drained), "us");
	/* A burst that no queue holds back: what the call itself costs. */
	issue.clear();
	for (int r = 0; r < 20; r++) {
		double start = now_us();

		for (int i = 0; i < 500; i++)
			with_arguments<<<1, 32, 0, stream>>>(d, 1.0f, 2, i);
		issue.push_back((now_us() - start) / 500);
		CHECK(cudaStreamSynchronize(stream));
	}
	report("launch_issue_burst", median(issue), "us");
}

/* As many kernels, each behind the one before it. */
static cudaGraph_t chain(int nodes)
{
	cudaStream_t stream;
	cudaGraph_t graph;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < nodes; i++)
		empty<<<1, 1, 0, stream>>>();
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaStreamDestroy(stream));
	return graph;
}

static void graphs(cudaStream_t stream)
{
	cudaGraph_t graph = chain(100), longer = chain(1000);
	cudaGraphExec_t exec, longer_exec;
	std::vector<double> times;

	for (int r = 0; r < 3 * rounds; r++) {
		double start = now_us();

		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		times.push_back(now_us() - start);
		CHECK(cudaGraphExecDestroy(exec));
	}
	report("graph_100_instantiate", median(times), "us");
	/* NVIDIA's driver makes the nodes at the capture, Cricket's worker at the instantiation. */
	times.clear();
	for (int r = 0; r < 3 * rounds; r++) {
		double start = now_us();
		cudaGraph_t fresh = chain(100);

		CHECK(cudaGraphInstantiate(&exec, fresh, 0));
		times.push_back(now_us() - start);
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(fresh));
	}
	report("graph_100_capture_instantiate", median(times), "us");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphInstantiate(&longer_exec, longer, 0));
	row("graph_100_launch_sync", 500, [&] { CHECK(cudaGraphLaunch(exec, stream)); CHECK(cudaStreamSynchronize(stream)); });
	row("graph_1000_launch_sync", 100, [&] { CHECK(cudaGraphLaunch(longer_exec, stream)); CHECK(cudaStreamSynchronize(stream)); });
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(longer_exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(longer));
}

__device__ static unsigned long long gpu_ns(void)
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

__global__ void spin(unsigned ns)
{
	unsigned long long start = gpu_ns();

	while (gpu_ns() - start < ns)
		;
}

/* What an inference server's request is: ten short kernels, and a wait for the last. */
static void requests(cudaStream_t stream)
{
	int count = std::max(20, 2000 / repeat);
	std::vector<double> times;

	for (int i = 0; i < count + 20; i++) {
		double start = now_us();

		for (int k = 0; k < 10; k++)
			spin<<<1, 1, 0, stream>>>(20000);
		CHECK(cudaStreamSynchronize(stream));
		if (i >= 20)
			times.push_back((now_us() - start) / 1e3);
	}
	std::sort(times.begin(), times.end());
	report("request_p50", times[times.size() / 2], "ms");
	report("request_p99", times[times.size() * 99 / 100], "ms");
}

static void bandwidth(const char *name, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	std::vector<double> rates;

	CHECK(cudaMemcpy(to, from, bytes, kind));
	for (int r = 0; r < rounds; r++) {
		double start = now_us();

		CHECK(cudaMemcpy(to, from, bytes, kind));
		rates.push_back(bytes / (now_us() - start) / 1e3);
	}
	report(name, median(rates), "GB/s");
}

/* For benchmarks/crowds, which starts many at one time.  True: that was all. */
static bool one_of_many(int argc, char **argv, cudaStream_t stream, int *d)
{
	char line[16];

	if (argc < 2 || (strcmp(argv[1], "--idle") && strcmp(argv[1], "--launches")))
		return false;
	puts("ready");
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) && !strcmp(argv[1], "--launches"))
		launches(stream, d);
	return true;
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)256 << 20, free_bytes, total;
	double start = now_us();
	void *p, *big, *pinned, *pageable;
	int device, *d, word = 0;
	cudaStream_t stream;
	cudaEvent_t event;

	if (argc > 1 && strcmp(argv[1], "--small") == 0) {
		bytes = (size_t)16 << 20;
		rounds = 3;
		repeat = 20;
	}
	CHECK(cudaFree(NULL));
	report("first_call", (now_us() - start) / 1e3, "ms");
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaMalloc(&d, sizeof(*d)));
	empty<<<1, 1>>>();
	with_arguments<<<1, 32, 0, stream>>>(d, 1.0f, 2, 0);
	CHECK(cudaDeviceSynchronize());
	if (one_of_many(argc, argv, stream, d))
		return 0;

	launches(stream, d);
	row("launch_sync", 5000, [] { empty<<<1, 1>>>(); CHECK(cudaDeviceSynchronize()); });
	row("launch_1ms_sync", 200, [] { takes_1ms<<<1, 1>>>(); CHECK(cudaDeviceSynchronize()); });
	row("idle_stream_sync", 20000, [&] { CHECK(cudaStreamSynchronize(stream)); });
	row("get_device", 2000000, [&] { CHECK(cudaGetDevice(&device)); });
	row("get_last_error", 2000000, [&] { CHECK(cudaGetLastError()); });
	{
		std::vector<double> take, give;
		int n = std::max(1, 200 / repeat);
		std::vector<void *> held(n);

		for (int r = 0; r < rounds; r++) {
			double t0 = now_us(), t1;

			for (int i = 0; i < n; i++)
				CHECK(cudaMalloc(&held[i], 1 << 20));
			t1 = now_us();
			for (int i = 0; i < n; i++)
				CHECK(cudaFree(held[i]));
			take.push_back((t1 - t0) / n);
			give.push_back((now_us() - t1) / n);
		}
		report("malloc_1MiB", median(take), "us");
		report("free_1MiB", median(give), "us");
	}
	row("event_record", 20000, [&] { CHECK(cudaEventRecord(event, stream)); });
	row("event_record_sync", 5000, [&] { CHECK(cudaEventRecord(event, stream)); CHECK(cudaEventSynchronize(event)); });
	row("event_query", 20000, [&] { CHECK(cudaEventQuery(event)); });
	row("launch_event_sync", 5000, [&] {
		empty<<<1, 1, 0, stream>>>();
		CHECK(cudaEventRecord(event, stream));
		CHECK(cudaEventSynchronize(event));
	});
	row("occupancy", 20000, [&] { CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&device, with_arguments, 128, 0)); });
	row("mem_info", 2000, [&] { CHECK(cudaMemGetInfo(&free_bytes, &total)); });
	graphs(stream);
	requests(stream);
	row("memset_async_4B", 5000, [&] { CHECK(cudaMemsetAsync(d, 0, 4, stream)); });
	row("copy_4B_HtoD", 5000, [&] { CHECK(cudaMemcpy(d, &word, 4, cudaMemcpyHostToDevice)); });
	row("copy_4B_DtoH", 5000, [&] { CHECK(cudaMemcpy(&word, d, 4, cudaMemcpyDeviceToHost)); });
	p = malloc(64 << 10);
	memset(p, 1, 64 << 10);
	CHECK(cudaMalloc(&big, bytes));
	row("copy_64KiB_HtoD", 1000, [&] { CHECK(cudaMemcpy(big, p, 64 << 10, cudaMemcpyHostToDevice)); });
	row("copy_64KiB_DtoH", 1000, [&] { CHECK(cudaMemcpy(p, big, 64 << 10, cudaMemcpyDeviceToHost)); });
	pageable = malloc(bytes);
	memset(pageable, 2, bytes);
	row("copy_1MiB_HtoD", 500, [&] { CHECK(cudaMemcpy(big, pageable, 1 << 20, cudaMemcpyHostToDevice)); });
	row("copy_1MiB_DtoH", 500, [&] { CHECK(cudaMemcpy(pageable, big, 1 << 20, cudaMemcpyDeviceToHost)); });
	CHECK(cudaMallocHost(&pinned, bytes));
	memset(pinned, 3, bytes);
	bandwidth("pageable_HtoD", big, pageable, bytes, cudaMemcpyHostToDevice);
	bandwidth("pageable_DtoH", pageable, big, bytes, cudaMemcpyDeviceToHost);
	bandwidth("pinned_HtoD", big, pinned, bytes, cudaMemcpyHostToDevice);
	bandwidth("pinned_DtoH", pinned, big, bytes, cudaMemcpyDeviceToHost);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(big));
	return 0;
}
