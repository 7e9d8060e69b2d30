/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the lanes of a warp that run next (sched.c), and manages frames of calls. */
#pragma once

#include <stdint.h>

#include "softgpu/ptx/execution/grid.h"

/*
 * Instructions of a slice with several groups: long enough for a loop body to reach its join, and
 * short enough that a lock is soon released.
 */
enum { PTX_FAIR_INSNS = 512 };
enum ptx_slice { SLICE_RAN, SLICE_BLOCKED, SLICE_DONE, SLICE_WAITING, SLICE_FAULT };
enum ptx_slice ckt_ptx_warp_run(struct ptx_warp *w, unsigned budget);
enum ptx_slice ckt_ptx_block_run(struct ptx_block *block);
enum ptx_slice ckt_ptx_cluster_run(struct ptx_cluster *cluster);
/* completes the cluster's barrier when all live threads have arrived */
void ckt_ptx_cluster_check(struct ptx_cluster *cluster);
void ckt_ptx_group_store(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask, uint32_t pc);
struct ptx_frame *ckt_ptx_frame_enter(struct ptx_warp *w, const struct ckt_ptx_function *function,
	struct ptx_frame *parent, uint32_t mask);
void ckt_ptx_frame_leave(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask);
void ckt_ptx_warp_select(struct ptx_warp *w, struct ptx_frame *frame);
void ckt_ptx_barriers_check(struct ptx_block *block);
void ckt_ptx_lanes_exit(struct ptx_warp *w, uint32_t mask);
