/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shims of forwarded libraries (client/libs/NAME) share: the way to the session, which our
 * libcuda.so.1 has and they have not.
 *
 *	program --> shim libcublas.so.13 --(struct ckt_client_table)--> our libcuda.so.1 --> session
 *
 * A shim links neither of our libraries by name.  It takes the table, libcuda.so.1's one private
 * symbol, from the libcuda.so.1 that the process has, else from the one beside itself.  A table
 * only grows: fields are appended, and `size` says how far it goes.
 *
 * Threading: any thread.  Errors are CUresults; each library has a function that makes its own
 * status of one.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "client/conn/call.h"

/* The library's own functions; what a shim has beside them is hidden. */
#define CKT_LIB_EXPORT __attribute__((visibility("default")))

/* Both are the same in shim and libcuda.so.1, or the shim does without. */
enum { CKT_CLIENT_TABLE_VERSION = 1 };
#define CKT_CLIENT_TABLE_SYMBOL "ckt_client_table"

/* The driver API's own functions, for what spreads its work over devices. */
struct ckt_client_devices {
	CUresult (*count)(int *ret_count);
	/* The primary context of the device with that ordinal; its end for the library. */
	CUresult (*retain)(CUcontext *ret_context, int ordinal);
	CUresult (*release)(int ordinal);
	CUresult (*push)(CUcontext context);
	CUresult (*pop)(CUcontext *ret_context);
	CUresult (*stream_create)(CUstream *ret_stream, unsigned flags);
	CUresult (*stream_wait)(CUstream stream);
	CUresult (*stream_destroy)(CUstream stream);
	CUresult (*pointer_attribute)(
		void *ret_value, CUpointer_attribute attribute, CUdeviceptr address);
};

struct ckt_client_table {
	uint32_t version;
	uint32_t size;
	/*
	 * Initialises CUDA and sees to it that the thread has a context, as the runtime does: the
	 * current one, else the first device's.
	 */
	CUresult (*enter)(void);
	/* The id of the current context; 0: there is none. */
	uint64_t (*context)(void);
	/* As in client/conn/call.h; proc is CKT_LIB_PROC(). */
	CUresult (*begin)(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags);
	CUresult (*queue)(struct ckt_call *call);
	CUresult (*wait)(struct ckt_call *call, struct ckt_reply *ret_reply);
	void (*release)(struct ckt_reply *reply);
	/*
	 * In place of begin, for what puts work on a stream.  Before it, memory that host and
	 * device share is brought to the device; `addresses` are those that the call names, and
	 * host memory among them becomes the device's address of it.
	 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED where the stream captures.
	 */
	CUresult (*before_work)(uint64_t stream, uint64_t *addresses, unsigned count);
	/*
	 * The id of a stream on the wire, where handles such as CU_STREAM_PER_THREAD stand for
	 * others.
	 */
	CUresult (*stream)(CUstream stream, uint64_t *ret_id);
	/*
	 * A new id for an object of a library (CKT_KIND_LIB_OBJECT), and its end; 0: the table is
	 * full.
	 */
	uint64_t (*object_make)(void);
	void (*object_drop)(uint64_t id);
	/* Logs the name once a function and process. */
	void (*unsupported)(const char *name, bool *once);
	/*
	 * Where the stream (its id on the wire) captures, the call becomes the capture's next node
	 * and nothing else is to be done: *ret_captured. Only for calls that put work on that one
	 * stream and answer nothing.  workspace: of workspace_alloc, that the call uses, or 0.
	 */
	CUresult (*capture)(uint64_t stream, uint32_t proc, const void *args, size_t size,
		uint64_t workspace, bool *ret_captured);
	/*
	 * Device memory in the current context for a handle, also in a capture; captured calls that
	 * use it keep it when it is freed.
	 */
	CUresult (*workspace_alloc)(size_t bytes, uint64_t *ret_address);
	CUresult (*workspace_free)(uint64_t address);
	/*
	 * queue, and the library's status where the call was waited for all the same
	 * (CRICKET_SYNC=1), else 0.
	 */
	CUresult (*queue_status)(struct ckt_call *call, int *ret_status);
	/*
	 * A copy between any two memories; async: pinned memory may be copied when the call has
	 * returned.
	 */
	CUresult (*copy_2d)(const CUDA_MEMCPY2D *copy, CUstream stream, bool async);
	/* Of the current context's device: 90 for 9.0. */
	int (*capability)(void);
	/* The current context's device, as the program counts; negative: there is none. */
	int (*device)(void);
	/* The id of a device's primary context, which is retained. */
	CUresult (*device_context)(int device, uint64_t *ret_context);
	/*
	 * Makes the thread's calls those of that context (0: of none), as _context tells; the
	 * program's own stack of contexts stays as it is.
	 */
	void (*use_context)(uint64_t context);
	/* Which of several servers the context's device is at. */
	unsigned (*node)(uint64_t context);
	/*
	 * Rises when the session at the context's server is another than before: restored or moved.
	 */
	uint64_t (*generation)(uint64_t context);
	const struct ckt_client_devices *devices;
	/* True while the stream (its id on the wire) captures. */
	bool (*captures)(uint64_t stream);
};

