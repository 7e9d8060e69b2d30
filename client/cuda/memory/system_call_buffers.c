/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls on managed memory, and on pinned memory that the device has a copy of.  The
 * preloaded library calls these functions before such a system call
 * (client/preload/system_call_buffers.h).
 *
 * The system call uses the region's second mapping, which stays open.  So a launch during a
 * blocking system call does not make its pages inaccessible.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "client/cuda/memory/system_call_buffers.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed_fault.h"
#include "client/cuda/memory/managed_region.h"
#include "client/preload/system_call_buffers.h"

#pragma weak cricket_buffers

#define CHUNK CKT_MANAGED_CHUNK

/*
 * A bit for each chunk of the address space that is in a region, in pages of bits for 1 GiB each.
 * A page is allocated when it is first needed, and is never freed.  It is read without a lock,
 * because every system call of the program looks here.  This library's own system calls do too,
 * some of them with its locks held.
 */
enum {
	PAGE_SHIFT = 30,
	ADDRESS_BITS = 48,
	PAGES = 1 << (ADDRESS_BITS - PAGE_SHIFT),
	WORD_BITS = 64
};
enum { PAGE_WORDS = (1 << PAGE_SHIFT) / (64 << 10) / WORD_BITS };

static _Atomic uint64_t *_Atomic pages[PAGES];

static bool is_marked(uint64_t address)
{
	uint64_t chunk = address % ((uint64_t)1 << PAGE_SHIFT) / CHUNK;
	const _Atomic uint64_t *page = pages[address >> PAGE_SHIFT];
	return page && page[chunk / WORD_BITS] >> chunk % WORD_BITS & 1;
}

/* Two threads may make the same page at one time: the first one's stays, with its marks. */
static void make_page(_Atomic uint64_t *_Atomic *page)
{
	_Atomic uint64_t *none = NULL, *made = calloc(PAGE_WORDS, sizeof *made);
	if (made && !atomic_compare_exchange_strong(page, &none, made))
		free((void *)made);
}

/* If no memory is left for the page, the chunk is not marked, and system calls on it fail. */
static void mark(uint64_t address, bool on)
{
	uint64_t chunk = address % ((uint64_t)1 << PAGE_SHIFT) / CHUNK;
	_Atomic uint64_t *_Atomic *page = &pages[(address >> PAGE_SHIFT) % PAGES];
	if (!*page && on)
		make_page(page);
	if (!*page)
		return;
	uint64_t bit = (uint64_t)1 << chunk % WORD_BITS;
	if (on)
		(*page)[chunk / WORD_BITS] |= bit;
	else
		(*page)[chunk / WORD_BITS] &= ~bit;
}

