/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What forwarded libraries have made, and how to make it again: the calls that did it, with their
 * argument bytes, in their order.
 *
 *	log	create A | set A | create B | set B | capture (uses A as it is here) | set A | ...
 *
 * Of each object the creating call is kept, and the last call of each that sets something (by
 * procedure, and by the key that its table names).  What a newer call overrules goes, unless a
 * captured call was made while it held, or a call that seals (a plan that is made of what was set
 * before); so the log holds what there is, and not what there was.  A restore runs the same
 * handlers with the same bytes in the same order (state_image.c), and needs to know nothing of any
 * library.
 *
 * The first object of a library in a context stays in the log for good, and is a step of the
 * journal too (journal.h): a library loads its modules then, which moves the addresses of modules
 * that are loaded later.
 *
 * Threading: the executor, or who restores.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/library_step.h"
#include "rpc/wire.h"
#include "server/worker/session/call.h"

struct ckt_object;
struct ckt_worker;

enum {
	CKT_LIB_STEPS_MAX = 1 << 20, /* of a session: as many as objects */
	CKT_LIB_SETS_MAX = 4096,     /* of one object */
	CKT_LIB_USES_MAX = 256,      /* objects of one captured call */
};

struct ckt_lib_step {
	struct ckt_lib_step *next, *previous;
	enum ckt_lib_step_kind kind;
	enum ckt_lib lib;
	uint32_t proc;
	uint64_t id, context;
	uint64_t number; /* rises along the log */
	unsigned refs;   /* of the object, of captured calls, of the journal */
	bool pinned;     /* by the journal */
	bool destroyed;  /* a creating call whose object is gone */
	/*
	 * Device memory that was taken for the object; 0: none.  It lives as long as the object, or
	 * a captured call that uses it.
	 */
	uint64_t workspace, workspace_bytes;
	uint32_t args_bytes;
	uint8_t args[];
};

/* Hangs in a library's object: references. */
struct ckt_lib_recipe {
	struct ckt_lib_step *create;
	struct ckt_lib_step **sets;   /* in the order of the log where one of them seals */
	uint32_t set_count, set_room; /* the room is charged */
	/* so many from the first on are kept as they are: the last of them seals; 0: none does */
	uint32_t sealed;
};

/* ---- state.c */
/*
 * Runs the handler of a call of a library, and remembers the call where its procedure creates or
 * sets.  A handler of such a procedure says in call->status what the library answered where that is
 * not in its result.  The handler's result, or CUDA_ERROR_OUT_OF_MEMORY. One that answers later
 * (CKT_WCALL_LATER) calls ckt_worker_lib_state_done on the executor before ckt_wcall_finish.
 */
int ckt_worker_lib_state_run(struct ckt_wcall *call);
void ckt_worker_lib_state_done(struct ckt_wcall *call, CUresult result);
/* Around the part of such a handler that enters its object; NULL: behind it. */
void ckt_worker_lib_state_resume(const struct ckt_wcall *call);
/* The object goes; NULL is nothing. */
void ckt_worker_lib_recipe_free(struct ckt_lib_recipe *recipe);
struct ckt_lib_step *ckt_worker_lib_log(void);
size_t ckt_worker_lib_log_count(void);
/* Precondition: the step is in the log, or new. */
struct ckt_lib_step *ckt_worker_lib_step_new(enum ckt_lib_step_kind kind,
	const struct ckt_wcall *call, const uint8_t *args, size_t size);
/* Takes over a new step, behind all others. */
void ckt_worker_lib_step_enter(struct ckt_lib_step *step);
void ckt_worker_lib_step_ref(struct ckt_lib_step *step);
void ckt_worker_lib_step_unref(struct ckt_lib_step *step);
enum ckt_lib_life ckt_worker_lib_step_life(const struct ckt_lib_step *step);

