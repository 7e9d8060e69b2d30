/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points at which a test can kill a worker or make it fail, to examine what it leaves behind:
 * CRICKET_FAULT=N kills the process that reaches point N (SIGKILL, as a power cut would),
 * CRICKET_FAULT=fail:N makes that step fail. The numbers are stable, 1 to 49.  Threading: none
 * needed.
 */
#pragma once

#include "base/fault_point.h"

enum ckt_worker_fault {
	CKT_FAULT_FROZEN = 1,   /* frozen, nothing written */
	CKT_FAULT_HASHED = 2,   /* the worker knows what has changed */
	CKT_FAULT_WRITE = 3,    /* a chunk is about to be written */
	CKT_FAULT_CONTENTS = 4, /* the contents are written, but no manifest */
	CKT_FAULT_MANIFEST = 5, /* the manifest is written, but nobody was told */
	/* spare memory holds the frozen state; fail: it could not be copied */
	CKT_FAULT_COPIED_ASIDE = 6,
	CKT_FAULT_RESTORE_CHECKED = 10, /* everything is checked, nothing is made */
	CKT_FAULT_RESTORE_OBJECTS = 11, /* modules and objects are made */
	CKT_FAULT_RESTORE_CHUNK = 12,   /* a chunk is about to be read */
	CKT_FAULT_RESTORE_LOADED = 13,  /* everything is there, but the session does not run yet */
	CKT_FAULT_RESTORE_MOVED = 14,   /* fail: variables of modules move */
	/* fail: the last memory is missing, though it was free */
	CKT_FAULT_RESTORE_MEMORY = 15,
	CKT_FAULT_PRELOADED = 16,    /* an image is preloaded, but nobody was told */
	CKT_FAULT_PAUSE_COPIED = 20, /* the host has the memory, and so has the GPU */
	/* the GPU's memory is released; fail: it is allocated again, and the session continues */
	CKT_FAULT_PAUSE_GIVEN_UP = 21,
	CKT_FAULT_RESUME_MAP = 22,    /* the last memory is about to be allocated again */
	CKT_FAULT_RESUME_COPIED = 23, /* all is back */
	CKT_FAULT_SWAP_WRITE = 24,    /* a chunk is about to be written to the swap memory */
	/* the worker was told to end, but not the client; fail: the session continues */
	CKT_FAULT_RELEASE = 30,
};

/* Kills the process, or returns true if the step is to fail. */
static inline bool ckt_fault_fails(enum ckt_worker_fault point)
{
	return ckt_fault_reached((int)point);
}
