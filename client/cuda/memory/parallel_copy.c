/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by several threads; see parallel_copy.h. */
#include "client/cuda/memory/parallel_copy.h"

#include <emmintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"

enum {
	SLICE = 256 << 10,
	HELPERS_MAX = 3,
	/* How often a helper looks for the next copy before it sleeps: some 50 us. */
	LOOKS = 2000,
	LINE = 64,
};

static CKT_LOCK(in_use); /* one caller at a time */
static CKT_LOCK(lock);   /* of all below */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static unsigned helpers;
static bool tried; /* to make them */
static struct {
	uint8_t *dst;
	const uint8_t *src;
	size_t size;
	size_t next; /* the first byte that nobody has taken */
	unsigned active;
} job;
static _Atomic bool wanted; /* bytes of a job are left to be taken; a hint for who looks */

static void forked(void)
{
	pthread_cond_init(&work, NULL);
	pthread_cond_init(&done, NULL);
	helpers = 0;
	tried = false;
}
CKT_IN_CHILD(forked);

/* Past the caches: nobody on this processor reads dst soon. */
static void copy_slice(uint8_t *dst, const uint8_t *src, size_t size)
{
	size_t head = -(uintptr_t)dst % LINE;
	if (size < 4 * LINE) {
		memcpy(dst, src, size);
		return;
	}
	memcpy(dst, src, head);
	dst += head;
	src += head;
	size -= head;
	for (; size >= LINE; size -= LINE, dst += LINE, src += LINE) {
		__m128i a = _mm_loadu_si128((const __m128i *)src),
			b = _mm_loadu_si128((const __m128i *)(src + 16)),
			c = _mm_loadu_si128((const __m128i *)(src + 32)),
			d = _mm_loadu_si128((const __m128i *)(src + 48));
		_mm_stream_si128((__m128i *)dst, a);
		_mm_stream_si128((__m128i *)(dst + 16), b);
		_mm_stream_si128((__m128i *)(dst + 32), c);
		_mm_stream_si128((__m128i *)(dst + 48), d);
	}
	memcpy(dst, src, size);
	/* The stores are seen before whatever tells that they were made. */
	_mm_sfence();
}

/* Takes slices until none is left.  Precondition: locked; unlocks meanwhile. */
static void take_slices(void)
{
	job.active++;
	while (job.next < job.size) {
		size_t at = job.next, left = job.size - at;
		uint8_t *dst = job.dst + at;
		const uint8_t *src = job.src + at;
		job.next = left > SLICE ? at + SLICE : job.size;
		if (job.next == job.size)
			atomic_store(&wanted, false);
		pthread_mutex_unlock(&lock);
		copy_slice(dst, src, left > SLICE ? SLICE : left);
		pthread_mutex_lock(&lock);
	}
	if (!--job.active)
		pthread_cond_signal(&done);
}

static void *help(void *unused)
{
	for (;;) {
		for (int i = 0; i < LOOKS && !atomic_load(&wanted); i++)
			_mm_pause();
		pthread_mutex_lock(&lock);
		while (job.next == job.size)
			pthread_cond_wait(&work, &lock);
		take_slices();
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

/* Precondition: locked. */
static void make_helpers(unsigned processors)
{
	sigset_t most, before;
	pthread_attr_t attributes;
	unsigned count = processors / 4 < HELPERS_MAX ? processors / 4 : HELPERS_MAX;
	tried = true;
	/* A fault is of the program's memory, and its handler may mend it. */
	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	sigdelset(&most, SIGBUS);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_BLOCK, &most, &before);
	for (pthread_t thread; helpers < count; helpers++)
		if (pthread_create(&thread, &attributes, help, NULL)) {
			ckt_debug("large copies have %u threads to help: no more can be made",
				helpers);
			break;
		}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void ckt_parallel_copy(void *dst, const void *src, size_t size, unsigned processors)
{
	if (size < 2 * SLICE || pthread_mutex_trylock(&in_use)) {
		memcpy(dst, src, size);
		return;
	}
	pthread_mutex_lock(&lock);
	if (!tried)
		make_helpers(processors);
	job.dst = dst;
	job.src = src;
	job.size = size;
	job.next = 0;
	atomic_store(&wanted, true);
	if (helpers)
		pthread_cond_broadcast(&work);
	take_slices();
	while (job.active)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&in_use);
}