/* NULL, said once on stderr, where no libcuda.so.1 of ours is to be had. */
const struct ckt_client_table *ckt_lib_client_find(void);

extern const struct ckt_client_table *_Atomic ckt_client_found;

static inline const struct ckt_client_table *ckt_client(void)
{
	const struct ckt_client_table *table = ckt_client_found;
	return __builtin_expect(table != NULL, 1) ? table : ckt_lib_client_find();
}

/*
 * Loads the library at the server, once a process.  proc: of the procedure NAME_open.  version: the
 * library's own.
 */
struct ckt_lib_opened {
	_Atomic bool open;
	uint32_t version;
};
CUresult ckt_lib_open(
	struct ckt_lib_opened *opened, const char *name, uint32_t proc, uint32_t version);

/* ---- For the generated stubs (rpc/gen/emit_forwarded.py) */

#define CKT_LIB_OBJECT_MAGIC 0x434b544c49424831

/*
 * What calls go to: the first member of a shim's own struct, to which the program has a pointer.
 * All libraries' begin alike, because one may take another's: a handle of cuBLAS is one of
 * cuBLASLt.
 */
struct ckt_lib_object {
	uint64_t magic; /* CKT_LIB_OBJECT_MAGIC while it lives */
	uint32_t lib;   /* enum ckt_lib */
	uint32_t pad;
	uint64_t id;
	uint64_t context;      /* that it was made in */
	uint64_t stream;       /* on which it puts its work; an id */
	uint64_t workspace;    /* of workspace_alloc, that its work uses; 0: none */
	uint32_t pointer_mode; /* 0: scalars lie on the host, 1: on the device */
};

/*
 * Puts a scalar, or in device mode its address, into a message's field.  False: NULL, or more bytes
 * than there is room, or none.
 */
bool ckt_lib_scalar(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes);
/* The same of one that may be NULL: a zero on the host, and NULL on the device. */
bool ckt_lib_scalar_or_zero(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes);

/*
 * A call on a stream (its id) that captures, where before_work said so: it becomes a node of the
 * graph.
 */
#define CKT_LIB_CAPTURE(client, stream, workspace, proc, name, args)                    \
	({                                                                              \
		size_t bytes_ = ckt_##name##_args_size(args);                           \
		uint8_t *message_ = malloc(bytes_ + 1);                                 \
		bool captured_ = false;                                                 \
		CUresult done_ = CUDA_ERROR_OUT_OF_MEMORY;                              \
		if (message_) {                                                         \
			ckt_##name##_args_put(message_, args);                          \
			done_ = (client)->capture(                                      \
				stream, proc, message_, bytes_, workspace, &captured_); \
			free(message_);                                                 \
			/* Another thread ended the capture in between. */              \
			if (!done_ && !captured_)                                       \
				done_ = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;          \
		}                                                                       \
		done_;                                                                  \
	})

/* Where a scalar that comes back goes, and its place behind the status. */
struct ckt_lib_value {
	void *value;
	size_t bytes;
	size_t place;
};

/* Waits for a call that gives scalars, and stores them where the status is 0. */
CUresult ckt_lib_wait_values(const struct ckt_client_table *client, struct ckt_call *call,
	const struct ckt_lib_value *values, unsigned count, int *ret_status);

/*
 * ---- accepted_calls.c: what the library has taken once.
 *
 * Programs branch on the status of work (NOT_SUPPORTED for types that do not go together), and
 * nobody waits for work.  So a call is waited for until the library has taken its content once: a
 * hash of all that its status depends on, and of no value in it.
 */
/* Whether work of that content has had status 0. */
bool ckt_lib_taken(uint64_t content);
void ckt_lib_take(uint64_t content);
void ckt_lib_taken_clear(void);
/*
 * All of an address that makes a difference to the library: its alignment, and whether it is NULL.
 */
uint64_t ckt_lib_alignment(uint64_t address);
/*
 * The same of a number of rows, a leading dimension, an address in a call without a heuristic: what
 * it is a multiple of, up to 16 as documented.
 */
uint64_t ckt_lib_number(uint64_t number);
uint64_t ckt_lib_content(const uint64_t *words, unsigned count);
/*
 * Waits for a call whose answer begins with the library's status, and takes its content where that
 * is 0.
 */
CUresult ckt_lib_learn(const struct ckt_client_table *client, struct ckt_call *call,
	uint64_t content, int *ret_status);
