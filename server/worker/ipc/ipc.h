/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events shared between sessions of one group (rpc/group.h).  The owner's worker keeps a
 * descriptor of what was exported and gives it to any worker of the group that knows the secret;
 * the other maps it in its own window (ipc_talk.h).  Of an event it gives the handle that the driver has for
 * it, and with the soft GPU the descriptor of the event's page (cudacommon/event_handle.h).
 *
 * A session that shares something is saved together with those that it shares it with
 * (ipc_image.c):
 *
 *	owner's image: its memory as ever, and under which handles it is shared ; the other's: where it had mapped what, and whose it is
 *	restore: each makes its own memory, with contents -> gives it to those who ask -> asks for what it had open, and waits for its owner
 *
 * Threading: the executor's, but for ckt_ipc_serve.  Errors: CUresult.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "rpc/ipc.h"

struct ckt_group_name;
struct ckt_worker;

/* Answers one question of another worker (ckt_group_answer). */
void ckt_ipc_serve(struct ckt_worker *worker, const struct ckt_group_name *name, int connection);
/*
 * The memory is about to be freed: nobody can open it any more.  Sessions that have opened it keep it, and
 * count it as theirs once this returns.
 */
void ckt_ipc_forget(struct ckt_worker *worker, uint64_t address_or_id);
void ckt_ipc_forget_context(struct ckt_worker *worker, uint64_t context);
/* An imported physical object is released, an imported event destroyed. */
void ckt_ipc_physical_gone(struct ckt_worker *worker, uint64_t id);
void ckt_ipc_event_gone(uint64_t id);

/*
 * The session of that name has ended: what this one has open of it counts as its own.  Of a control
 * thread.
 */
void ckt_ipc_owner_gone(struct ckt_worker *worker, const struct ckt_group_name *name);

/* ---- ipc_together.c: leaving the GPU together with the sessions that memory is shared with */

/* Whether anything is; whether other sessions could open something of this one. */
bool ckt_ipc_shares(void);
bool ckt_ipc_owns(void);
/*
 * From begin to end the session stands still with the others: what it shares is no reason any more why it
 * cannot be frozen, or leave.
 */
void ckt_ipc_together_begin(void);
void ckt_ipc_together_end(void);
/* Whether the one that leads all of them leads this one: else it stands still for itself. */
void ckt_ipc_together_lead(bool led);
/* From begin to end, while it is led. */
bool ckt_ipc_together_stands(void);
/* Somebody asked for something of it meanwhile. */
bool ckt_ipc_together_wanted(void);
/*
 * Whether all of them stand still, too, and have what this session opened.  0, or -EBUSY and a sentence.
 * Precondition of this and the rest: the session is frozen, and all of them are.
 */
int ckt_ipc_together_check(struct ckt_worker *worker, char *ret_message, size_t message_size);
/* Gives up what it opened, and closes the descriptors of its exports, which keep memory alive. */
void ckt_ipc_together_drop(struct ckt_worker *worker);
/* The session's own memory is there: it is exported again under the same secrets. */
void ckt_ipc_together_export(struct ckt_worker *worker);
/*
 * Opens again what was given up, at the same addresses.  -EAGAIN: an owner does not have it yet.  What an
 * owner took along that died does not come back: the addresses stay, and what reads them fails.
 */
int ckt_ipc_together_fetch(struct ckt_worker *worker);
/* Whether nobody is left that had something of this session open, and has not opened it again. */
bool ckt_ipc_together_opened(struct ckt_worker *worker);
/* Whether the memory at these addresses is exported in one piece. */
bool ckt_ipc_exports(uint64_t address, uint64_t size);

/* ---- ipc_image.c */

/* Whether anything is shared; then the message says so.  Such a session cannot be paused. */
bool ckt_ipc_is_shared(char *ret_message, size_t message_size);
/*
 * Whether the session cannot be saved now: it shares something with a session that is not frozen
 * with it, or whose owner has freed it.
 */
bool ckt_ipc_obstacle(struct ckt_worker *worker, char *ret_message, size_t message_size);
/*
 * Other sessions can open nothing of this session until it continues: such an opening would be in
 * no image.
 */
void ckt_ipc_close(void);
void ckt_ipc_reopen(void);
