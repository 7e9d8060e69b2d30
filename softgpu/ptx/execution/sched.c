/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the lanes of a warp that run next.  A warp has at most 32 groups; the lanes of a group
 * have the same frame and program counter.
 *
 * The group in the deepest frame runs first, and in that frame the one with the lowest program
 * counter, so that diverged lanes meet again where the code joins.  A group that waits for another
 * one can loop forever at a low program counter.  So after PTX_FAIR_INSNS instructions with several
 * ready groups, the group that has not run for longest gets a turn, whatever its program counter.
 *
 * Only the thread that runs its block touches a warp.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum {
	WARP_INSNS = 4096,     /* a warp's slice while other warps of its block wait */
	BLOCK_INSNS = 1 << 18, /* a block's slice */
	/*
	 * volatile reads and atomics that end a slice: the warp is probably waiting for another one
	 */
	POLLS = 8,
};

int ckt_ptx_fault(
	struct ptx_warp *w, unsigned lane, enum ckt_ptx_fault fault, const char *format, ...)
{
	struct ptx_grid *grid = w->block->grid;
	char why[160];
	va_list ap;
	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	pthread_mutex_lock(&grid->fault_lock);
	if (grid->fault == CKT_PTX_FAULT_NONE) {
		const struct ckt_ptx_function *f = w->frame ? w->frame->function : grid->entry;
		uint32_t line = w->pc && w->pc <= f->n_code ? f->code[w->pc - 1].line : 0;
		grid->fault = fault;
		snprintf(grid->message, sizeof grid->message,
			"%s: block (%u,%u,%u), thread (%u,%u,%u): %s (%s, PTX line %u)",
			grid->entry->info.name, w->block->ctaid[0], w->block->ctaid[1],
			w->block->ctaid[2], w->tid[0][lane], w->tid[1][lane], w->tid[2][lane], why,
			f->info.name, line);
	}
	pthread_mutex_unlock(&grid->fault_lock);
	atomic_store(&grid->stop, true);
	return RUN_FAULT;
}

/* ---- Frames */

void ckt_ptx_warp_select(struct ptx_warp *w, struct ptx_frame *frame)
{
	w->frame = frame;
	w->bank[0] = frame->regs;
	w->bank[1] = (uint8_t *)frame->pool;
}

struct ptx_frame *ckt_ptx_frame_enter(struct ptx_warp *w, const struct ckt_ptx_function *function,
	struct ptx_frame *parent, uint32_t mask)
{
	struct ptx_frame **place = &w->spare, *frame;
	while (*place && (*place)->capacity < function->reg_bytes)
		place = &(*place)->parent;
	frame = *place;
	if (frame) {
		*place = frame->parent;
	} else {
		uint32_t capacity = function->reg_bytes < 4096 ? 4096 : function->reg_bytes;
		size_t head = (sizeof *frame + 63) & ~(size_t)63;
		frame = aligned_alloc(64, head + ((capacity + 63) & ~63u));
		if (!frame)
			return NULL;
		frame->regs = (uint8_t *)frame + head;
		frame->capacity = capacity;
		frame->all_next = w->all_frames;
		w->all_frames = frame;
	}
	frame->function = function;
	frame->parent = parent;
	frame->call = NULL;
	frame->pool = w->block->grid->prepared->pools[function->index];
	frame->return_pc = 0;
	frame->depth = parent ? parent->depth + 1 : 0;
	frame->lanes = mask;
	frame->local_base =
		parent ? parent->local_base + parent->function->frame_bytes + parent->extra : 0;
	frame->extra = 0;
	/*
	 * Uninitialised registers read as zero, so that a faulty program always behaves the same
	 * way.
	 */
	memset(frame->regs, 0, function->reg_bytes);
	return frame;
}

/* Removes lanes that return or exit from their frame; the last ones free the frame. */
void ckt_ptx_frame_leave(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask)
{
	frame->lanes &= ~mask;
	if (!frame->lanes && frame->parent) {
		frame->parent = w->spare;
		w->spare = frame;
	}
}

