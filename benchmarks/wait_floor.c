/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker and the network cannot do in less: steps of a wait, and small copies, in the driver
 * (CUDA driver API), and a round trip between two threads over this host's TCP, both of which poll.
 *
 *	wait_floor [LIBCUDA]		without a GPU, the round trip alone
 *
 * A line a step: its name, the median and the tenth percentile in us.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REPEAT = 2000, PAGEABLE = 64 << 10, MESSAGE = 64 };

static void *library;

static void *symbol(const char *name)
{
	void *address = dlsym(library, name);
	if (!address) {
		fprintf(stderr, "wait_floor: the driver has no %s\n", name);
		exit(77);
	}
	return address;
}

#define STRING_OF(name) #name
#define STRING(name) STRING_OF(name)
/* Looked up once, so that no step has that. */
#define DRIVER(name)                                                        \
	({                                                                  \
		static __typeof__(&name) function;                          \
		if (!function)                                              \
			function = (__typeof__(&name))symbol(STRING(name)); \
		function;                                                   \
	})

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + 1e-3 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(const char *name, double *times)
{
	qsort(times, REPEAT, sizeof *times, ascending);
	printf("%-56s %8.2f %8.2f\n", name, times[REPEAT / 2], times[REPEAT / 10]);
	fflush(stdout);
}

/* The time of `body` alone. */
#define STEP(name, before, body, after)              \
	do {                                         \
		static double times[REPEAT];         \
		for (int i = 0; i < REPEAT; i++) {   \
			before;                      \
			double start = now_us();     \
			body;                        \
			times[i] = now_us() - start; \
			after;                       \
		}                                    \
		report(name, times);                 \
	} while (0)

/* ---- TCP */

static void *echo(void *opaque)
{
	int fd = *(int *)opaque;
	char message[MESSAGE];
	for (;;) {
		ssize_t n = recv(fd, message, sizeof message, MSG_DONTWAIT);
		if (n > 0)
			n = send(fd, message, (size_t)n, 0);
		else if (n == 0)
			return NULL;
	}
}

static void tcp(void)
{
	static double times[REPEAT];
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	char message[MESSAGE] = "";
	pthread_t thread;
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
		getsockname(listener, (struct sockaddr *)&address, &size) ||
		connect(client, (struct sockaddr *)&address, sizeof address)) {
		perror("wait_floor: 127.0.0.1");
		exit(1);
	}
	int server = accept(listener, NULL, NULL);
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (server < 0 || pthread_create(&thread, NULL, echo, &server))
		exit(1);
	for (int i = 0; i < REPEAT; i++) {
		double start = now_us();
		if (send(client, message, sizeof message, 0) < 0)
			exit(1);
		while (recv(client, message, sizeof message, MSG_DONTWAIT) < 0)
			;
		times[i] = now_us() - start;
	}
	report("TCP round trip of 64 bytes, both ends poll", times);
	shutdown(client, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(client);
	close(server);
	close(listener);
}

/* ---- The driver */

static CUfunction empty;

static void launch(void)
{
	DRIVER(cuLaunchKernel)(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void poll_stream(void)
{
	__typeof__(&cuStreamQuery) query = DRIVER(cuStreamQuery);
	while (query(NULL) == CUDA_ERROR_NOT_READY)
		;
}

static void poll_event(CUevent event)
{
	__typeof__(&cuEventQuery) query = DRIVER(cuEventQuery);
	while (query(event) == CUDA_ERROR_NOT_READY)
		;
}

static void synchronize(void)
{
	DRIVER(cuCtxSynchronize)();
}

static void waits(CUevent event)
{
	STEP("launch, context wait", , (launch(), synchronize()), );
	STEP("launch, poll the stream", , (launch(), poll_stream()), );
	STEP("launch, record, poll the event", ,
		(launch(), DRIVER(cuEventRecord)(event, NULL), poll_event(event)), );
	STEP("  the launch", , launch(), synchronize());
	STEP("  the context wait behind it", launch(), synchronize(), );
	STEP("  a stream query, busy", launch(), DRIVER(cuStreamQuery)(NULL), synchronize());
	STEP("  an event record, busy", launch(), DRIVER(cuEventRecord)(event, NULL),
		synchronize());
	STEP("  a stream wait, finished", , DRIVER(cuStreamSynchronize)(NULL), );
	STEP("  an event wait, finished", , DRIVER(cuEventSynchronize)(event), );
	STEP("event record and wait, idle", ,
		(DRIVER(cuEventRecord)(event, NULL), DRIVER(cuEventSynchronize)(event)), );
}

static void copies(CUdeviceptr device, void *pinned)
{
	static char pageable[PAGEABLE];
	static const size_t sizes[] = {4, PAGEABLE};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		size_t n = sizes[k];
		printf("%zu bytes\n", n);
		STEP("  DtoH, pageable", , DRIVER(cuMemcpyDtoH)(pageable, device, n), );
		STEP("  DtoH, pinned, poll the stream", ,
			(DRIVER(cuMemcpyDtoHAsync)(pinned, device, n, NULL), poll_stream()), );
		STEP("  HtoD, pageable", , DRIVER(cuMemcpyHtoD)(device, pageable, n), );
		STEP("  HtoD, pinned, poll the stream", ,
			(DRIVER(cuMemcpyHtoDAsync)(device, pinned, n, NULL), poll_stream()), );
		STEP("  a processor's copy of it", , memcpy(pinned, pageable, n), );
	}
}

int main(int argc, char **argv)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry empty()\n{\n\tret;\n}\n";
	CUcontext context;
	CUmodule module;
	CUevent event;
	CUdeviceptr device;
	void *pinned;
	size_t free_bytes, total;
	tcp();
	library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
	if (!library || DRIVER(cuInit)(0)) {
		puts("no GPU");
		return 0;
	}
	if (DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) || DRIVER(cuCtxSetCurrent)(context) ||
		DRIVER(cuModuleLoadData)(&module, ptx) ||
		DRIVER(cuModuleGetFunction)(&empty, module, "empty") ||
		DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) ||
		DRIVER(cuMemAlloc)(&device, PAGEABLE) ||
		DRIVER(cuMemAllocHost)(&pinned, PAGEABLE)) {
		fputs("wait_floor: the driver has no context, module or memory for it\n", stderr);
		return 1;
	}
	for (int i = 0; i < 100; i++)
		launch();
	synchronize();
	waits(event);
	copies(device, pinned);
	STEP("free memory", , DRIVER(cuMemGetInfo)(&free_bytes, &total), );
	return 0;
}
