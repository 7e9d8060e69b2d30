/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that no PTX defines: vprintf, malloc, free and __assertfail, and the functions of the
 * device runtime for grid-wide barriers and the conditions of graphs.
 */
#include <stdio.h>
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/builtin.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

int ckt_ptx_builtin_find(const char *name)
{
	static const struct {
		const char *name;
		int builtin;
	} table[] = {{"vprintf", BUILTIN_VPRINTF}, {"malloc", BUILTIN_MALLOC},
		{"free", BUILTIN_FREE}, {"__assertfail", BUILTIN_ASSERTFAIL},
		{"cudaCGGetIntrinsicHandle", BUILTIN_CG_HANDLE},
		{"cudaCGSynchronize", BUILTIN_CG_SYNC},
		{"cudaGraphSetConditional", BUILTIN_SET_CONDITION}};
	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		if (!strcmp(name, table[k].name))
			return table[k].builtin;
	return BUILTIN_NONE;
}

static uint64_t argument(
	struct ptx_warp *w, const struct ptx_call *call, unsigned lane, unsigned index)
{
	uint64_t v = 0;
	uint32_t size = call->arg_sizes[index] < 8 ? call->arg_sizes[index] : 8;
	memcpy(&v, ckt_ptx_local(w, lane, w->frame->local_base + call->args[index]), size);
	return v;
}

static void give(struct ptx_warp *w, const struct ptx_call *call, unsigned lane, uint64_t v)
{
	if (call->n_rets)
		memcpy(ckt_ptx_local(w, lane, w->frame->local_base + call->rets[0]), &v,
			call->ret_sizes[0] < 8 ? call->ret_sizes[0] : 8);
}

/*
 * Copies a string from device memory into text, at most room - 1 characters; false after a fault.
 */
static bool read_string(
	struct ptx_warp *w, unsigned lane, uint64_t address, char *text, size_t room)
{
	size_t n = 0;
	for (; n + 1 < room; n++) {
		const uint8_t *c =
			ckt_ptx_memory(w, lane, SP_GENERIC, address + n, 1, CKT_SOFT_PAGE_READ);
		if (!c)
			return false;
		if (!*c)
			break;
		text[n] = (char)*c;
	}
	text[n] = 0;
	return true;
}

/*
 * ---- printf.  Arguments are adjacent, each at a multiple of its size: 4 bytes, or 8 for long,
 * pointers and doubles.
 */

struct printing {
	struct ptx_warp *w;
	unsigned lane;
	uint64_t args, offset;
	char out[8192]; /* of the order of the GPU's own limit for one call */
	size_t n;
	int count;
	bool failed;
};

static uint64_t next_argument(struct printing *p, unsigned size)
{
	uint64_t v = 0;
	p->offset = (p->offset + size - 1) & ~(uint64_t)(size - 1);
	const uint8_t *at = ckt_ptx_memory(
		p->w, p->lane, SP_GENERIC, p->args + p->offset, size, CKT_SOFT_PAGE_READ);
	p->offset += size;
	p->count++;
	if (at)
		memcpy(&v, at, size);
	else
		p->failed = true;
	return v;
}

static void put(struct printing *p, const char *text, size_t size)
{
	size_t room = sizeof p->out - p->n;
	if (size > room)
		size = room;
	memcpy(p->out + p->n, text, size);
	p->n += size;
}