/* ---- Groups */

void ckt_ptx_group_store(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask, uint32_t pc)
{
	w->groups[w->n_groups++] =
		(struct ptx_group){.frame = frame, .mask = mask, .pc = pc, .age = w->clock};
}

static void merge_groups(struct ptx_warp *w)
{
	for (unsigned a = 0; a < w->n_groups; a++) {
		struct ptx_group *g = &w->groups[a];
		for (unsigned b = a + 1; b < w->n_groups;) {
			struct ptx_group *h = &w->groups[b];
			if (g->frame == h->frame && g->pc == h->pc && g->state == GROUP_READY &&
				h->state == GROUP_READY) {
				g->mask |= h->mask;
				if ((int32_t)(h->age - g->age) < 0)
					g->age = h->age;
				*h = w->groups[--w->n_groups];
			} else {
				b++;
			}
		}
	}
}

/* Removes the next group from the list and makes it the running one; false if no group is ready. */
static bool pick_group(struct ptx_warp *w, bool oldest, uint32_t *ret_stop)
{
	int best = -1;
	if (w->n_groups > 1)
		merge_groups(w);
	for (unsigned k = 0; k < w->n_groups; k++) {
		const struct ptx_group *g = &w->groups[k], *h = best < 0 ? NULL : &w->groups[best];
		if (g->state != GROUP_READY)
			continue;
		if (!h ||
			(oldest ? (int32_t)(g->age - h->age) < 0
				: g->frame->depth > h->frame->depth ||
						(g->frame->depth == h->frame->depth &&
							g->pc < h->pc)))
			best = (int)k;
	}
	if (best < 0)
		return false;
	struct ptx_group g = w->groups[best];
	w->groups[best] = w->groups[--w->n_groups];
	w->mask = g.mask;
	w->pc = g.pc;
	ckt_ptx_warp_select(w, g.frame);
	/* The group meets the nearest other ready group of its frame at that group's pc. */
	*ret_stop = UINT32_MAX;
	for (unsigned k = 0; k < w->n_groups; k++)
		if (w->groups[k].frame == g.frame && w->groups[k].state == GROUP_READY &&
			w->groups[k].pc > g.pc && w->groups[k].pc < *ret_stop)
			*ret_stop = w->groups[k].pc;
	w->clock++;
	return true;
}

/* Runs the chosen group until it meets another, splits, or has used its budget. */
static enum ptx_run run_group(struct ptx_warp *w, uint32_t stop, unsigned *budget)
{
	ptx_runner *const *runners = w->block->runners;
	int r = RUN_YIELD;
	const struct ptx_insn *code = w->frame->function->code;
	if (runners && runners[w->frame->function->index]) {
		r = runners[w->frame->function->index](w, code, stop, budget);
		if (r == RUN_YIELD || r == RUN_JUMP)
			ckt_ptx_group_store(w, w->frame, w->mask, w->pc);
		if (r >= 0)
			return (enum ptx_run)r;
		r = RUN_YIELD;
	}
	unsigned left = *budget;
	while (left) {
		uint32_t pc = w->pc, m = w->mask;
		if (pc >= stop) {
			r = RUN_JUMP;
			break;
		}
		const struct ptx_insn *i = &code[pc];
		w->pc = pc + 1;
		left--;
		if (i->guard != PTX_OPERAND_NONE) {
			uint32_t guard = *(const uint32_t *)(w->bank[0] + i->guard);
			m &= i->guard_negated ? ~guard : guard;
			if (!m) {
				if (__builtin_expect(w->traced & w->mask, 0))
					ckt_ptx_trace_step(
						w, w->frame, w->frame->function, pc, false);
				continue;
			}
		}
		uint32_t traced = w->traced & w->mask;
		const struct ptx_frame *frame = w->frame;
		r = i->fn(w, i, m);
		if (__builtin_expect(traced != 0, 0))
			ckt_ptx_trace_step(w, frame, frame->function, pc, traced & m);
		if (__builtin_expect(r > RUN_JUMP, 0))
			break;
		r = RUN_YIELD;
	}
	*budget = left;
	if (r == RUN_YIELD || r == RUN_JUMP)
		ckt_ptx_group_store(w, w->frame, w->mask, w->pc);
	return (enum ptx_run)r;
}

