/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the worker's forwarded libraries.
 *
 *	executor --program--> registry.c --> handlers of the library --> genuine library
 *	         --> its runtime --> libcuda.so.1 (libs/inside)
 *
 * Each library has a table rpc/api/NAME.api, from which rpc/gen makes its handlers and the list of
 * its functions, and a NAME.c here with its struct ckt_library and the parts that the generator
 * cannot make.  CUDA itself is the first entry of the registry.
 *
 * Threading: the executor's, except ckt_library_loaded and the statistics.  Errors of the session
 * (no such library, a malformed call, a fault of the context) are CUresults; a library's own status
 * is a result field of its functions.
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
 * The functions of a genuine library, found by name when the library is opened (generated:
 * NAME_functions.c).
 */
struct ckt_library_functions {
	const char *const *names;
	/*
	 * the entries of the generated struct, in the order of names; NULL: the opened library
	 * lacks the function
	 */
	void **entries;
	unsigned count;
};

struct ckt_library {
	const char *name; /* the name of its table */
	/* without the major version: "libcublas.so"; NULL: CUDA, whose driver the worker opens */
	const char *soname;
	enum ckt_lib lib;
	const struct ckt_proc *procs;
	const unsigned *proc_count;
	const struct ckt_library_functions *functions;
	/* The opened library's version, as its own function reports it; 0: unknown. */
	uint32_t (*version)(void);
	/*
	 * The divisor that gives the major version: 10000 (the default, for 0) for cuBLAS's 130100,
	 * 1000 for cuFFT's 12000.
	 */
	unsigned version_unit;
	/*
	 * The estimated host memory of one object: the genuine library's part and the notes kept
	 * here; see docs/libraries.md.
	 */
	uint32_t object_bytes;
	/*
	 * Destroys the real object of any type.  Precondition: the context that it was made in is
	 * current.
	 */
	void (*destroy)(struct ckt_worker *worker, struct ckt_object *object);
	/*
	 * destroy may wait for the GPU.  It then runs beside the executor (library_long_call.h),
	 * touches nothing of the worker, and reads only the object's real handle and its data.
	 */
	bool ends_beside;
	/*
	 * Moves the object's work, and all that depends on it, to that stream for now;
	 * (CUstream)-1: to the stream that the program set.  Returns the library's status.  NULL if
	 * the library's functions take streams as arguments.
	 */
	int (*use_stream)(struct ckt_worker *worker, struct ckt_object *object, CUstream stream);
	/*
	 * Runs at the end of a restore, for a library whose steps left something to wait for.  0,
	 * or -errno and a sentence; NULL: nothing to wait for.
	 */
	int (*loaded)(struct ckt_worker *worker, char *ret_message, size_t message_size);
};

/* ---- registry.c */
/* For tests: a made-up library, found by its number; NULL otherwise. */
extern const struct ckt_library *ckt_library_toy;
/* NULL if this build has no such library. */
const struct ckt_library *ckt_library_of_prog(uint32_t prog);
const struct ckt_library *ckt_library_of(enum ckt_lib lib);
const struct ckt_library *ckt_library_named(const char *name);
/* The index in ckt_worker.stats that counts calls of a procedure; CKT_STATS if none does. */
uint32_t ckt_stat_index(uint32_t prog, uint32_t proc);
/* The procedure's name, for listings; NULL if the index has none. */
const char *ckt_stat_name(uint32_t index);

/* ---- load.c */
struct ckt_library_loaded {
	bool open;
	unsigned major;   /* the major version of its SONAME */
	uint32_t version; /* as its own function reports it */
	char file[4096];  /* the opened file */
};

/*
 * Opens the genuine library and fills the entries of its `functions`. A repeated call returns the
 * first result.  version: the client's own; genuine.h says which file it selects.
 * CUDA_ERROR_SHARED_OBJECT_INIT_FAILED and a sentence that names the library and the directories
 * that were searched.
 */
CUresult ckt_library_open(struct ckt_worker *worker, const struct ckt_library *library,
	uint32_t version, char *ret_message, size_t message_size);
const struct ckt_library_loaded *ckt_library_loaded(enum ckt_lib lib);
/* The handler of every library's procedure NAME_open: `arg u32 version`, `res u32 version`. */
int ckt_library_open_call(struct ckt_wcall *call, const struct ckt_library *library);

/*
 * ---- objects.c: handles, plans and descriptors by the client's ids
 */
struct ckt_library_object {
	const struct ckt_library *library;
	unsigned type; /* as the library numbers its types */
	/* the id of the stream that carries its work; 0: the legacy default stream */
	uint64_t stream;
	/* the library's own notes; malloc'd, freed with the object */
	void *data;
	unsigned beside;               /* calls for this object that run beside the executor */
	struct ckt_lib_recipe *recipe; /* how to make it again; see state.h */
};

/* Adds an object for the id, made in the current context. */
CUresult ckt_library_object_add(struct ckt_worker *worker, const struct ckt_library *library,
	unsigned type, uint64_t id, void *real, void *data, struct ckt_object **ret_object);
/* NULL if the id does not name an object of that library and type. */
struct ckt_object *ckt_library_object_find(
	struct ckt_worker *worker, enum ckt_lib lib, unsigned type, uint64_t id);
/* Ends the real object.  ckt_object_destroy() calls this function and then forgets the object. */
void ckt_library_object_end(struct ckt_worker *worker, struct ckt_object *object);
/* Frees what the object owns; NULL is allowed. */
void ckt_library_object_free(struct ckt_library_object *made);

/*
 * Records the status of a batched call.  A status that is not 0 is logged once for each function.
 * Because nobody waits for a batched call, the session's next waited call returns the error as
 * CUDA_ERROR_UNKNOWN.
 */
CUresult ckt_library_batched(const struct ckt_wcall *call, int status, bool *once);
