/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults on managed memory: the handler of SIGSEGV.  It is installed while managed memory
 * exists, and passes on every fault that it cannot serve.  It runs in the faulting thread, which
 * holds none of our locks: the library reads the program's memory before it takes any lock.
 *
 * If the program accesses memory in order, a fault fetches several chunks: twice as many as the
 * fault before.  A fault where the longest earlier walk began fetches half the length of that walk
 * at once.  So memory that is always accessed as a whole takes two faults, and a fetch of unneeded
 * chunks is halved when it recurs.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "client/cuda/memory/managed_fault.h"
#include "base/log.h"
#include "client/conn/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/managed_region.h"

#define CHUNK CKT_MANAGED_CHUNK
/*
 * Limits of one fault, in chunks.  FETCH_MAX bounds how long the program stops for a fetch.
 * WRITE_MAX bounds how many chunks become DIRTY, because all of those must be sent.
 */
enum { FETCH_MAX = 1024, WRITE_MAX = 64 };

static struct sigaction previous;

/* ---- How many chunks to open */

static void walk_note(struct ckt_managed_walk *walk)
{
	if (walk->length > walk->past_length) {
		walk->past_begin = walk->begin;
		walk->past_length = walk->length;
	}
}

void ckt_managed_walk_end(struct ckt_managed_walk *walk)
{
	walk->past_length = 0;
	walk_note(walk);
	*walk = (struct ckt_managed_walk){
		.past_begin = walk->past_begin, .past_length = walk->past_length};
}

static uint64_t walk_fetch(struct ckt_managed_walk *walk, uint64_t first)
{
	if (walk->window && first == walk->next) {
		walk->window *= 2;
	} else {
		walk_note(walk);
		walk->begin = first;
		walk->length = 0;
		walk->window = first == walk->past_begin && walk->past_length
			? (walk->past_length + 1) / 2
			: 1;
	}
	if (walk->window > FETCH_MAX)
		walk->window = FETCH_MAX;
	return walk->window;
}

static uint64_t walk_write(struct ckt_managed_walk *walk, uint64_t first)
{
	walk->write_window =
		walk->write_window && first == walk->next_write ? walk->write_window * 2 : 1;
	if (walk->write_window > WRITE_MAX)
		walk->write_window = WRITE_MAX;
	return walk->write_window;
}

/* How many chunks from the first on, at most `most`, have the same state. */
static uint64_t run_of(const struct ckt_managed_region *r, uint64_t first, uint64_t most)
{
	uint64_t chunks = r->size / CHUNK, end = first + 1;
	while (end < chunks && end < first + most && r->states[end] == r->states[first])
		end++;
	return end - first;
}

/* ---- Opening.  Precondition: locked. */

/*
 * The process has reached its limit of mappings.  Opening the whole region leaves only one mapping
 * for it.
 */
static CUresult open_all(struct ckt_managed_region *r)
{
	uint64_t chunks = r->size / CHUNK;
	bool sent = false;
	ckt_managed_close_early(r, &sent);
	for (uint64_t i = 0; i < chunks; i++) {
		CUresult result = r->states[i] == CKT_MANAGED_DEVICE ? ckt_managed_fetch(r, i, 1)
								     : CUDA_SUCCESS;
		if (result)
			return result;
		if (r->states[i] == CKT_MANAGED_DEVICE)
			ckt_managed_set_states(r, i, 1, CKT_MANAGED_CLEAN);
	}
	if (mprotect((void *)(uintptr_t)r->base, r->size, PROT_READ | PROT_WRITE))
		return CUDA_ERROR_OPERATING_SYSTEM;
	r->dirty = 0;
	ckt_managed_set_states(r, 0, chunks, CKT_MANAGED_DIRTY);
	return CUDA_SUCCESS;
}

/* Opens chunks that all have the same state and are not open as requested. */
static CUresult open_run(struct ckt_managed_region *r, uint64_t first, uint64_t count, bool write)
{
	if (r->states[first] == CKT_MANAGED_DEVICE) {
		CUresult result = ckt_managed_fetch(r, first, count);
		if (result)
			return result;
	}
	void *memory = (void *)(uintptr_t)(r->base + first * CHUNK);
	if (mprotect(memory, count * CHUNK, write ? PROT_READ | PROT_WRITE : PROT_READ))
		return open_all(r);
	ckt_managed_set_states(r, first, count, write ? CKT_MANAGED_DIRTY : CKT_MANAGED_CLEAN);
	return CUDA_SUCCESS;
}