enum ptx_slice ckt_ptx_warp_run(struct ptx_warp *w, unsigned budget)
{
	w->polls = 0;
	if (!w->fair_left)
		w->fair_left = PTX_FAIR_INSNS;
	while (budget) {
		uint32_t stop;
		if (!w->live)
			return SLICE_DONE;
		if (!pick_group(w, w->oldest_next, &stop))
			return SLICE_BLOCKED;
		w->oldest_next = false;
		unsigned slice = budget, before;
		if (w->n_groups && slice > w->fair_left)
			slice = w->fair_left;
		before = slice;
		enum ptx_run r = run_group(w, stop, &slice);
		unsigned used = before - slice;
		budget -= used;
		w->block->insns += used;
		if (r == RUN_FAULT)
			return SLICE_FAULT;
		if (w->n_groups > 1) {
			w->fair_left = w->fair_left > used ? w->fair_left - used : 0;
			if (!w->fair_left || (r == RUN_YIELD && slice)) {
				w->oldest_next = true;
				w->fair_left = PTX_FAIR_INSNS;
			}
		} else {
			w->fair_left = PTX_FAIR_INSNS;
		}
		if (r == RUN_YIELD && slice && w->n_groups <= 1)
			return SLICE_WAITING;
		if (w->polls > POLLS && w->n_groups <= 1)
			return SLICE_WAITING;
		if (w->polls > POLLS * 8)
			return SLICE_WAITING;
	}
	return SLICE_RAN;
}

/* ---- Barriers of a block */

static void release(struct ptx_block *block, unsigned id)
{
	struct ptx_barrier *bar = &block->barriers[id];
	for (uint32_t n = 0; n < block->n_warps; n++) {
		struct ptx_warp *w = &block->warps[n];
		w->arrived[id] = 0;
		for (unsigned k = 0; k < w->n_groups; k++) {
			struct ptx_group *g = &w->groups[k];
			if (g->state != GROUP_BARRIER || g->barrier != id)
				continue;
			const struct ptx_insn *i = &g->frame->function->code[g->pc - 1];
			g->state = GROUP_READY;
			if (i->x == 2) {
				uint32_t *d = (uint32_t *)(g->frame->regs + i->d);
				for (uint32_t rest = g->mask; rest; rest &= rest - 1)
					d[__builtin_ctz(rest)] = bar->red_count;
			} else if (i->x > 2) {
				uint32_t *d = (uint32_t *)(g->frame->regs + i->d);
				bool yes = i->x == 3 ? bar->red_count == bar->red_lanes
						     : bar->red_count != 0;
				*d = yes ? *d | g->mask : *d & ~g->mask;
			}
		}
	}
	*bar = (struct ptx_barrier){0};
}

/*
 * Completes every barrier that has enough threads: the requested number, or all that have not
 * exited.
 */
void ckt_ptx_barriers_check(struct ptx_block *block)
{
	for (unsigned id = 0; id < PTX_MAX_BARRIERS; id++) {
		struct ptx_barrier *bar = &block->barriers[id];
		uint32_t come = 0;
		bool all = true;
		if (!bar->arrived)
			continue;
		for (uint32_t n = 0; n < block->n_warps; n++) {
			const struct ptx_warp *w = &block->warps[n];
			uint32_t there = w->arrived[id];
			bool whole = (w->live & ~there) == 0;
			all &= whole;
			/*
			 * Barriers count warps: a warp whose live threads have all arrived counts
			 * as 32 threads.
			 */
			if (there)
				come += whole ? PTX_LANES : (uint32_t)__builtin_popcount(there);
		}
		if (bar->expected ? come >= bar->expected : all)
			release(block, id);
	}
}

