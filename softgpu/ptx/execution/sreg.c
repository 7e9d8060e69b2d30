/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special registers.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "softgpu/ptx/compiled/form.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/sreg.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum sreg {
	S_TID_X,
	S_TID_Y,
	S_TID_Z,
	S_NTID_X,
	S_NTID_Y,
	S_NTID_Z,
	S_CTAID_X,
	S_CTAID_Y,
	S_CTAID_Z,
	S_NCTAID_X,
	S_NCTAID_Y,
	S_NCTAID_Z,
	S_LANEID,
	S_WARPID,
	S_NWARPID,
	S_SMID,
	S_NSMID,
	S_GRIDID,
	S_CLOCK,
	S_CLOCK_HI,
	S_CLOCK64,
	S_GLOBALTIMER,
	S_GLOBALTIMER_LO,
	S_GLOBALTIMER_HI,
	S_LANEMASK_EQ,
	S_LANEMASK_LE,
	S_LANEMASK_LT,
	S_LANEMASK_GE,
	S_LANEMASK_GT,
	S_DYNAMIC_SMEM,
	S_TOTAL_SMEM,
	S_AGGR_SMEM,
	S_CLUSTERID_X,
	S_CLUSTERID_Y,
	S_CLUSTERID_Z,
	S_NCLUSTERID_X,
	S_NCLUSTERID_Y,
	S_NCLUSTERID_Z,
	S_CLUSTER_CTAID_X,
	S_CLUSTER_CTAID_Y,
	S_CLUSTER_CTAID_Z,
	S_CLUSTER_NCTAID_X,
	S_CLUSTER_NCTAID_Y,
	S_CLUSTER_NCTAID_Z,
	S_CLUSTER_CTARANK,
	S_CLUSTER_NCTARANK,
	S_IS_EXPLICIT_CLUSTER,
	S_RESERVED_BEGIN,
	S_RESERVED_END,
	S_RESERVED_CAP,
	S_RESERVED_0,
	S_RESERVED_1,
	S_ENVREG0,
	S_PM0 = S_ENVREG0 + 32,
	S_COUNT = S_PM0 + 8,
};

static const struct {
	const char *name;
	int sreg;
	enum ptx_type type;
} names[] = {
	{"%tid.x", S_TID_X, T_U32},
	{"%tid.y", S_TID_Y, T_U32},
	{"%tid.z", S_TID_Z, T_U32},
	{"%ntid.x", S_NTID_X, T_U32},
	{"%ntid.y", S_NTID_Y, T_U32},
	{"%ntid.z", S_NTID_Z, T_U32},
	{"%ctaid.x", S_CTAID_X, T_U32},
	{"%ctaid.y", S_CTAID_Y, T_U32},
	{"%ctaid.z", S_CTAID_Z, T_U32},
	{"%nctaid.x", S_NCTAID_X, T_U32},
	{"%nctaid.y", S_NCTAID_Y, T_U32},
	{"%nctaid.z", S_NCTAID_Z, T_U32},
	{"%laneid", S_LANEID, T_U32},
	{"%warpid", S_WARPID, T_U32},
	{"%nwarpid", S_NWARPID, T_U32},
	{"%smid", S_SMID, T_U32},
	{"%nsmid", S_NSMID, T_U32},
	{"%gridid", S_GRIDID, T_U64},
	{"%clock", S_CLOCK, T_U32},
	{"%clock_hi", S_CLOCK_HI, T_U32},
	{"%clock64", S_CLOCK64, T_U64},
	{"%globaltimer", S_GLOBALTIMER, T_U64},
	{"%globaltimer_lo", S_GLOBALTIMER_LO, T_U32},
	{"%globaltimer_hi", S_GLOBALTIMER_HI, T_U32},
	{"%lanemask_eq", S_LANEMASK_EQ, T_U32},
	{"%lanemask_le", S_LANEMASK_LE, T_U32},
	{"%lanemask_lt", S_LANEMASK_LT, T_U32},
	{"%lanemask_ge", S_LANEMASK_GE, T_U32},
	{"%lanemask_gt", S_LANEMASK_GT, T_U32},
	{"%dynamic_smem_size", S_DYNAMIC_SMEM, T_U32},
	{"%total_smem_size", S_TOTAL_SMEM, T_U32},
	{"%aggr_smem_size", S_AGGR_SMEM, T_U32},
	{"%clusterid.x", S_CLUSTERID_X, T_U32},
	{"%clusterid.y", S_CLUSTERID_Y, T_U32},
	{"%clusterid.z", S_CLUSTERID_Z, T_U32},
	{"%nclusterid.x", S_NCLUSTERID_X, T_U32},
	{"%nclusterid.y", S_NCLUSTERID_Y, T_U32},
	{"%nclusterid.z", S_NCLUSTERID_Z, T_U32},
	{"%cluster_ctaid.x", S_CLUSTER_CTAID_X, T_U32},
	{"%cluster_ctaid.y", S_CLUSTER_CTAID_Y, T_U32},
	{"%cluster_ctaid.z", S_CLUSTER_CTAID_Z, T_U32},
	{"%cluster_nctaid.x", S_CLUSTER_NCTAID_X, T_U32},
	{"%cluster_nctaid.y", S_CLUSTER_NCTAID_Y, T_U32},
	{"%cluster_nctaid.z", S_CLUSTER_NCTAID_Z, T_U32},
	{"%cluster_ctarank", S_CLUSTER_CTARANK, T_U32},
	{"%cluster_nctarank", S_CLUSTER_NCTARANK, T_U32},
	{"%is_explicit_cluster", S_IS_EXPLICIT_CLUSTER, T_PRED},
	{"%reserved_smem_offset_begin", S_RESERVED_BEGIN, T_U32},
	{"%reserved_smem_offset_end", S_RESERVED_END, T_U32},
	{"%reserved_smem_offset_cap", S_RESERVED_CAP, T_U32},
	{"%reserved_smem_offset_0", S_RESERVED_0, T_U32},
	{"%reserved_smem_offset_1", S_RESERVED_1, T_U32},
};

