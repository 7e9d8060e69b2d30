/*
 * Points at which a worker can be told to die or to fail, for tests of what is left behind:
 * CRICKET_FAULT=N kills the process that comes to point N (SIGKILL, as a power cut would),
 * CRICKET_FAULT=fail:N lets that step fail.  The numbers are stable, 1 to 49.
 *
 * Threading: none needed.
 */
#pragma once

#include <stdbool.h>

enum ckt_worker_fault {
	CKT_FAULT_FROZEN = 1,   /* frozen, nothing written */
	CKT_FAULT_HASHED = 2,   /* what has changed is known */
	CKT_FAULT_WRITE = 3,    /* a chunk is about to be written */
	CKT_FAULT_CONTENTS = 4, /* the contents are written, no manifest */
	CKT_FAULT_MANIFEST = 5, /* the manifest is written, nobody was told */
	/* the frozen state lies in spare memory; fail: it could not be copied */
	CKT_FAULT_COPIED_ASIDE = 6,
	CKT_FAULT_RESTORE_CHECKED = 10, /* everything is checked, nothing made */
	CKT_FAULT_RESTORE_OBJECTS = 11, /* modules and objects are made */
	CKT_FAULT_RESTORE_CHUNK = 12,   /* a chunk is about to be read */
	CKT_FAULT_RESTORE_LOADED = 13,  /* all is there, the session does not run yet */
	CKT_FAULT_RESTORE_MOVED = 14,   /* fail: variables of modules come to lie elsewhere */
	/* fail: the last of the memory is not there, though it was free */
	CKT_FAULT_RESTORE_MEMORY = 15,
	CKT_FAULT_PRELOADED = 16,    /* an image is pre-loaded, nobody was told */
	CKT_FAULT_PAUSE_COPIED = 20, /* the host has the memory, the GPU too */
	/* the GPU's is given up; fail: it is taken back, and the session runs on */
	CKT_FAULT_PAUSE_GIVEN_UP = 21,
	CKT_FAULT_RESUME_MAP = 22,    /* the last of the memory is about to be taken back */
	CKT_FAULT_RESUME_COPIED = 23, /* all is back */
	/* told to end, the client was not told; fail: the session runs on */
	CKT_FAULT_RELEASE = 30,
};

/* Kills, or returns true where the step is to fail. */
bool ckt_fault_fails(enum ckt_worker_fault point);
