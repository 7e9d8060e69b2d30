/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a group that comes back: in it each member says how far its replay is.
 *
 *	server: makes and seals the file, sends it to each member's worker with CKT_WORKER_STAMPS
 *	worker: writes its own slot, and reads the others' while its next command waits
 *
 * A member may run a command with the stamp s once every other slot is at least s:
 *
 *	0 --first STAMP--> stamp of the next command, or one below the stamp of the earliest reply that is
 *	still to come, whichever is less --STAMPS_END--> CKT_STAMPS_DONE
 *
 * Any member can write anything there.  It can so spoil the replay of its own group, whose memory it can
 * write anyway; no wait depends on the page to end.  Every slot is read and written alone, by atomics.
 */
#pragma once

#include <stdint.h>

enum { CKT_STAMPS_PAGE_SIZE = 4096, CKT_STAMPS_SLOTS = 64 };
#define CKT_STAMPS_DONE UINT64_MAX

/* One line of the cache each. */
struct ckt_stamps_slot {
	uint64_t next;
	uint64_t unused[7];
};

struct ckt_stamps_page {
	struct ckt_stamps_slot slots[CKT_STAMPS_SLOTS];
};
_Static_assert(sizeof(struct ckt_stamps_page) == CKT_STAMPS_PAGE_SIZE, "one page");
