/*
 * Memory and events shared between sessions of a node.  The owner's worker keeps a descriptor of what was exported and gives it to any worker of the
 * same user that knows the secret; the other maps it in its own window.
 *
 *	importing worker --abstract socket: secret, user--> owner's worker (a control thread)
 *	                 <--SCM_RIGHTS: the memory's descriptor, where in it the allocation lies--
 *
 * Of an event it gives the handle that the driver has for it.  A session that shares anything is neither saved nor paused: the other's half would be elsewhere.
 *
 * Threading: the executor's, but for ckt_ipc_serve.  Errors: CUresult.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "rpc/ipc.h"

struct ckt_worker;

/* The socket that other workers come to, or -1: then nothing is shared.  Called once, before any thread. */
int ckt_ipc_listen(void);
/* One caller, within a second or two. */
void ckt_ipc_serve(struct ckt_worker *worker);
/* The memory goes: nobody opens it any more, and who has it open keeps it. */
void ckt_ipc_forget(uint64_t address_or_id);
void ckt_ipc_forget_context(struct ckt_worker *worker, uint64_t context);
/* An imported physical object is released, an imported event destroyed. */
void ckt_ipc_physical_gone(void);
void ckt_ipc_event_gone(void);
/* Whether anything is shared; then the message says so. */
bool ckt_ipc_obstacle(char *ret_message, size_t message_size);
