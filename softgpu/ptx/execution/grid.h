/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running grid: clusters, blocks, warps and their groups of converged lanes.
 *
 *	launch: prepared entry (pools, shared layout) -> blocks -> warps
 *	        -> groups of converged lanes -> insn->fn(warp, insn, mask)
 *
 * Only one interpreter thread at a time runs a block, so warps need no locks.
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
	/* links all frames that the warp has made, to free them with it */
	struct ptx_frame *all_next;
	const struct ptx_call *call; /* the call that entered the frame; NULL for an entry */
	uint8_t *regs;
	const uint8_t *pool;
	uint32_t return_pc, depth, lanes, local_base, capacity;
	/* bytes of local memory from alloca, after frame_bytes */
	uint32_t extra;
};

enum ptx_group_state { GROUP_READY = 0, GROUP_BARRIER, GROUP_WARP, GROUP_WHOLE };

struct ptx_group {
	struct ptx_frame *frame;
	/* pc of the next instruction; for a GROUP_WARP, of the waiting instruction */
	uint32_t mask, pc;
	/* GROUP_WARP: the lanes that must arrive; GROUP_WHOLE waits for all live lanes */
	uint32_t sync_mask;
	uint32_t age; /* the warp's clock when the group last ran */
	uint8_t state, barrier;
};

struct ptx_barrier {
	uint32_t expected; /* number of threads; 0: all live threads */
	/* number of arrived lanes, so that an idle barrier is skipped quickly */
	uint32_t arrived;
	uint32_t red_count; /* bar.red: lanes whose predicate was true */
	uint32_t red_lanes;
};

struct ptx_warp {
	uint8_t *bank[2]; /* registers and constant pool of the current frame */
	struct ptx_frame *frame;
	uint32_t mask; /* the running group's lanes */
	uint32_t pc;   /* next instruction */
	uint32_t live, index;
	/* the mask of the lane whose instructions are traced, or 0 */
	uint32_t traced;
	struct ptx_block *block;
	uint8_t *local; /* lane l: local + l * stack_bytes */
	uint32_t stack_bytes;
	uint32_t polls; /* reads in this slice that look like a wait loop */
	uint32_t fair_left, clock;
	/* the group that has waited longest runs next; kept between slices */
	bool oldest_next;
	/* the page + 1 that was last found readable, and the one last found writable */
	uint64_t last_page;
	uint64_t last_page_write;
	struct ptx_group groups[PTX_LANES];
	unsigned n_groups;
	uint32_t arrived[PTX_MAX_BARRIERS];
	/* lanes that arrived at the cluster's barrier in its present phase */
	uint32_t cluster_arrived;
	/* lanes that wait for the whole grid, and the phase in which each arrived */
	uint32_t grid_arrived, grid_phase[PTX_LANES];
	uint32_t tid[3][PTX_LANES];
	uint64_t stage[PTX_LANES]; /* values of waiting lanes for a shuffle or vote */
	struct ptx_frame *spare;   /* frames for reuse */
	struct ptx_frame *all_frames;
	struct ptx_frame *base;
};

/*
 * Blocks that see each other's shared memory.  One thread runs all blocks of a cluster in turn.  A
 * block without a cluster is a cluster of its own.
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
	/* cluster: points to own_cluster of its first block */
	struct ptx_cluster *cluster, own_cluster;
	uint32_t rank;
	uint8_t *shared, *reserved;
	uint32_t shared_bytes;
	uint32_t n_warps, live_warps, n_threads;
	struct ptx_barrier barriers[PTX_MAX_BARRIERS];
	struct ptx_warp *warps;
	ptx_runner *const *runners; /* by function index; NULL: the interpreter runs all */
	/* instructions of its warps that are not yet reported as heat */
	uint64_t insns;
	void *memory;
	size_t memory_bytes;
};

struct ptx_grid {
	const struct ckt_ptx_function *entry;
	const struct ptx_prepared *prepared;
	const struct ckt_ptx_launch *launch;
	uint32_t cluster[3], cluster_size; /* ones if the launch has none */
	/* numbers of clusters and not of single blocks; under the pool's lock */
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
	void *workspace; /* state of the grid barrier of cooperative groups */
	pthread_cond_t done;
};

/* Records the first fault of the grid and stops it; returns RUN_FAULT. */
int ckt_ptx_fault(struct ptx_warp *w, unsigned lane, enum ckt_ptx_fault fault, const char *format,
	...) __attribute__((format(printf, 4, 5)));
