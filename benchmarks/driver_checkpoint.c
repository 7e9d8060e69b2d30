/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the driver's own checkpoint of a process is (cuCheckpointProcess*, CUDA driver API): a
 * child fills device memory, the parent checkpoints and restores it.
 *
 *	driver_checkpoint GIB [LIBCUDA]
 *
 * One line of JSON a step, as tests/gpu/checkpoint_speed prints: the state goes to the host's
 * memory, not to a file.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *library;

static void *symbol(const char *name)
{
	void *address = dlsym(library, name);
	if (!address) {
		fprintf(stderr, "driver_checkpoint: the driver has no %s\n", name);
		exit(77);
	}
	return address;
}

#define CALL(name, ...)                                                                           \
	do {                                                                                      \
		CUresult result = ((__typeof__(&name))symbol(#name))(__VA_ARGS__);                \
		if (result) {                                                                     \
			fprintf(stderr, "driver_checkpoint: %s: CUDA error %d\n", #name, result); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/*
 * The process that is saved: random bytes, copied over its memory, until its standard input ends.
 */
static int child(size_t bytes, int ready, int end)
{
	enum { PIECE = 64 << 20 };
	CUcontext context;
	CUdevice device;
	CUdeviceptr memory;
	char *piece = malloc(PIECE), byte = 0;
	for (size_t i = 0; i < PIECE; i += 4)
		memcpy(piece + i, &(int){rand()}, 4);
	CALL(cuInit, 0);
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxSetCurrent, context);
	CALL(cuMemAlloc_v2, &memory, bytes);
	for (size_t at = 0; at < bytes; at += PIECE)
		CALL(cuMemcpyHtoD_v2, memory + at, piece, PIECE);
	return write(ready, &byte, 1) == 1 && read(end, &byte, 1) == 0 ? 0 : 1;
}

static void say(size_t gib, const char *what, double seconds)
{
	printf("{\"mib\": %zu, \"what\": \"%s\", \"seconds\": %.6f, \"bytes\": %zu, \"stopped_us\": 0, \"changed\": 0}\n",
		gib << 10, what, seconds, gib << 30);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t gib = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	int ready[2], end[2];
	char byte;
	library = dlopen(argc > 2 ? argv[2] : "libcuda.so.1", RTLD_NOW);
	if (!gib || !library) {
		fprintf(stderr, "%s\n", gib ? dlerror() : "usage: driver_checkpoint GIB [LIBCUDA]");
		return gib ? 77 : 2;
	}
	if (pipe(ready) || pipe(end))
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		close(end[1]);
		close(ready[0]);
		_exit(child(gib << 30, ready[1], end[0]));
	}
	close(end[0]);
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		return 1;
	CALL(cuInit, 0);
	double begin = now();
	CALL(cuCheckpointProcessLock, pid, NULL);
	CALL(cuCheckpointProcessCheckpoint, pid, NULL);
	say(gib, "driver's checkpoint", now() - begin);
	begin = now();
	CALL(cuCheckpointProcessRestore, pid, NULL);
	CALL(cuCheckpointProcessUnlock, pid, NULL);
	say(gib, "driver's restore", now() - begin);
	close(end[1]);
	int status;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