int ckt_ptx_sreg_find(const char *name, size_t size)
{
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strlen(names[k].name) == size && !memcmp(names[k].name, name, size))
			return names[k].sreg;
	if (size >= 8 && size <= 9 && !memcmp(name, "%envreg", 7)) {
		int n = 0;
		for (size_t k = 7; k < size; k++) {
			if (name[k] < '0' || name[k] > '9')
				return -1;
			n = n * 10 + name[k] - '0';
		}
		return n < 32 ? S_ENVREG0 + n : -1;
	}
	if (size == 4 && !memcmp(name, "%pm", 3) && name[3] >= '0' && name[3] <= '7')
		return S_PM0 + name[3] - '0';
	return -1;
}

enum ptx_type ckt_ptx_sreg_type(int sreg)
{
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (names[k].sreg == sreg)
			return names[k].type;
	return T_U32;
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reads a clock of 1 GHz. */
static uint64_t read_clock(int sreg)
{
	uint64_t time = now(sreg >= S_GLOBALTIMER ? CLOCK_REALTIME : CLOCK_MONOTONIC);
	switch (sreg) {
	case S_CLOCK:
	case S_GLOBALTIMER_LO:
		return (uint32_t)time;
	case S_CLOCK_HI:
	case S_GLOBALTIMER_HI:
		return time >> 32;
	default:
		return time;
	}
}

/* Without clusters every block is a cluster of its own. */
static uint64_t of_cluster(const struct ptx_block *block, int sreg)
{
	const struct ptx_grid *grid = block->grid;
	switch (sreg) {
	case S_CLUSTERID_X ... S_CLUSTERID_Z:
		return block->ctaid[sreg - S_CLUSTERID_X] / grid->cluster[sreg - S_CLUSTERID_X];
	case S_NCLUSTERID_X ... S_NCLUSTERID_Z:
		return grid->launch->grid[sreg - S_NCLUSTERID_X] /
			grid->cluster[sreg - S_NCLUSTERID_X];
	case S_CLUSTER_CTAID_X ... S_CLUSTER_CTAID_Z:
		return block->ctaid[sreg - S_CLUSTER_CTAID_X] %
			grid->cluster[sreg - S_CLUSTER_CTAID_X];
	case S_CLUSTER_NCTAID_X ... S_CLUSTER_NCTAID_Z:
		return grid->cluster[sreg - S_CLUSTER_NCTAID_X];
	case S_CLUSTER_CTARANK:
		return block->rank;
	case S_CLUSTER_NCTARANK:
		return grid->cluster_size;
	default:
		return grid->launch->cluster[0] || grid->entry->info.cluster[0];
	}
}

/* Sizes and offsets of shared memory. */
static uint64_t of_shared(const struct ptx_block *block, int sreg)
{
	switch (sreg) {
	case S_DYNAMIC_SMEM:
		return block->grid->launch->dynamic_shared_bytes;
	case S_TOTAL_SMEM:
		return block->shared_bytes;
	case S_AGGR_SMEM:
		return block->shared_bytes + PTX_RESERVED_BYTES;
	case S_RESERVED_1:
		return PTX_RESERVED_SHARED + PTX_RESERVED_BYTES / 2;
	case S_RESERVED_END:
		return PTX_SHARED_MAX;
	case S_RESERVED_CAP:
		return PTX_RESERVED_BYTES;
	default:
		return PTX_RESERVED_SHARED;
	}
}

/* Registers with the same value for all lanes. */
static uint64_t uniform(const struct ptx_warp *w, int sreg)
{
	const struct ptx_block *block = w->block;
	const struct ptx_grid *grid = block->grid;
	const struct ckt_ptx_launch *launch = grid->launch;
	switch (sreg) {
	case S_NTID_X ... S_NTID_Z:
		return launch->block[sreg - S_NTID_X];
	case S_CTAID_X ... S_CTAID_Z:
		return block->ctaid[sreg - S_CTAID_X];
	case S_NCTAID_X ... S_NCTAID_Z:
		return launch->grid[sreg - S_NCTAID_X];
	case S_WARPID:
		return w->index;
	case S_NWARPID:
		return 64;
	case S_SMID:
		return block->linear % (launch->device->n_sm ? launch->device->n_sm : 1);
	case S_NSMID:
		return launch->device->n_sm;
	case S_GRIDID:
		return grid->grid_id;
	case S_CLOCK ... S_GLOBALTIMER_HI:
		return read_clock(sreg);
	case S_DYNAMIC_SMEM ... S_AGGR_SMEM:
	case S_RESERVED_BEGIN ... S_RESERVED_1:
		return of_shared(block, sreg);
	case S_CLUSTERID_X ... S_IS_EXPLICIT_CLUSTER:
		return of_cluster(block, sreg);
	/* The address of a cooperative grid's barrier in two halves. */
	case S_ENVREG0 + 1:
		return (uint64_t)(uintptr_t)grid->workspace >> 32;
	case S_ENVREG0 + 2:
		return (uint32_t)(uintptr_t)grid->workspace;
	default:
		return 0;
	}
}

static uint64_t by_lane(const struct ptx_warp *w, int sreg, unsigned l)
{
	switch (sreg) {
	case S_TID_X:
	case S_TID_Y:
	case S_TID_Z:
		return w->tid[sreg - S_TID_X][l];
	case S_LANEID:
		return l;
	case S_LANEMASK_EQ:
		return 1u << l;
	case S_LANEMASK_LE:
		return (2u << l) - 1;
	case S_LANEMASK_LT:
		return (1u << l) - 1;
	case S_LANEMASK_GE:
		return ~((1u << l) - 1);
	default:
		return ~((2u << l) - 1);
	}
}

int ckt_ptx_exec_sreg(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	int sreg = i->x;
	bool lanes = sreg <= S_TID_Z || sreg == S_LANEID ||
		(sreg >= S_LANEMASK_EQ && sreg <= S_LANEMASK_GT);
	uint64_t value = lanes ? 0 : uniform(w, sreg);
	void *d = ptx_at(w, i->d);
	if (i->y == 0) {
		*(uint32_t *)d = value ? *(uint32_t *)d | m : *(uint32_t *)d & ~m;
		return RUN_NEXT;
	}
	if (sreg == S_CLOCK || sreg == S_CLOCK64 ||
		(sreg >= S_GLOBALTIMER && sreg <= S_GLOBALTIMER_HI))
		w->polls++; /* a loop that reads a clock waits for time to pass */
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t v = lanes ? by_lane(w, sreg, l) : value;
		if (i->y == 8)
			((uint64_t *)d)[l] = v;
		else
			((uint32_t *)d)[l] = (uint32_t)v;
	}
	return RUN_NEXT;
}
PTX_FORM(ckt_ptx_exec_sreg, FORM_SREG, 0, 0, 0, 0, 0, NULL)