/* Converts one specification, from after its % to its letter; returns the rest of the format. */
static const char *convert(struct printing *p, const char *f)
{
	char spec[48] = "%", text[2048], string[1024];
	size_t n = 1;
	int longs = 0, shorts = 0, written = 0;
	for (; *f && strchr("-+ #0123456789.*", *f) && n < 30; f++) {
		if (*f == '*')
			n += (size_t)snprintf(
				spec + n, sizeof spec - n, "%d", (int)next_argument(p, 4));
		else
			spec[n++] = *f;
	}
	for (; *f && strchr("lhzjtqL", *f); f++) {
		longs += *f == 'h' ? 0 : 1;
		shorts += *f == 'h';
	}
	char letter = *f;
	if (!letter)
		return f;
	if (strchr("diouxX", letter)) {
		uint64_t v = next_argument(p, longs ? 8 : 4);
		if (!longs)
			v = strchr("di", letter) ? (uint64_t)(int64_t)(shorts == 2 ? (int8_t)v
								   : shorts        ? (int16_t)v
										   : (int32_t)v)
						 : (shorts == 2             ? (uint8_t)v
								   : shorts ? (uint16_t)v
									    : (uint32_t)v);
		snprintf(spec + n, sizeof spec - n, "ll%c", letter);
		written = snprintf(text, sizeof text, spec, (long long)v);
	} else if (strchr("fFeEgGaA", letter)) {
		uint64_t bits = next_argument(p, 8);
		double v;
		memcpy(&v, &bits, sizeof v);
		snprintf(spec + n, sizeof spec - n, "%c", letter);
		written = snprintf(text, sizeof text, spec, v);
	} else if (letter == 'c') {
		snprintf(spec + n, sizeof spec - n, "c");
		written = snprintf(text, sizeof text, spec, (int)next_argument(p, 4));
	} else if (letter == 'p') {
		snprintf(spec + n, sizeof spec - n, "p");
		written = snprintf(text, sizeof text, spec, (void *)(uintptr_t)next_argument(p, 8));
	} else if (letter == 's') {
		uint64_t address = next_argument(p, 8);
		if (p->failed || !address)
			strcpy(string, "(null)");
		else if (!read_string(p->w, p->lane, address, string, sizeof string))
			p->failed = true;
		snprintf(spec + n, sizeof spec - n, "s");
		written = p->failed ? 0 : snprintf(text, sizeof text, spec, string);
	} else {
		put(p, spec, n);
		put(p, f, 1);
	}
	if (written > 0)
		put(p, text, (size_t)written < sizeof text ? (size_t)written : sizeof text - 1);
	return f + 1;
}

static bool print(struct ptx_warp *w, const struct ptx_call *call, unsigned lane)
{
	char format[2048];
	struct printing p;
	p.w = w;
	p.lane = lane;
	p.args = argument(w, call, lane, 1);
	p.offset = p.n = 0;
	p.count = 0;
	p.failed = false;
	if (!read_string(w, lane, argument(w, call, lane, 0), format, sizeof format))
		return false;
	for (const char *f = format; *f && !p.failed;) {
		const char *percent = strchr(f, '%');
		size_t plain = percent ? (size_t)(percent - f) : strlen(f);
		put(&p, f, plain);
		f += plain;
		if (!*f)
			break;
		if (f[1] == '%') {
			put(&p, "%", 1);
			f += 2;
		} else {
			f = convert(&p, f + 1);
		}
	}
	if (p.failed)
		return false;
	const struct ckt_ptx_device *device = w->block->grid->launch->device;
	if (device->output && p.n)
		device->output(device->data, 1, p.out, p.n);
	give(w, call, lane, (uint64_t)p.count);
	return true;
}

