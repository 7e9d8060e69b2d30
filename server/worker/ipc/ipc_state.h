/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ipc.c and ipc_image.c share: the lists of what this session has shared, and of what it has
 * opened.
 */
#pragma once

#include <pthread.h>

#include "server/worker/ipc/ipc_talk.h"
#include "server/worker/worker.h"

struct ckt_ipc_export {
	struct ckt_ipc_export *next;
	uint64_t id; /* address of a block, or physical memory, or an event */
	uint64_t context;
	struct ckt_ipc_handle handle; /* as the program has it, also from before a restore */
	int fd;                       /* -1: none, of an event of NVIDIA's driver */
	bool taken;                   /* somebody fetched it */
	struct ckt_ipc_answer answer;
};

struct ckt_ipc_import {
	struct ckt_ipc_import *next;
	/* a block: its address, the mapping begins `offset` before it; else the object */
	uint64_t id;
	uint64_t context;
	struct ckt_ipc_handle handle;
	uint64_t offset, size, whole;
	uint64_t piece; /* of a block */
	unsigned device;
	/* which copy of its owner's session it belongs to, as last checked */
	uint64_t copy;
	bool counted; /* by this session: its owner has given it up (ipc_left.c) */
	/* Memory that was given up so that its owner could leave (ipc_together.c). */
	bool away;
	bool lost;               /* and its owner has died: it never comes back */
	int64_t absent_since_ms; /* since when nobody knows its owner; 0: somebody does */
};

/* A worker that fetched something: it may have it open. */
struct ckt_ipc_taker {
	char session[CKT_IPC_SESSION];
};

extern struct ckt_ipc {
	/*
	 * the lists and flags; the executor, which alone changes imports and exports, reads those
	 * without
	 */
	pthread_mutex_t lock;
	struct ckt_ipc_export *exports;
	struct ckt_ipc_import *imports;
	unsigned export_count;
	struct ckt_ipc_taker *takers;
	size_t taker_count, taker_room;
	/* the session is frozen for its image: others can open nothing */
	bool closed;
	bool loading;                  /* what is missing may still come */
	uint64_t restored_copy;        /* which copy the image was taken of; 0: not restored */
	char session[CKT_IPC_SESSION]; /* of the image; zeros: not restored */
	bool together;                 /* it stands still with those that it shares with */
	bool alone;                    /* and nobody leads it */
	_Atomic bool wanted;           /* somebody asked meanwhile for something of it */
} ckt_ipc;

/* How long a session that nobody has seen is waited for. */
extern unsigned ckt_ipc_absent_ms;
bool ckt_ipc_same_secret(const uint8_t *a, const uint8_t *b);
/* Precondition: lock held.  NULL: nothing has it. */
struct ckt_ipc_export *ckt_ipc_find_secret(uint32_t kind, const uint8_t *secret);
/* Enters what is shared under the handle; what is shared already keeps the one that it has. */
CUresult ckt_ipc_export_physical(struct ckt_object *object, const struct ckt_ipc_handle *handle,
	struct ckt_ipc_export **ret);
CUresult ckt_ipc_export_block(struct ckt_worker *worker, uint64_t address,
	const struct ckt_ipc_handle *handle, struct ckt_ipc_export **ret);
CUresult ckt_ipc_export_event(struct ckt_object *object, const struct ckt_ipc_handle *handle,
	struct ckt_ipc_export **ret);
/* Memory that was fetched; closes fd.  Fills in piece and device. */
CUresult ckt_ipc_take_memory(
	struct ckt_worker *worker, int fd, struct ckt_ipc_import *import, uint64_t *ret_piece);
/* Maps a block's piece at address, or at any free address for 0; on failure nothing of it stays. */
CUresult ckt_ipc_map_block(
	struct ckt_worker *worker, struct ckt_ipc_import *import, unsigned here, uint64_t address);
/* The object of an import of that kind: *piece is consumed. */
CUresult ckt_ipc_make_physical(
	struct ckt_worker *worker, struct ckt_ipc_import *import, uint64_t piece);
/* Takes the entry, malloc'd, into the list. */
void ckt_ipc_enter_import(struct ckt_ipc_import *import);
bool ckt_ipc_answer_good(const struct ckt_ipc_answer *answer, uint32_t kind, int fd);

/* ---- ipc_left.c */

/* The nth session that fetched something.  False: there is none. */
bool ckt_ipc_nth_taker(size_t nth, struct ckt_ipc_taker *ret_taker);
/* Exports that are in no list any more, the callee's: those that have them open count them from here on. */
void ckt_ipc_leave(struct ckt_worker *worker, struct ckt_ipc_export *gone);
/* The owner has given up what has the secret, or all for NULL: what this session has open of that it counts. */
void ckt_ipc_count_left(struct ckt_worker *worker, const char session[CKT_IPC_SESSION],
	uint32_t kind, const uint8_t *secret);
/* An import that is in no list any more, and whose memory is not open any more. */
void ckt_ipc_closed(struct ckt_worker *worker, const struct ckt_ipc_import *import);

/* ---- ipc_event.c */

/* Whether a descriptor belongs to the event, as with the soft GPU: nobody opens it without. */
bool ckt_ipc_event_has_page(const CUipcEventHandle *handle);
/* Of this worker's own event: a copy of that descriptor, the caller's; -1: none belongs to it. */
CUresult ckt_ipc_event_page(const CUipcEventHandle *handle, int *ret_fd);
/* fd: that came with the handle, or -1; closed.  Precondition: the context is current. */
CUresult ckt_ipc_make_event(struct ckt_worker *worker, struct ckt_ipc_import *import,
	const CUipcEventHandle *event, int fd);
