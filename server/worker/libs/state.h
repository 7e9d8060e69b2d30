/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of the calls that made the objects of forwarded libraries, with their argument bytes and
 * in their order.  A restore makes the objects again from this log.
 *
 *	log	create A | set A | create B | set B | capture (uses this A) | set A | ...
 *
 * The log keeps the creating call of each object, and the latest call of each kind that sets
 * something (a kind is a procedure and the key that its table names).  A newer setting replaces an
 * older one, unless a captured call used the older one, or a call sealed it (a call seals when it
 * makes a plan from the earlier settings).  So the log describes the present state and not the
 * history.  A restore runs the same handlers with the same bytes in the same order (state_image.c),
 * and needs no knowledge of any library.
 *
 * The first object of a library in a context stays in the log for good and is also a step of the
 * journal (journal.h): the library loads its modules then, and these move the addresses of modules
 * that are loaded later.
 *
 * Threading: the executor or the restoring thread.
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
	CKT_LIB_STEPS_MAX = 1 << 20, /* per session: as many as objects */
	CKT_LIB_SETS_MAX = 4096,     /* per object */
	CKT_LIB_USES_MAX = 256,      /* objects of one captured call */
};

struct ckt_lib_step {
	struct ckt_lib_step *next, *previous;
	enum ckt_lib_step_kind kind;
	enum ckt_lib lib;
	uint32_t proc;
	uint64_t id, context;
	uint64_t number; /* rises along the log */
	unsigned refs;   /* held by the object, by captured calls, by the journal */
	bool pinned;     /* by the journal */
	bool destroyed;  /* a creating call whose object is gone */
	/*
	 * Device memory that was allocated for the object; 0: none.  It lives as long as the object
	 * or a captured call that uses it.
	 */
	uint64_t workspace, workspace_bytes;
	uint32_t args_bytes;
	uint8_t args[];
};

/* The references of a library's object to its steps. */
struct ckt_lib_recipe {
	struct ckt_lib_step *create;
	struct ckt_lib_step **sets;   /* in the order of the log if a set call seals */
	uint32_t set_count, set_room; /* the room is charged */
	/*
	 * the first `sealed` settings stay as they are, and the last of these seals; 0: none does
	 */
	uint32_t sealed;
};

/* ---- state.c */
/*
 * Runs the handler of a library's call, and logs the call if its procedure creates or sets.  The
 * handler of such a procedure puts the library's status into call->status if its result does not
 * carry that status.  Returns the handler's result, or CUDA_ERROR_OUT_OF_MEMORY.  A handler that
 * replies later (CKT_WCALL_LATER) calls ckt_worker_lib_state_done on the executor before
 * ckt_wcall_finish.
 */
int ckt_worker_lib_state_run(struct ckt_wcall *call);
void ckt_worker_lib_state_done(struct ckt_wcall *call, CUresult result);
/* Brackets the part of such a handler that enters its object: the call before it, NULL after it. */
void ckt_worker_lib_state_resume(const struct ckt_wcall *call);
/* Frees the recipe of an object that ends; NULL is allowed. */
void ckt_worker_lib_recipe_free(struct ckt_lib_recipe *recipe);
struct ckt_lib_step *ckt_worker_lib_log(void);
size_t ckt_worker_lib_log_count(void);
/*
 * A new step with a copy of the arguments, not in the log yet; NULL if there is no memory.  The
 * caller owns one reference.
 */
struct ckt_lib_step *ckt_worker_lib_step_new(enum ckt_lib_step_kind kind,
	const struct ckt_wcall *call, const uint8_t *args, size_t size);
/* Appends a new step to the log and takes it over. */
void ckt_worker_lib_step_enter(struct ckt_lib_step *step);
void ckt_worker_lib_step_ref(struct ckt_lib_step *step);
void ckt_worker_lib_step_unref(struct ckt_lib_step *step);
enum ckt_lib_life ckt_worker_lib_step_life(const struct ckt_lib_step *step);

