/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the shims of forwarded libraries (client/libs/NAME): the access to the session,
 * which only our libcuda.so.1 has.
 *
 *	program --> shim libcublas.so.13 --(struct ckt_client_table)--> our libcuda.so.1 --> session
 *
 * A shim links neither of our libraries by name.  It takes the table, libcuda.so.1's one private
 * symbol, from the process's libcuda.so.1.  If the process has none, it takes the table from the
 * libcuda.so.1 beside itself.  A table only grows: new fields are appended, and `size` is the
 * table's size.
 *
 * Threading: any thread.  Errors are CUresults; each library has a function that converts them into
 * its own status.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "client/conn/call.h"

/* Exports the library's own functions; everything else in a shim is hidden. */
#define CKT_LIB_EXPORT __attribute__((visibility("default")))

/* The shim uses the table only if both constants are the same in libcuda.so.1. */
enum { CKT_CLIENT_TABLE_VERSION = 1 };
#define CKT_CLIENT_TABLE_SYMBOL "ckt_client_table"

/* Functions of the driver API, for libraries that use several devices. */
struct ckt_client_devices {
	CUresult (*count)(int *ret_count);
	/*
	 * The primary context of the device with that ordinal; release ends the library's use of
	 * it.
	 */
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
	 * Initialises CUDA and ensures that the thread has a context, as the runtime does: the
	 * current context, or else the first device's.
	 */
	CUresult (*enter)(void);
	/* The id of the current context; 0 if there is none. */
	uint64_t (*context)(void);
	/* As in client/conn/call.h; proc is CKT_LIB_PROC(). */
	CUresult (*begin)(struct ckt_call *call, uint32_t proc, size_t args_bytes, unsigned flags);
	CUresult (*queue)(struct ckt_call *call);
	CUresult (*wait)(struct ckt_call *call, struct ckt_reply *ret_reply);
	void (*release)(struct ckt_reply *reply);
	/*
	 * Called instead of begin by calls that put work on a stream.  First it copies memory that
	 * host and device share to the device.  `addresses` are the addresses that the call names.
	 * A host address among them is replaced by its device address.
	 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream captures.
	 */
	CUresult (*before_work)(uint64_t stream, uint64_t *addresses, unsigned count);
	/*
	 * The stream's id on the wire.  Handles such as CU_STREAM_PER_THREAD stand for other
	 * streams.
	 */
	CUresult (*stream)(CUstream stream, uint64_t *ret_id);
	/*
	 * Makes a new id for an object of a library (CKT_KIND_LIB_OBJECT); 0: the table is full.
	 * object_drop frees the id.
	 */
	uint64_t (*object_make)(void);
	void (*object_drop)(uint64_t id);
	/* Logs the name once per function and process. */
	void (*unsupported)(const char *name, bool *once);
	/*
	 * If the stream (its id on the wire) captures, adds the call to the capture as its next
	 * node.  The function then sets *ret_captured, and the caller is done.  Only for calls that
	 * put work on that one stream and return nothing. workspace: memory from workspace_alloc
	 * that the call uses, or 0.
	 */
	CUresult (*capture)(uint64_t stream, uint32_t proc, const void *args, size_t size,
		uint64_t workspace, bool *ret_captured);
	/*
	 * Device memory in the current context for a handle, also during a capture.  Captured calls
	 * that use this memory keep it after it is freed.
	 */
	CUresult (*workspace_alloc)(size_t bytes, uint64_t *ret_address);
	CUresult (*workspace_free)(uint64_t address);
	/*
	 * The same as queue. *ret_status is the library's status if the call was waited for
	 * (CRICKET_SYNC=1), or else 0.
	 */
	CUresult (*queue_status)(struct ckt_call *call, int *ret_status);
	/*
	 * A copy between any two memories. async: pinned memory may be copied after the call has
	 * returned.
	 */
	CUresult (*copy_2d)(const CUDA_MEMCPY2D *copy, CUstream stream, bool async);
	/* The compute capability of the current context's device: 90 for 9.0. */
	int (*capability)(void);
	/* The program's number of the current context's device; negative if there is none. */
	int (*device)(void);
	/* The id of a device's primary context.  Retains that context. */
	CUresult (*device_context)(int device, uint64_t *ret_context);
	/*
	 * Sets the context (an id; 0: none) of the thread's calls.  The program's own stack of
	 * contexts does not change.
	 */
	void (*use_context)(uint64_t context);
	/* The number of the server that the context's device belongs to. */
	unsigned (*node)(uint64_t context);
	/*
	 * A number that grows when the session at the context's server changes: when it is restored
	 * or moved.
	 */
	uint64_t (*generation)(uint64_t context);
	const struct ckt_client_devices *devices;
	/* True while the stream (its id on the wire) captures. */
	bool (*captures)(uint64_t stream);
};