static bool is_open(const struct ckt_managed_region *r, uint64_t chunk, bool write)
{
	return r->states[chunk] >= CKT_MANAGED_DIRTY ||
		(r->states[chunk] == CKT_MANAGED_CLEAN && !write);
}

CUresult ckt_managed_open(struct ckt_managed_region *r, uint64_t first, uint64_t count, bool write)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t i = first; i < first + count && !result;) {
		uint64_t run = run_of(r, i, first + count - i);
		if (!is_open(r, i, write))
			result = open_run(r, i, run, write);
		i += run;
	}
	return result;
}

static CUresult open_touched(struct ckt_managed_region *r, uint64_t address, bool write, bool early)
{
	struct ckt_managed_walk *walk = &r->walk;
	uint64_t first = (address - r->base) / CHUNK;
	CUresult result = CUDA_SUCCESS;
	if (early && r->states[first] == CKT_MANAGED_DEVICE)
		return ckt_managed_open_early(r, first);
	/* Another thread may have opened the chunk meanwhile. */
	if (r->states[first] == CKT_MANAGED_DEVICE) {
		uint64_t count = run_of(r, first, walk_fetch(walk, first));
		walk->next = first + count;
		walk->length += count;
		result = open_run(r, first, count, false);
	}
	if (!result && !is_open(r, first, write)) {
		uint64_t count = run_of(r, first, walk_write(walk, first));
		walk->next_write = first + count;
		result = open_run(r, first, count, true);
	}
	return result;
}

/* ---- Faults */

/* Returns true if the access can be retried. */
static bool serve_fault(uint64_t address, bool write)
{
	/*
	 * A host function must not call CUDA, but this handler may.  The earlier work of the
	 * function's stream is done.
	 */
	bool in_host_function = ckt_call_forbidden;
	uint64_t saved = ckt_call_context;
	CUresult result = CUDA_SUCCESS;
	ckt_call_forbidden = false;
	pthread_mutex_lock(&ckt_managed_lock);
	struct ckt_managed_region *r = ckt_managed_find(address);
	/* The program may write pinned memory while the GPU works, and a kernel may wait for it. */
	bool early =
		r && r->adopted && !r->asleep && write && !in_host_function && !ckt_managed_idle();
	if (r && !early && !in_host_function &&
		r->states[(address - r->base) / CHUNK] == CKT_MANAGED_DEVICE) {
		ckt_client_context_use(r->context);
		result = ckt_managed_wait(r->context);
		r = ckt_managed_find(address);
	}
	if (r && !result) {
		ckt_client_context_use(r->context);
		result = open_touched(r, address, write, early);
	}
	ckt_client_context_use(saved);
	pthread_mutex_unlock(&ckt_managed_lock);
	ckt_call_forbidden = in_host_function;
	if (result)
		ckt_log_user("cannot fetch managed memory at 0x%llx from the GPU (CUDA "
			     "error %d): the program cannot continue",
			(unsigned long long)address, result);
	return r && !result;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(number, info, context);
	} else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(number);
	} else {
		/*
		 * The instruction runs again and now ends the program, as it would without this
		 * handler.
		 */
		struct sigaction standard = {.sa_handler = SIG_DFL};
		sigaction(SIGSEGV, &standard, NULL);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
#ifdef __x86_64__
	bool write = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
	/*
	 * The fault may be a read or a write.  Treat it as a read first; a write then faults again.
	 */
	bool write = false;
	pthread_mutex_lock(&ckt_managed_lock);
	struct ckt_managed_region *r = ckt_managed_find((uint64_t)(uintptr_t)info->si_addr);
	if (r)
		write = r->states[((uint64_t)(uintptr_t)info->si_addr - r->base) / CHUNK] ==
			CKT_MANAGED_CLEAN;
	pthread_mutex_unlock(&ckt_managed_lock);
#endif
	if (info->si_code <= 0 || !serve_fault((uint64_t)(uintptr_t)info->si_addr, write))
		pass_on(number, info, context);
	errno = saved_errno;
}

void ckt_managed_watch(void)
{
	struct sigaction now,
		ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
		return;
	previous = now;
	/* Keep the program's choice of an alternate signal stack. */
	ours.sa_flags |= now.sa_flags & SA_ONSTACK;
	sigaction(SIGSEGV, &ours, NULL);
}

void ckt_managed_unwatch(void)
{
	struct sigaction now;
	/* If another handler was installed later, it may call ours.  So ours stays. */
	if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
		now.sa_sigaction == on_fault)
		sigaction(SIGSEGV, &previous, NULL);
}