static int assert_fail(struct ptx_warp *w, const struct ptx_call *call, uint32_t m)
{
	const struct ckt_ptx_device *device = w->block->grid->launch->device;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		char message[512], file[512], function[512], text[2048];
		if (!read_string(w, l, argument(w, call, l, 0), message, sizeof message) ||
			!read_string(w, l, argument(w, call, l, 1), file, sizeof file) ||
			!read_string(w, l, argument(w, call, l, 3), function, sizeof function))
			return RUN_FAULT;
		int n = snprintf(text, sizeof text,
			"%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
			file, (unsigned)argument(w, call, l, 2), function, w->block->ctaid[0],
			w->block->ctaid[1], w->block->ctaid[2], w->tid[0][l], w->tid[1][l],
			w->tid[2][l], message);
		if (device->output)
			device->output(device->data, 2, text,
				(size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
	}
	return ckt_ptx_fault(
		w, (unsigned)__builtin_ctz(m), CKT_PTX_FAULT_ASSERT, "assertion failed");
}

/*
 * Waits for every thread of the grid.  Each lane notes the phase in which it arrived, and the last
 * lane of the grid ends the phase.  Until then the call repeats, and other blocks run in between.
 */
static int grid_sync(struct ptx_warp *w, const struct ptx_call *call, uint32_t m)
{
	struct ptx_grid *grid = w->block->grid;
	uint64_t all = (uint64_t)w->block->n_threads * grid->n_blocks * grid->cluster_size;
	uint32_t fresh = m & ~w->grid_arrived, phase = atomic_load(&grid->sync_phase);
	bool through = true;
	if (!grid->workspace) {
		for (uint32_t rest = m; rest; rest &= rest - 1)
			give(w, call, (unsigned)__builtin_ctz(rest), 1); /* cudaErrorInvalidValue */
		return RUN_NEXT;
	}
	for (uint32_t rest = fresh; rest; rest &= rest - 1)
		w->grid_phase[__builtin_ctz(rest)] = phase;
	w->grid_arrived |= fresh;
	uint64_t n = (uint64_t)__builtin_popcount(fresh);
	if (n && atomic_fetch_add(&grid->sync_arrived, n) + n == all) {
		atomic_store(&grid->sync_arrived, 0);
		atomic_fetch_add(&grid->sync_phase, 1);
	}
	phase = atomic_load(&grid->sync_phase);
	for (uint32_t rest = m; rest; rest &= rest - 1)
		through &= w->grid_phase[__builtin_ctz(rest)] != phase;
	if (!through) {
		w->pc--;
		return RUN_YIELD;
	}
	w->grid_arrived &= ~m;
	for (uint32_t rest = m; rest; rest &= rest - 1)
		give(w, call, (unsigned)__builtin_ctz(rest), 0);
	return RUN_NEXT;
}

int ckt_ptx_builtin_run(struct ptx_warp *w, const struct ptx_call *call, int builtin, uint32_t m)
{
	static const unsigned n_args[] = {[BUILTIN_NONE] = 0,
		[BUILTIN_VPRINTF] = 2,
		[BUILTIN_MALLOC] = 1,
		[BUILTIN_FREE] = 1,
		[BUILTIN_ASSERTFAIL] = 4,
		[BUILTIN_CG_HANDLE] = 1,
		[BUILTIN_CG_SYNC] = 2,
		[BUILTIN_SET_CONDITION] = 2};
	const struct ckt_ptx_device *device = w->block->grid->launch->device;
	unsigned first = (unsigned)__builtin_ctz(m);
	if (builtin == BUILTIN_NONE || call->n_args < n_args[builtin])
		return ckt_ptx_fault(
			w, first, CKT_PTX_FAULT_INVALID_PC, "call to an undefined function");
	if (builtin == BUILTIN_ASSERTFAIL)
		return assert_fail(w, call, m);
	if (builtin == BUILTIN_CG_SYNC)
		return grid_sync(w, call, m);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		if (builtin == BUILTIN_CG_HANDLE) {
			/*
			 * Only the grid (1) of a cooperative launch has a handle; CUDA no longer
			 * has the one for several GPUs (2).
			 */
			give(w, call, l,
				argument(w, call, l, 0) == 1
					? (uint64_t)(uintptr_t)w->block->grid->workspace
					: 0);
		} else if (builtin == BUILTIN_SET_CONDITION) {
			uint64_t handle = argument(w, call, l, 0);
			if (!device->set_condition ||
				!device->set_condition(
					device->data, handle, (uint32_t)argument(w, call, l, 1)))
				return ckt_ptx_fault(w, l, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
					"this handle is not a condition of a graph");
		} else if (builtin == BUILTIN_VPRINTF) {
			if (!print(w, call, l))
				return RUN_FAULT;
		} else if (builtin == BUILTIN_MALLOC) {
			uint64_t size = argument(w, call, l, 0);
			give(w, call, l,
				(uint64_t)(uintptr_t)(device->heap_alloc && size
						? device->heap_alloc(device->data, size)
						: NULL));
		} else {
			uint64_t address = argument(w, call, l, 0);
			if (address && device->heap_free)
				device->heap_free(device->data, (void *)(uintptr_t)address);
		}
	}
	return RUN_NEXT;
}
