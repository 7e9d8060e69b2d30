/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of several ranks share: each rank is a process, so a session of its own, on the
 * GPU of its number.  The first one starts the others, gives them the unique id, prints, and says
 * what became of them.
 */
#pragma once

#include "gpus.h"

#include <nccl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

extern char **environ;

enum { RANKS = 2 };

#define NCCL(call)                                                                       \
	do {                                                                             \
		ncclResult_t nccl_error = (call);                                        \
		if (nccl_error != ncclSuccess) {                                         \
			printf("%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call,        \
				ncclGetErrorString(nccl_error), ncclGetLastError(NULL)); \
			fflush(stdout);                                                  \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

#define NCCL_ERROR(call, expected)                                                         \
	do {                                                                               \
		ncclResult_t nccl_error = (call);                                          \
		if (nccl_error != (expected)) {                                            \
			printf("%s:%d: %s: %d instead of %d\n", __FILE__, __LINE__, #call, \
				(int)nccl_error, (int)(expected));                         \
			test_failures++;                                                   \
		}                                                                          \
	} while (0)

static int rank;
static ncclUniqueId id;
static pid_t others[RANKS]; /* 0: not the program's any more */

/* Of every program with NCCL, before its first call. */
static inline void prepare(void)
{
	/* NVLink's multicast is a matter of the whole machine. */
	setenv("NCCL_NVLS_ENABLE", "0", 1);
}

static inline void start_other(char *program, int number)
{
	char text[2 * sizeof(id) + 1], name[16], word[] = "--rank";
	char *const words[] = {program, word, name, text, NULL};
	const char *address = getenv("CKT_TEST_OTHER_ADDRESS");

	/* A test may put the sessions of the others at another server. */
	if (address && *address)
		setenv("REMOTE_GPU_ADDRESS", address, 1);
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);
	snprintf(name, sizeof(name), "%d", number);
	if (posix_spawn(&others[number], "/proc/self/exe", NULL, NULL, words, environ)) {
		printf("rank %d cannot be started\n", number);
		exit(1);
	}
}

/* Says who this is, and sets its GPU; the first rank has started the others then. */
static inline void begin_ranks(int argc, char **argv)
{
	prepare();
	if (argc == 4 && strcmp(argv[1], "--rank") == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rank = atoi(argv[2]);
		for (size_t i = 0; i < sizeof(id); i++) {
			unsigned byte = 0;
			sscanf(argv[3] + 2 * i, "%2x", &byte);
			id.internal[i] = (char)byte;
		}
	} else {
		need_two_gpus();
		NCCL(ncclGetUniqueId(&id));
		fflush(stdout);
		for (int r = 1; r < RANKS; r++)
			start_other(argv[0], r);
	}
	CHECK(cudaSetDevice(rank));
}

/* Only the first rank prints. */
static inline void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (rank == 0)
		vprintf(format, arguments);
	va_end(arguments);
}

/* The mid point of all ranks: the first one says so, and all go on together. */
static inline void phase_ranks(void)
{
	const char *path = getenv("CKT_TEST_PHASE_FILE");
	char go[4096];

	if (rank == 0)
		phase();
	if (rank == 0 || !path || !*path)
		return;
	snprintf(go, sizeof(go), "%s.go", path);
	while (access(go, F_OK) != 0)
		usleep(5000);
}

/* The last statement of main(). */
static inline int finish_ranks(void)
{
	if (rank) {
		fflush(stdout);
		return test_failures ? 1 : 0;
	}
	for (int r = 1; r < RANKS; r++) {
		int status;

		if (others[r] && (waitpid(others[r], &status, 0) != others[r] || status)) {
			printf("rank %d ended with status %#x\n", r, status);
			test_failures++;
		}
	}
	return finish();
}