static bool holds(const void *memory, size_t size)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, limit = (uint64_t)1 << ADDRESS_BITS;
	if (!size || address >= limit || size > limit - address)
		return false;
	for (uint64_t at = address; at < address + size;) {
		/* Skip the address ranges that have no page of bits. */
		if (!pages[at >> PAGE_SHIFT]) {
			at = ((at >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
			continue;
		}
		if (is_marked(at))
			return true;
		at = (at / CHUNK + 1) * CHUNK;
	}
	return false;
}

/* ---- Opening.  A host function may do this: the program itself calls no CUDA here. */

struct entered {
	bool forbidden;
	uint64_t context;
	int saved_errno;
};

static struct entered enter(void)
{
	struct entered e = {
		.forbidden = ckt_call_forbidden, .context = ckt_call_context, .saved_errno = errno};
	ckt_call_forbidden = false;
	pthread_mutex_lock(&ckt_managed_lock);
	return e;
}

static void leave(const struct entered *e)
{
	ckt_client_context_use(e->context);
	pthread_mutex_unlock(&ckt_managed_lock);
	ckt_call_forbidden = e->forbidden;
	errno = e->saved_errno;
}

/*
 * The chunks that hold [address, end), where address is in the region; *ret_end: end, or the end of
 * the region if that comes first.
 */
static void chunks_of(const struct ckt_managed_region *r, uint64_t address, uint64_t end,
	uint64_t *ret_first, uint64_t *ret_count, uint64_t *ret_end)
{
	*ret_end = end < r->base + r->size ? end : r->base + r->size;
	*ret_first = (address - r->base) / CHUNK;
	*ret_count = (*ret_end - 1 - r->base) / CHUNK + 1 - *ret_first;
}

static bool device_has_any(const struct ckt_managed_region *r, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		if (r->states[i] == CKT_MANAGED_DEVICE)
			return true;
	return false;
}

/*
 * Opens the part of the bytes that is in the region of *address.  Then *address is the end of that
 * part, or the next chunk if there is no region.
 */
static CUresult open_part(uint64_t *address, uint64_t end, bool write, bool wait)
{
	uint64_t first, count, upto;
	CUresult result = CUDA_SUCCESS;
	struct ckt_managed_region *r = ckt_managed_find(*address);
	if (r && !r->asleep && wait) {
		chunks_of(r, *address, end, &first, &count, &upto);
		if (device_has_any(r, first, count)) {
			ckt_client_context_use(r->context);
			result = ckt_managed_wait(r->context);
			r = ckt_managed_find(*address);
		}
	}
	if (!r || r->asleep || result) {
		*address = (*address / CHUNK + 1) * CHUNK;
		return result;
	}
	chunks_of(r, *address, end, &first, &count, &upto);
	ckt_client_context_use(r->context);
	*address = upto;
	return ckt_managed_open(r, first, count, write);
}

static void *open_buffer(void *memory, size_t size, bool write)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, end = address + size;
	CUresult result = CUDA_SUCCESS;
	if (!holds(memory, size))
		return memory;
	struct entered e = enter();
	/* If the fetch fails, the chunk stays closed and the system call fails. */
	for (uint64_t at = address; at < end && !result;)
		result = open_part(&at, end, write, !e.forbidden);
	const struct ckt_managed_region *r = result ? NULL : ckt_managed_find(address);
	if (r && !r->asleep && size <= r->size - (address - r->base))
		memory = r->alias + (address - r->base);
	leave(&e);
	return memory;
}

/* ---- After the system call */

/* The GPU got the chunk during the system call: sends only the bytes that the system call wrote. */
static void send_late(struct ckt_managed_region *r, uint64_t from, uint64_t to)
{
	ckt_client_context_use(r->context);
	if (!ckt_managed_send(r, from - r->base, to - r->base))
		CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = r->stream);
}

static void written(void *memory, size_t size)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, end = address + size;
	if (!holds(memory, size))
		return;
	struct entered e = enter();
	for (uint64_t at = address, next; at < end; at = next) {
		struct ckt_managed_region *r = ckt_managed_find(at);
		next = (at / CHUNK + 1) * CHUNK;
		if (!r || r->asleep)
			continue;
		uint64_t chunk = (at - r->base) / CHUNK;
		if (r->states[chunk] == CKT_MANAGED_DEVICE)
			send_late(r, at, next < end ? next : end);
		else
			ckt_managed_open(r, chunk, 1, true);
	}
	leave(&e);
}

/* ---- Called by managed.c.  Precondition: locked, except from ckt_managed_wake. */

void ckt_buffers_enter(uint64_t base, uint64_t size)
{
	static const struct ckt_buffers ours = {
		.holds = holds, .open = open_buffer, .written = written};
	for (uint64_t at = base; at < base + size; at += CHUNK)
		mark(at, true);
	/* Without the preloaded library, nothing wraps system calls. */
	if (&cricket_buffers)
		cricket_buffers = &ours;
}

void ckt_buffers_leave(uint64_t base, uint64_t size)
{
	for (uint64_t at = base; at < base + size; at += CHUNK)
		mark(at, false);
}