/* Precondition: no group contains the lanes any more. */
void ckt_ptx_lanes_exit(struct ptx_warp *w, uint32_t mask)
{
	w->live &= ~mask;
	for (unsigned k = 0; k < w->n_groups; k++)
		if (w->groups[k].state == GROUP_WARP || w->groups[k].state == GROUP_WHOLE)
			w->groups[k].state =
				/* tries again, because a lane that it waited for may have exited */
				GROUP_READY;
	if (!w->live)
		w->block->live_warps--;
	ckt_ptx_barriers_check(w->block);
	ckt_ptx_cluster_check(w->block->cluster);
}

void ckt_ptx_cluster_check(struct ptx_cluster *cluster)
{
	if (!cluster->arrived)
		return;
	for (uint32_t k = 0; k < cluster->n; k++)
		for (uint32_t n = 0; n < cluster->blocks[k]->n_warps; n++)
			if (cluster->blocks[k]->warps[n].live &
				~cluster->blocks[k]->warps[n].cluster_arrived)
				return;
	for (uint32_t k = 0; k < cluster->n; k++)
		for (uint32_t n = 0; n < cluster->blocks[k]->n_warps; n++)
			cluster->blocks[k]->warps[n].cluster_arrived = 0;
	cluster->arrived = false;
}

/* ---- Blocks */

enum ptx_slice ckt_ptx_block_run(struct ptx_block *block)
{
	unsigned left = BLOCK_INSNS;
	const volatile bool *cancel = block->grid->launch->cancel;
	while (block->live_warps) {
		bool ran = false, waiting = false;
		if (atomic_load_explicit(&block->grid->stop, memory_order_relaxed) ||
			(cancel && *cancel))
			return SLICE_FAULT;
		for (uint32_t n = 0; n < block->n_warps; n++) {
			if (!block->warps[n].live)
				continue;
			switch (ckt_ptx_warp_run(&block->warps[n], WARP_INSNS)) {
			case SLICE_FAULT:
				return SLICE_FAULT;
			case SLICE_RAN:
				ran = true;
				break;
			case SLICE_WAITING:
				waiting = true;
				break;
			case SLICE_DONE:
				ran = true;
				break;
			case SLICE_BLOCKED:
				break;
			}
		}
		if (!ran && !waiting && block->live_warps) {
			/*
			 * All warps seem blocked.  But a barrier that a later warp completed may
			 * have released an earlier one.
			 */
			bool ready = false;
			for (uint32_t n = 0; n < block->n_warps; n++)
				for (unsigned k = 0; k < block->warps[n].n_groups; k++)
					ready |= block->warps[n].groups[k].state == GROUP_READY;
			if (!ready) {
				struct ptx_warp *w = NULL;
				for (uint32_t n = 0; n < block->n_warps && !w; n++)
					w = block->warps[n].live ? &block->warps[n] : NULL;
				w->frame = NULL;
				ckt_ptx_fault(w, (unsigned)__builtin_ctz(w->live),
					CKT_PTX_FAULT_LAUNCH_FAILURE,
					"every thread of the block waits at a barrier that cannot complete");
				return SLICE_FAULT;
			}
		} else if (!ran && waiting) {
			return SLICE_WAITING;
		}
		if (left < WARP_INSNS)
			return SLICE_RAN;
		left -= WARP_INSNS;
	}
	return SLICE_DONE;
}

/* Runs a slice of every live block of the cluster. */
enum ptx_slice ckt_ptx_cluster_run(struct ptx_cluster *cluster)
{
	bool ran = false, live = false;
	for (uint32_t k = 0; k < cluster->n; k++) {
		if (!cluster->blocks[k]->live_warps)
			continue;
		enum ptx_slice slice = ckt_ptx_block_run(cluster->blocks[k]);
		if (slice == SLICE_FAULT)
			return SLICE_FAULT;
		ran |= slice != SLICE_WAITING;
		live |= slice != SLICE_DONE;
	}
	return !live ? SLICE_DONE : ran ? SLICE_RAN : SLICE_WAITING;
}
