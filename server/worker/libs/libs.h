/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker's forwarded libraries share.
 *
 *	executor --program--> registry.c --> handlers of the library --> genuine library --> its runtime --> libcuda.so.1 (libs/inside)
 *
 * A library comes with a table rpc/api/NAME.api, from which rpc/gen makes its handlers and the list
 * of its functions, and with NAME.c here, which has its struct ckt_library and what the generator
 * cannot know.  CUDA itself is the registry's first entry.
 *
 * Threading: the executor's, but for ckt_library_loaded and the statistics.  Errors are CUresults
 * where they are the session's (no such library, a malformed call, a fault of the context); a
 * library's own status is a result field of its functions.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/wire.h"
#include "server/worker/session/call.h"

struct ckt_object;
struct ckt_worker;

/*
 * The functions of a genuine library, found by name when it is opened (generated:
 * NAME_functions.c).
 */
struct ckt_library_functions {
	const char *const *names;
	/* of the generated struct, in the order of names; NULL: the opened library lacks it */
	void **entries;
	unsigned count;
};

struct ckt_library {
	const char *name; /* of its table */
	/* without the major version: "libcublas.so"; NULL: CUDA, whose driver the worker opens */
	const char *soname;
	enum ckt_lib lib;
	const struct ckt_proc *procs;
	const unsigned *proc_count;
	const struct ckt_library_functions *functions;
	/* Asked once it is open: its version by its own function; 0: unknown. */
	uint32_t (*version)(void);
	/*
	 * What of such a number is the major version: 10000 (the default, 0) of cuBLAS's 130100,
	 * 1000 of cuFFT's 12000.
	 */
	unsigned version_unit;
	/*
	 * The host memory that an object of it is estimated to cost: the genuine library's part and
	 * the notes here; see docs/libraries.md.
	 */
	uint32_t object_bytes;
	/* Ends the real object, whatever its type.  The context that it was made in is current. */
	void (*destroy)(struct ckt_worker *worker, struct ckt_object *object);
	/* That may wait for the GPU, so it runs beside the executor (library_long_call.h), touches nothing of the worker's, and reads nothing of the object but its real
	   handle and its data. */
	bool ends_beside;
	/*
	 * Puts the object's work on that stream for now, with all that depends on it; (CUstream)-1:
	 * on the one that the program set. The library's status.  NULL where streams are arguments
	 * of the library's functions.
	 */
	int (*use_stream)(struct ckt_worker *worker, struct ckt_object *object, CUstream stream);
	/*
	 * At the end of a restore, where a step's handler has left something to be waited for.  0,
	 * or -errno and a sentence; NULL: nothing.
	 */
	int (*loaded)(struct ckt_worker *worker, char *ret_message, size_t message_size);
};

/* ---- registry.c */
/* For tests: a made-up library, found under its number; NULL otherwise. */
extern const struct ckt_library *ckt_library_toy;
/* NULL if this build has no such library. */
const struct ckt_library *ckt_library_of_prog(uint32_t prog);
const struct ckt_library *ckt_library_of(enum ckt_lib lib);
const struct ckt_library *ckt_library_named(const char *name);
/* Where calls of a procedure are counted in ckt_worker.stats; CKT_STATS if they are not. */
uint32_t ckt_stat_index(uint32_t prog, uint32_t proc);
/* The procedure's name, for listings; NULL if there is none. */
const char *ckt_stat_name(uint32_t index);

/* ---- load.c */
struct ckt_library_loaded {
	bool open;
	unsigned major;   /* of its SONAME */
	uint32_t version; /* by its own function */
	char file[4096];  /* that was opened */
};

/*
 * Opens the genuine library, and fills what its `functions` point to; the second time the first
 * answer.  version: the client's own; genuine.h says which file that gives.
 * CUDA_ERROR_SHARED_OBJECT_INIT_FAILED and a sentence that names the library and where it was
 * looked for.
 */
CUresult ckt_library_open(struct ckt_worker *worker, const struct ckt_library *library,
	uint32_t version, char *ret_message, size_t message_size);
const struct ckt_library_loaded *ckt_library_loaded(enum ckt_lib lib);
/* The handler of every library's procedure NAME_open: `arg u32 version`, `res u32 version`. */
int ckt_library_open_call(struct ckt_wcall *call, const struct ckt_library *library);

/* ---- objects.c: handles, plans, descriptors by the client's ids */
struct ckt_library_object {
	const struct ckt_library *library;
	unsigned type; /* as the library numbers its kinds */
	/* the id of the one that it puts its work on; 0: the legacy default stream */
	uint64_t stream;
	/* the library's own notes; malloc'd, freed with the object */
	void *data;
	unsigned beside;               /* calls for it that run beside the executor */
	struct ckt_lib_recipe *recipe; /* how to make it again; see state.h */
};

/* An object for the id, made in the current context. */
CUresult ckt_library_object_add(struct ckt_worker *worker, const struct ckt_library *library,
	unsigned type, uint64_t id, void *real, void *data, struct ckt_object **ret_object);
/* NULL if the id does not name one of that library and type. */
struct ckt_object *ckt_library_object_find(
	struct ckt_worker *worker, enum ckt_lib lib, unsigned type, uint64_t id);
/* Ends the real object: ckt_object_destroy() calls it, and also forgets the object. */
void ckt_library_object_end(struct ckt_worker *worker, struct ckt_object *object);
/* Frees what the object owns; NULL is allowed. */
void ckt_library_object_free(struct ckt_library_object *made);

/*
 * Records the status of a batched call: one that is not 0 is logged once for each function, and the
 * session's next waited call returns it (CUDA_ERROR_UNKNOWN), because nobody waits for this one.
 */
CUresult ckt_library_batched(const struct ckt_wcall *call, int status, bool *once);