/*
 * Device memory for an object that is being created or there: for libraries that would take it
 * inside a capture otherwise.  It is the object's, lies in the session's window, counts in its
 * limit, keeps its address through a restore, and outlives the object where captured calls use it.
 * The second time the first answer.  CUDA_ERROR_OUT_OF_MEMORY: the object has to do without.
 */
CUresult ckt_worker_lib_workspace(struct ckt_worker *worker, struct ckt_object *object,
	uint64_t bytes, uint64_t *ret_address, uint64_t *ret_bytes);

/*
 * The context's memory goes: no workspace of its objects is there any more, also not of those that
 * captured calls use.
 */
void ckt_worker_lib_forget_workspaces(uint64_t context);

/* A restore: the step that is run next is that one, and what it makes is as it was. */
struct ckt_lib_replay {
	uint64_t number, workspace, workspace_bytes;
	/* its object must not be in the table: something else may have its slot */
	bool dead;
};
/* NULL: none is under way. */
void ckt_worker_lib_replay_set(const struct ckt_lib_replay *replay);
bool ckt_worker_lib_is_replay(void);
bool ckt_worker_lib_replay_is_dead(void);
/* Objects that are there for captured calls alone, while a restore lasts. */
/* false: no memory. */
bool ckt_worker_lib_dead_add(struct ckt_object *object);
struct ckt_object *ckt_worker_lib_dead_find(uint64_t id);
/* The caller frees it. */
struct ckt_object *ckt_worker_lib_dead_take(void);
/* Places that were looked at for that so far; for tests. */
uint64_t ckt_worker_lib_dead_looks(void);

/* ---- capture.c */
/* While a call is captured: what its stream is, whatever id it names; else NULL. */
extern CUstream ckt_lib_capture_stream;
/* And the id of the captured call; else 0. */
extern uint64_t ckt_lib_capture_id;
/* A look-up found the object: the call being captured uses it. */
void ckt_worker_lib_capture_use(struct ckt_worker *worker, struct ckt_object *object);

/*
 * What can be captured: a call that answers nothing, and that makes, sets or ends no object.  An
 * object that ended would still be used by its call.
 */
bool ckt_worker_lib_is_work(const struct ckt_proc *proc);

/* A captured call: hangs in its object, whose `real` is the driver's graph. */
struct ckt_lib_call {
	struct ckt_lib_step *step;
	/* what made and set the objects that it used, as it was then */
	struct ckt_lib_step **uses;
	uint32_t use_count;
	uint32_t node_count; /* of the driver's graph */
	uint64_t charged;    /* of the host's memory */
};
/* Captures the call in the current context.  A context's private stream is made at the first. */
CUresult ckt_worker_lib_call_make(struct ckt_worker *worker, uint64_t id, enum ckt_lib lib,
	uint32_t proc, const uint8_t *args, size_t size);
/* What hangs in the object goes; the object stays. */
void ckt_worker_lib_call_fini(struct ckt_object *object);
void ckt_worker_lib_call_free(struct ckt_lib_call *call);
/* NULL where there is none: its capture failed, or it has ended. */
const struct ckt_lib_call *ckt_worker_lib_call_find(
	struct ckt_worker *worker, uint64_t id, CUgraph *ret_graph);
/* The context goes, with its streams. */
void ckt_worker_lib_capture_forget_context(uint64_t context);

/* ---- state_image.c */
struct ckt_loading;
struct ckt_saving;
struct ckt_image_journal;
/* Places that checks and restores looked at, all in all; for tests. */
extern uint64_t ckt_lib_load_looks;
int ckt_worker_lib_save(struct ckt_saving *s);
/* Before anything is touched: whether all of it can be made again here.  Opens the libraries. */
int ckt_worker_lib_load_check(struct ckt_loading *l);
/* The journal's step of this kind. */
int ckt_worker_lib_load_first(struct ckt_loading *l, const struct ckt_image_journal *entry);
int ckt_worker_lib_load(struct ckt_loading *l);
