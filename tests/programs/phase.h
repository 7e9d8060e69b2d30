/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every program of tests/programs shares: error checks, checksums, a size factor and the
 * marked mid point.
 *
 * A program sets up, passes phase() once, verifies.  It prints only what is the same in every run
 * on one kind of device, so that two modes (native, remote, checkpointed ...) are compared byte by
 * byte; it also checks its own results against the CPU and exits 1 when they differ.  phase() does
 * nothing unless CKT_TEST_PHASE_FILE=PATH is set: then the first one creates PATH.ready and waits
 * until PATH.go exists, the second uses PATH.ready2 and PATH.go2, and so on.  The runner takes
 * checkpoints in between.
 *
 * The first argument of most programs is a size factor: 1 (default) suits a CPU interpreter, 100 a
 * real GPU.
 */
#pragma once

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>

static int test_failures;

#define CHECK(call)                                                          \
	do {                                                                 \
		cudaError_t check_error = (call);                            \
		if (check_error != cudaSuccess) {                            \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
				cudaGetErrorName(check_error));              \
			exit(1);                                             \
		}                                                            \
	} while (0)

/* Says what failed, goes on, and makes finish() return 1. */
#define EXPECT(condition)                                                              \
	do {                                                                           \
		if (!(condition)) {                                                    \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			test_failures++;                                               \
		}                                                                      \
	} while (0)

#define EXPECT_ERROR(call, expected)                                                         \
	do {                                                                                 \
		cudaError_t expect_error = (call);                                           \
		if (expect_error != (expected)) {                                            \
			printf("%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call,   \
				cudaGetErrorName(expect_error), cudaGetErrorName(expected)); \
			test_failures++;                                                     \
		}                                                                            \
	} while (0)

/* FNV-1a: short, and every bit of the data reaches it. */
static inline uint64_t checksum(const void *data, size_t size)
{
	const unsigned char *p = (const unsigned char *)data;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

static inline void print_checksum(const char *name, const void *data, size_t size)
{
	printf("%s: %016llx\n", name, (unsigned long long)checksum(data, size));
}

/* xorshift32: the same numbers everywhere. */
static inline uint32_t random_u32(uint32_t *state)
{
	uint32_t x = *state ? *state : 0x9e3779b9u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/* In [0, 1), with 24 bits: exact as a float. */
static inline float random_float(uint32_t *state)
{
	return (float)(random_u32(state) >> 8) * (1.0f / 16777216.0f);
}

static inline unsigned size_factor(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	return n > 0 ? (unsigned)n : 1;
}

/*
 * The mid point of a program that works on while it is waited: `work` (with `opaque`) is called
 * again and again until the runner lets the program go, and once where nobody waits.  So calls are
 * under way whenever the session is stopped or moved; what the program prints must not depend on
 * how often that was.
 */
static inline void phase_with(void (*work)(void *opaque), void *opaque)
{
	static int count;
	const char *path = getenv("CKT_TEST_PHASE_FILE");
	char ready[4096], go[4096], suffix[16] = "";
	int fd;

	fflush(stdout);
	count++;
	if (work)
		work(opaque);
	if (!path || !*path)
		return;
	if (count > 1)
		snprintf(suffix, sizeof(suffix), "%d", count);
	snprintf(ready, sizeof(ready), "%s.ready%s", path, suffix);
	snprintf(go, sizeof(go), "%s.go%s", path, suffix);
	fd = open(ready, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(ready);
		exit(1);
	}
	close(fd);
	while (access(go, F_OK) != 0) {
		if (work)
			work(opaque);
		usleep(5000);
	}
}

static inline void phase(void)
{
	phase_with(NULL, NULL);
}

/* The last statement of main(): return finish(). */
static inline int finish(void)
{
	printf("%s\n", test_failures ? "FAILED" : "ok");
	fflush(stdout);
	return test_failures ? 1 : 0;
}