/*
 * Texts for compiled kernels, with the names that emit.c defines for members of the interpreter's
 * structures; w is the warp, l the lane.
 */
bool ckt_ptx_sreg_text(int sreg, char *text, size_t size)
{
	switch (sreg) {
	case S_TID_X:
	case S_TID_Y:
	case S_TID_Z:
		snprintf(text, size, "((const uint32_t *)(w + WARP_TID))[%d + l]",
			32 * (sreg - S_TID_X));
		return true;
	case S_LANEID:
		snprintf(text, size, "l");
		return true;
	case S_LANEMASK_EQ:
		snprintf(text, size, "1u << l");
		return true;
	case S_LANEMASK_LE:
		snprintf(text, size, "(2u << l) - 1");
		return true;
	case S_LANEMASK_LT:
		snprintf(text, size, "(1u << l) - 1");
		return true;
	case S_LANEMASK_GE:
		snprintf(text, size, "~((1u << l) - 1)");
		return true;
	case S_LANEMASK_GT:
		snprintf(text, size, "~((2u << l) - 1)");
		return true;
	default:
		return false;
	}
}

bool ckt_ptx_sreg_uniform_text(int sreg, char *text, size_t size)
{
	switch (sreg) {
	case S_NTID_X:
	case S_NTID_Y:
	case S_NTID_Z:
		snprintf(text, size, "((const uint32_t *)(LAUNCH + LAUNCH_BLOCK))[%d]",
			sreg - S_NTID_X);
		return true;
	case S_NCTAID_X:
	case S_NCTAID_Y:
	case S_NCTAID_Z:
		snprintf(text, size, "((const uint32_t *)(LAUNCH + LAUNCH_GRID))[%d]",
			sreg - S_NCTAID_X);
		return true;
	case S_CTAID_X:
	case S_CTAID_Y:
	case S_CTAID_Z:
		snprintf(text, size, "((const uint32_t *)(WP(WARP_BLOCK) + BLOCK_CTAID))[%d]",
			sreg - S_CTAID_X);
		return true;
	default:
		return false;
	}
}
