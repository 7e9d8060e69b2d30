/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/lane_copy.c: large copies on lanes: what travels where, odd sizes, several
 * threads, and lanes that break in the middle.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "client/cuda/memory/lane_copy.h"
#include "relay.h"

enum { MIB = 1 << 20, LONG = 9 * MIB + 12 };

static uint32_t *numbers(size_t size, uint32_t first)
{
	uint32_t *memory = malloc(size);
	for (size_t i = 0; i < size / 4; i++)
		memory[i] = first + (uint32_t)i * 3;
	return memory;
}

/* Copies until lanes carry one: a thread opens them behind the first. */
static void open_lanes(CUdeviceptr device, const void *from)
{
	for (int i = 0; i < 2000; i++) {
		relay_mark();
		IS(cuMemcpyHtoD(device, from, MIB), CUDA_SUCCESS);
		if (relay_count("lane_htod"))
			return;
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	CU_FAIL("no lane was opened");
}

static void test_ways(void)
{
	CUdeviceptr device = memory_of(LONG, 0);
	uint32_t *from = numbers(LONG, 7), *to = malloc(LONG);
	IS(cuMemcpyHtoD(device, from, MIB - 4), CUDA_SUCCESS);
	IS(relay_lanes, 0);
	open_lanes(device, from);
	IS(relay_lanes, 2);
	uint64_t before = relay_lane_bytes;
	relay_mark();
	IS(cuMemcpyHtoD(device, from, LONG), CUDA_SUCCESS);
	/* All bytes go by lanes, with a head of 16 for each piece. */
	YES(relay_lane_bytes - before >= LONG && relay_lane_bytes - before < LONG + 1000);
	IS(relay_count("lane_htod"), 10);
	IS(relay_count("memcpy_htod"), 0);
	memset(to, 0, LONG);
	relay_mark();
	IS(cuMemcpyDtoH(to, device, LONG), CUDA_SUCCESS);
	IS(relay_count("lane_dtoh"), 10);
	IS(relay_count("memcpy_dtoh"), 0);
	IS(memcmp(from, to, LONG), 0);
	/* A source that changes after the call is copied as it was. */
	IS(cuMemcpyHtoDAsync(device, from, LONG, NULL), CUDA_SUCCESS);
	memset(from, 0, LONG);
	IS(cuMemcpyDtoHAsync(to, device, LONG, NULL), CUDA_SUCCESS);
	IS(to[0], 7);
	IS(to[LONG / 4 - 1], 7 + (LONG / 4 - 1) * 3);
	/* Below the least size, the bytes are in the message. */
	relay_mark();
	IS(cuMemcpyHtoD(device, from, MIB - 4), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("memcpy_htod"), 1);
	LOCAL(cuMemcpyHtoD(device + 16, from, LONG), BAD);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
	free(to);
}

struct copier {
	uint32_t first;
	unsigned rounds, wrong;
};

static void *copy_again(void *opaque)
{
	struct copier *copier = opaque;
	CUstream stream;
	MUST(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	CUdeviceptr device = memory_of(LONG, 0);
	MUST(cuCtxSynchronize(), CUDA_SUCCESS); /* the fill was on another stream */
	for (uint32_t round = 0; round < copier->rounds; round++) {
		uint32_t *from = numbers(LONG, copier->first + round), *to = calloc(1, LONG);
		copier->wrong += cuMemcpyHtoDAsync(device, from, LONG, stream) != CUDA_SUCCESS;
		copier->wrong += cuMemcpyDtoHAsync(to, device, LONG, stream) != CUDA_SUCCESS;
		copier->wrong += cuStreamSynchronize(stream) != CUDA_SUCCESS;
		copier->wrong += memcmp(from, to, LONG) != 0;
		free(from);
		free(to);
	}
	IS(cuMemFree(device), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	return NULL;
}

static void copy_all(struct copier copiers[3], pthread_t threads[3], unsigned rounds)
{
	for (uint32_t i = 0; i < 3; i++) {
		copiers[i] = (struct copier){.first = i * 1000, .rounds = rounds};
		MUST(pthread_create(&threads[i], NULL, copy_again, &copiers[i]), 0);
	}
}

static void check_all(const struct copier copiers[3], const pthread_t threads[3])
{
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		IS(copiers[i].wrong, 0);
	}
}

static void test_threads(void)
{
	struct copier copiers[3];
	pthread_t threads[3];
	copy_all(copiers, threads, 3);
	check_all(copiers, threads);
}

/* Lanes that die in the middle of a piece, of either way: no byte is wrong, and others come. */
static void test_lanes_die(void)
{
	CUdeviceptr device = memory_of(LONG, 0);
	uint32_t *from = numbers(LONG, 70), *to = malloc(LONG);
	static const uint64_t after[] = {1, 16, 17, 100000, MIB + 20, 4 * MIB, LONG - 1};
	for (size_t i = 0; i < COUNT(after); i++) {
		relay_break_lanes_after(UINT64_MAX);
		open_lanes(device, from);
		from[i] = (uint32_t)i;
		uint64_t lanes = relay_lanes;
		relay_break_lanes_after(after[i]);
		IS(cuMemcpyHtoD(device, from, LONG), CUDA_SUCCESS);
		/* What the lanes lost went with messages. */
		relay_settle();
		YES(relay_count("memcpy_htod") > 0);
		memset(to, 0, LONG);
		relay_break_lanes_after(UINT64_MAX);
		IS(cuMemcpyDtoH(to, device, LONG), CUDA_SUCCESS);
		IS(memcmp(from, to, LONG), 0);
		open_lanes(device, from);
		YES(relay_lanes > lanes);
		/* The acknowledgement of the first piece is too much. */
		relay_break_lanes_after(i);
		memset(to, 0, LONG);
		IS(cuMemcpyDtoH(to, device, LONG), CUDA_SUCCESS);
		IS(memcmp(from, to, LONG), 0);
	}
	relay_break_lanes_after(UINT64_MAX);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
	free(to);
}

static const uint32_t *host_from, *host_to;
static _Atomic unsigned host_wrong, host_calls;

static void compare(void *unused)
{
	(void)unused;
	host_wrong += memcmp(host_from, host_to, LONG) != 0;
	host_calls++;
}

/* A copy into pinned memory goes on in the background; whoever is told of its end has its bytes. */
static void background(uint64_t break_after)
{
	CUdeviceptr device = memory_of(LONG, 0);
	uint32_t *from = numbers(LONG, 3), *to, *other = malloc(LONG), word;
	CUstream stream;
	CUevent event;
	IS(cuMemHostAlloc((void **)&to, LONG, 0), CUDA_SUCCESS);
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	host_from = from;
	host_to = to;
	for (unsigned round = 0; round < 10; round++) {
		relay_break_lanes_after(UINT64_MAX);
		open_lanes(device, from);
		from[round] = from[LONG / 4 - 1 - round] = round;
		IS(cuMemcpyHtoDAsync(device, from, LONG, stream), CUDA_SUCCESS);
		memset(to, 0, LONG);
		relay_mark();
		relay_break_lanes_after(break_after);
		IS(cuMemcpyDtoHAsync(to, device, LONG, stream), CUDA_SUCCESS);
		switch (round % 5) {
		case 0:
			IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
			break;
		case 1:
			IS(cuEventRecord(event, stream), CUDA_SUCCESS);
			while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
				;
			break;
		case 2:
			IS(cuMemcpyDtoHAsync(&word, device, 4, stream), CUDA_SUCCESS);
			break;
		case 3:
			IS(cuLaunchHostFunc(stream, compare, NULL), CUDA_SUCCESS);
			IS(cuCtxSynchronize(), CUDA_SUCCESS);
			break;
		default:
			/* From there to elsewhere, in the order of the stream. */
			IS(cuMemcpyHtoDAsync(device, to, LONG, stream), CUDA_SUCCESS);
			IS(cuMemcpyDtoHAsync(other, device, LONG, stream), CUDA_SUCCESS);
			IS(memcmp(from, other, LONG), 0);
		}
		IS(memcmp(from, to, LONG), 0);
		/*
		 * The memory is the program's again: a reply whose bytes came before writes nothing.
		 */
		memset(to, 0xee, LONG);
		if (break_after != UINT64_MAX)
			nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		relay_settle();
		IS(to[0] == 0xeeeeeeee && !memcmp(to, to + 1, LONG - 4), true);
		/* Lanes that broke may be missing for the copies behind it. */
		YES(break_after != UINT64_MAX || relay_count("memcpy_dtoh") == (round % 5 == 2));
		YES(relay_count("lane_dtoh") >= 10);
	}
	relay_break_lanes_after(UINT64_MAX);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuMemFreeHost(to), CUDA_SUCCESS);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
	free(other);
}

static void test_background(void)
{
	host_wrong = host_calls = 0;
	background(UINT64_MAX);
	/* After an acknowledgement or two of the program's side. */
	background(20);
	IS(host_wrong, 0);
	IS(host_calls, 4);
}

/* The session's connection breaks again and again while all copy. */
static void test_connection_breaks(void)
{
	struct copier copiers[3];
	pthread_t threads[3];
	copy_all(copiers, threads, 6);
	for (int i = 0; i < 5; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
		relay_break(false);
	}
	check_all(copiers, threads);
}

/* A handler that opens the page that the program touched, as a collector's write barrier does. */
static uint8_t *guarded;

static void open_page(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	uint8_t *page = (uint8_t *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
	if (page < guarded || page >= guarded + 2 * MIB ||
		mprotect(page, 4096, PROT_READ | PROT_WRITE))
		abort();
}

/* System calls fail on such memory, where the program's own accesses do not. */
static void test_guarded_memory(void)
{
	CUdeviceptr device = memory_of(2 * MIB, 5);
	struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO}, before;
	uint32_t *from = numbers(2 * MIB, 1);
	guarded = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(guarded == MAP_FAILED, false);
	IS(sigaction(SIGSEGV, &action, &before), 0);
	open_lanes(device, from);
	memcpy(guarded, from, 2 * MIB);
	IS(mprotect(guarded + MIB / 2, MIB, PROT_NONE), 0);
	IS(cuMemcpyHtoD(device, guarded, 2 * MIB), CUDA_SUCCESS);
	memset(guarded, 0, 2 * MIB);
	open_lanes(device, from);
	IS(mprotect(guarded + MIB / 2, MIB, PROT_NONE), 0);
	IS(cuMemcpyDtoH(guarded, device, 2 * MIB), CUDA_SUCCESS);
	IS(memcmp(guarded, from, 2 * MIB), 0);
	IS(sigaction(SIGSEGV, &before, NULL), 0);
	munmap(guarded, 2 * MIB);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
}

UNIT_SUITE(lane_copy, {"ways", test_ways}, {"threads", test_threads}, {"lanes die", test_lanes_die},
	{"background", test_background}, {"the connection breaks", test_connection_breaks},
	{"guarded memory", test_guarded_memory})
