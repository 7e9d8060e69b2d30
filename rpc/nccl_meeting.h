/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks of the soft GPU's NCCL meet in workers: through the worker's group channel
 * (rpc/group.h), and not by names that every process of the host sees.  The worker hands this to the
 * library when it has opened it; NVIDIA's has no such function.
 *
 *	root's library -> its worker	announce: who visits this name comes through this door
 *	rank's library -> its worker	visit
 *	root's worker -> root's library	a connection with the rank, over the door (SCM_RIGHTS, one a packet)
 *
 * Threading: announce and visit from any thread.  Errors: -errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CKT_NCCL_MEETING_NAME = 16 };

struct ckt_nccl_meeting {
	/*
	 * door: a socket of sequenced packets, the worker's in every case.  Who visits after the
	 * return finds it.  One a process: a second one replaces the first.
	 */
	int (*announce)(const uint8_t name[CKT_NCCL_MEETING_NAME], int door);
	/*
	 * A connection with the process that announced the name, the caller's.  -ENOENT: no process
	 * of this group did.
	 */
	int (*visit)(const uint8_t name[CKT_NCCL_MEETING_NAME]);
	/* There are ranks outside of the group, which abstract sockets reach: --worker-network on. */
	bool open;
};

/* The library's.  The meeting stays the caller's, and as it is. */
#define CKT_NCCL_MEET_THROUGH "ncclCricketMeetThrough"
typedef void (*ckt_nccl_meet_through)(const struct ckt_nccl_meeting *meeting);
