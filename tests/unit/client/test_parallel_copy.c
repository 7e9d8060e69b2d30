/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/memory/parallel_copy.c: every byte once, whatever the sizes and the places. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cuda/memory/parallel_copy.h"
#include "tests/unit/suite.h"

enum { MIB = 1 << 20, MOST = 5 * MIB, MANY = 64 };

static uint8_t *memory(size_t size)
{
	uint8_t *bytes = malloc(size);
	uint32_t x = 1;
	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return bytes;
}

static unsigned threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2;
}

static void test_bytes(void)
{
	static const size_t sizes[] = {0, 1, 255, 256, 257, 4096, MIB / 2 - 1, MIB / 2, MIB / 2 + 1,
		MIB + 63, 3 * MIB + 7, MOST};
	uint8_t *from = memory(MOST + 200), *to = malloc(MOST + 200);
	unsigned before = threads();
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t shift = 0; shift < 130; shift += 13) {
			size_t size = sizes[i];
			memset(to, 0x5a, size + 200);
			ckt_parallel_copy(to + shift, from + (130 - shift), size, MANY);
			IS(memcmp(to + shift, from + (130 - shift), size), 0);
			YES((!shift || to[shift - 1] == 0x5a) && to[shift + size] == 0x5a);
		}
	}
	YES(threads() >= before + 3);
	free(from);
	free(to);
}

static void *copy_again(void *opaque)
{
	uint8_t *from = memory(MIB), *to = malloc(MIB);
	for (int i = 0; i < 200; i++) {
		from[i] = (uint8_t)i;
		ckt_parallel_copy(to, from, MIB, MANY);
		*(unsigned *)opaque += memcmp(from, to, MIB) != 0;
	}
	free(from);
	free(to);
	return NULL;
}

static void test_callers(void)
{
	pthread_t callers[3];
	unsigned wrong[3] = {0};
	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&callers[i], NULL, copy_again, &wrong[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(callers[i], NULL);
		IS(wrong[i], 0);
	}
}

static uint8_t *guarded;

static void open_page(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	uint8_t *page = (uint8_t *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
	if (page < guarded || page >= guarded + MIB || mprotect(page, 4096, PROT_READ | PROT_WRITE))
		_exit(1);
}

/* A helper's fault is the program's to handle. */
static void test_guarded(void)
{
	struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO}, before;
	uint8_t *from = memory(MIB);
	guarded = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(sigaction(SIGSEGV, &action, &before), 0);
	ckt_parallel_copy(guarded, from, MIB, MANY);
	IS(memcmp(guarded, from, MIB), 0);
	IS(sigaction(SIGSEGV, &before, NULL), 0);
	munmap(guarded, MIB);
	free(from);
}

UNIT_SUITE(parallel_copy, {"bytes", test_bytes}, {"callers", test_callers},
	{"guarded memory", test_guarded})
