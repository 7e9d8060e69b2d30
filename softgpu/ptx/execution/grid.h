/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running grid: clusters, blocks, warps and their groups of converged lanes.
 *
 *   launch: prepared entry (pools, shared layout) -> blocks -> warps -> groups of converged lanes -> insn->fn(warp, insn, mask)
 *
 * One interpreter thread runs a block at a time, so warps need no locks.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

struct ptx_frame {
	const struct ckt_ptx_function *function;
	struct ptx_frame *parent;
	/* every frame that the warp ever made, to free them with it */
	struct ptx_frame *all_next;
	const struct ptx_call *call; /* the call that entered it; NULL for an entry's */
	uint8_t *regs;
	const uint8_t *pool;
	uint32_t return_pc, depth, lanes, local_base, capacity;
	/* bytes of local memory taken by alloca, behind frame_bytes */
	uint32_t extra;
};

enum ptx_group_state { GROUP_READY = 0, GROUP_BARRIER, GROUP_WARP, GROUP_WHOLE };

struct ptx_group {
	struct ptx_frame *frame;
	/* pc of the next instruction; of a GROUP_WARP the waiting one itself */
	uint32_t mask, pc;
	/* GROUP_WARP: lanes that must come; GROUP_WHOLE waits for all that live */
	uint32_t sync_mask;
	uint32_t age; /* when it last ran */
	uint8_t state, barrier;
};

struct ptx_barrier {
	uint32_t expected;  /* threads; 0: all that live */
	uint32_t arrived;   /* lanes, for a quick "nobody" */
	uint32_t red_count; /* bar.red: lanes whose predicate was true */
	uint32_t red_lanes;
};

struct ptx_warp {
	uint8_t *bank[2]; /* registers, pool of the current frame */
	struct ptx_frame *frame;
	uint32_t mask; /* the running group's lanes */
	uint32_t pc;   /* next instruction */
	uint32_t live, index;
	/* the mask of the lane whose instructions are traced, or 0 */
	uint32_t traced;
	struct ptx_block *block;
	uint8_t *local; /* lane l: local + l * stack_bytes */
	uint32_t stack_bytes;
	uint32_t polls; /* reads that look like a wait loop, in this slice */
	uint32_t fair_left, clock;
	/* the group that has waited longest runs next, kept from slice to slice */
	bool oldest_next;
	/* page + 1 that was found readable, and writable for the other */
	uint64_t last_page;
	uint64_t last_page_write;
	struct ptx_group groups[PTX_LANES];
	unsigned n_groups;
	uint32_t arrived[PTX_MAX_BARRIERS];
	/* lanes that came to the cluster's barrier in its present phase */
	uint32_t cluster_arrived;
	/* lanes waiting for the whole grid, since which phase of it */
	uint32_t grid_arrived, grid_phase[PTX_LANES];
	uint32_t tid[3][PTX_LANES];
	uint64_t stage[PTX_LANES]; /* the values of waiting lanes for a shuffle or vote */
	struct ptx_frame *spare;   /* frames to use again */
	struct ptx_frame *all_frames;
	struct ptx_frame *base;
};

/*
 * Blocks that see each other's shared memory.  All of a cluster are run by one thread, in turn; a
 * block without a cluster is one by itself.
 */
struct ptx_cluster {
	uint32_t n;
	bool arrived; /* some thread waits for the barrier to complete */
	struct ptx_block *blocks[PTX_MAX_CLUSTER]; /* by rank */
};

struct ptx_block {
	struct ptx_grid *grid;
	struct ptx_block *next;
	uint32_t ctaid[3];
	uint64_t linear;
	struct ptx_cluster *cluster, own_cluster; /* cluster: that of its first block */
	uint32_t rank;
	uint8_t *shared, *reserved;
	uint32_t shared_bytes;
	uint32_t n_warps, live_warps, n_threads;
	struct ptx_barrier barriers[PTX_MAX_BARRIERS];
	struct ptx_warp *warps;
	ptx_runner *const *runners; /* by function index; NULL: the interpreter runs all */
	uint64_t insns;             /* of its warps, not yet reported as heat */
	void *memory;
	size_t memory_bytes;
};

struct ptx_grid {
	const struct ckt_ptx_function *entry;
	const struct ptx_prepared *prepared;
	const struct ckt_ptx_launch *launch;
	uint32_t cluster[3], cluster_size; /* ones if the launch has none */
	/* clusters, in fact; under the pool's lock */
	uint64_t n_blocks, next_block, done_blocks;
	uint32_t resident, window, running;
	bool turn;
	struct ptx_block *ready_head, **ready_tail, *spare_blocks;
	struct ptx_grid *next;
	atomic_bool stop;
	pthread_mutex_t fault_lock;
	enum ckt_ptx_fault fault;
	char message[256];
	uint64_t grid_id;
	uint32_t stack_bytes;
	_Atomic uint64_t sync_arrived; /* threads that wait for the whole grid */
	_Atomic uint32_t sync_phase;
	void *workspace; /* grid synchronisation of cooperative groups */
	pthread_cond_t done;
};

/* Records the first fault of the grid and stops it; returns RUN_FAULT. */
int ckt_ptx_fault(struct ptx_warp *w, unsigned lane, enum ckt_ptx_fault fault, const char *format,
	...) __attribute__((format(printf, 4, 5)));