/*
 * Allocates device memory for an object that exists or is being created, for libraries that would
 * otherwise allocate inside a capture.  The memory belongs to the object, lies in the session's
 * window, counts in its limit, keeps its address through a restore, and outlives the object while
 * captured calls use it.  A repeated call returns the first result.  CUDA_ERROR_OUT_OF_MEMORY: the
 * object has no workspace.
 */
CUresult ckt_worker_lib_workspace(struct ckt_worker *worker, struct ckt_object *object,
	uint64_t bytes, uint64_t *ret_address, uint64_t *ret_bytes);

/*
 * The context's memory ends: forgets the workspaces of all its objects, including those that
 * captured calls use.
 */
void ckt_worker_lib_forget_workspaces(uint64_t context);

/*
 * A restore: the recorded step that the next handler repeats.  The new step gets its number and its
 * workspace.
 */
struct ckt_lib_replay {
	uint64_t number, workspace, workspace_bytes;
	/* its object must not be in the table: another object may have its slot */
	bool dead;
};
/* NULL: no replay is running. */
void ckt_worker_lib_replay_set(const struct ckt_lib_replay *replay);
bool ckt_worker_lib_is_replay(void);
bool ckt_worker_lib_replay_is_dead(void);
/* Objects that exist only for captured calls, until the restore ends. */
/* False if there is no memory. */
bool ckt_worker_lib_dead_add(struct ckt_object *object);
struct ckt_object *ckt_worker_lib_dead_find(uint64_t id);
/* The caller frees it. */
struct ckt_object *ckt_worker_lib_dead_take(void);
/* Places that ckt_worker_lib_dead_find has probed so far; for tests. */
uint64_t ckt_worker_lib_dead_looks(void);

/* ---- capture.c */
/* During a capture, the stream of every call, whatever id the call names; otherwise NULL. */
extern CUstream ckt_lib_capture_stream;
/* During a capture, the id of the captured call; otherwise 0. */
extern uint64_t ckt_lib_capture_id;
/* A look-up found the object, so the call being captured uses it. */
void ckt_worker_lib_capture_use(struct ckt_worker *worker, struct ckt_object *object);

/*
 * Whether a call can be captured: it returns nothing, and it makes, sets or ends no object.  A call
 * that ended an object could not run again, because the captured call would still use the object.
 */
bool ckt_worker_lib_is_work(const struct ckt_proc *proc);

/* A captured call.  Its object points to it; the object's `real` is the driver's graph. */
struct ckt_lib_call {
	struct ckt_lib_step *step;
	/* the steps that made and set the used objects, as they were at the capture */
	struct ckt_lib_step **uses;
	uint32_t use_count;
	uint32_t node_count; /* nodes of the driver's graph */
	uint64_t charged;    /* host memory */
};
/*
 * Captures the call in the current context.  The first capture in a context makes its private
 * stream.
 */
CUresult ckt_worker_lib_call_make(struct ckt_worker *worker, uint64_t id, enum ckt_lib lib,
	uint32_t proc, const uint8_t *args, size_t size);
/* Frees the captured call of the object; the object stays. */
void ckt_worker_lib_call_fini(struct ckt_object *object);
void ckt_worker_lib_call_free(struct ckt_lib_call *call);
/* NULL if there is none: its capture failed, or the call has ended. */
const struct ckt_lib_call *ckt_worker_lib_call_find(
	struct ckt_worker *worker, uint64_t id, CUgraph *ret_graph);
/* The context ends, with its private stream. */
void ckt_worker_lib_capture_forget_context(uint64_t context);

/* ---- state_image.c */
struct ckt_loading;
struct ckt_saving;
struct ckt_image_journal;
/* Places that checks and restores probed, in total; for tests. */
extern uint64_t ckt_lib_load_looks;
int ckt_worker_lib_save(struct ckt_saving *s);
/*
 * Opens the libraries and checks that every step can be repeated here, before the restore changes
 * anything.
 */
int ckt_worker_lib_load_check(struct ckt_loading *l);
/* Runs the journal's step of this kind. */
int ckt_worker_lib_load_first(struct ckt_loading *l, const struct ckt_image_journal *entry);
int ckt_worker_lib_load(struct ckt_loading *l);