/* NULL, logged once on stderr, if our libcuda.so.1 cannot be found. */
const struct ckt_client_table *ckt_lib_client_find(void);

extern const struct ckt_client_table *_Atomic ckt_client_found;

static inline const struct ckt_client_table *ckt_client(void)
{
	const struct ckt_client_table *table = ckt_client_found;
	return __builtin_expect(table != NULL, 1) ? table : ckt_lib_client_find();
}

/*
 * Loads the library at the server, once per process. proc: the procedure NAME_open. version: the
 * library's own version.
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
 * The first member of each shim's own structs, to which the program has a pointer.  The structs of
 * all libraries begin alike, because one library may take another's: a handle of cuBLAS is also a
 * handle of cuBLASLt.
 */
struct ckt_lib_object {
	uint64_t magic; /* CKT_LIB_OBJECT_MAGIC until the object is destroyed */
	uint32_t lib;   /* enum ckt_lib */
	uint32_t pad;
	uint64_t id;
	uint64_t context;      /* in which it was made */
	uint64_t stream;       /* id of the stream for its work */
	uint64_t workspace;    /* memory from workspace_alloc that its work uses; 0: none */
	uint32_t pointer_mode; /* 0: scalars are on the host, 1: on the device */
};

/*
 * Puts a scalar, or in device mode its address, into a message's field.  False if value is NULL, or
 * if bytes is 0 or larger than the room.
 */
bool ckt_lib_scalar(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes);
/* The same for a scalar that may be NULL: a zero on the host, NULL on the device. */
bool ckt_lib_scalar_or_zero(
	uint8_t *field, size_t room, uint32_t pointer_mode, const void *value, size_t bytes);

/*
 * Adds a call on a capturing stream (its id) to the graph, after before_work reported the capture.
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

/* The destination of a returned scalar, and its place after the status. */
struct ckt_lib_value {
	void *value;
	size_t bytes;
	size_t place;
};

/* Waits for a call that returns scalars, and stores them if the status is 0. */
CUresult ckt_lib_wait_values(const struct ckt_client_table *client, struct ckt_call *call,
	const struct ckt_lib_value *values, unsigned count, int *ret_status);

/*
 * ---- accepted_calls.c: contents that the library accepted once.
 *
 * Programs branch on the status of calls that put work on a stream (NOT_SUPPORTED for types that do
 * not fit together).  Such calls are otherwise batched.  So the client waits for a call until the
 * library has accepted its content once.  The content is a hash of everything that the status
 * depends on, without the values of the work.
 */
/* Whether a call with that content had status 0. */
bool ckt_lib_taken(uint64_t content);
void ckt_lib_take(uint64_t content);
void ckt_lib_taken_clear(void);
/*
 * The properties of an address that matter to the library: its alignment, and whether it is NULL.
 */
uint64_t ckt_lib_alignment(uint64_t address);
/*
 * The same for a number of rows, a leading dimension, or an address in a call without a heuristic.
 * The result is the largest power of two that divides it, at most 16 as documented.
 */
uint64_t ckt_lib_number(uint64_t number);
uint64_t ckt_lib_content(const uint64_t *words, unsigned count);
/*
 * Waits for a call whose reply begins with the library's status, and records its content if the
 * status is 0.
 */
CUresult ckt_lib_learn(const struct ckt_client_table *client, struct ckt_call *call,
	uint64_t content, int *ret_status);
