/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's shim.
 *
 *	communicators	made at the server, each beside what else it does (comm.c); what they are is known here: ranks, rank, device
 *	groups		collected by thread, and sent as one message by the outermost ncclGroupEnd; a call by itself is a group of one (group.c)
 *	collectives	batched, but the first of each kind of a communicator, and of each peer, which waits as NCCL does for the connection
 *	registrations	a hint that is not used: the memory is as good without (memory.c)
 *
 * Functions follow NVIDIA's documentation of NCCL 2.28; they may be called from any thread, a
 * communicator from one at a time.
 */
#pragma once

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/libs/libs.h"
#include "rpc/gen/nccl_codec.h"
#include "rpc/nccl.h"

/* The header declares some without a prototype. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum ckt_nccl_state { CKT_NCCL_PENDING, CKT_NCCL_READY, CKT_NCCL_FAILED };

/* What an ncclComm_t points to. */
struct ckt_nccl_handle {
	struct ckt_lib_object object;
	_Atomic int state; /* enum ckt_nccl_state */
	bool blocking;
	int ranks, rank, device;
	uint8_t identity[CKT_NCCL_ID_BYTES];
	uint32_t children; /* that were split off it or shrunk, so far */
	/* of the session in which what follows is so: a restore makes connections anew */
	uint64_t generation;
	uint32_t met; /* a bit for each function that has been used */
	/* of each rank, bits: has been sent to, has been received from */
	uint8_t *peers;
	struct ckt_nccl_config config; /* what children inherit; names are owned */
	int64_t asked_ns;              /* when its state was asked for last */
	uint64_t operators[CKT_NCCL_OPERATORS_MAX / 64]; /* numbers in use */
};

enum { CKT_NCCL_SENT_TO = 1, CKT_NCCL_RECEIVED_FROM = 2 };

/* ---- comm.c */
/* The session's error as NCCL names it. */
ncclResult_t ckt_nccl_status(CUresult result);
static inline ncclResult_t ckt_nccl_answer(CUresult result, int status)
{
	return result ? ckt_nccl_status(result) : (ncclResult_t)status;
}
/* Opens the library at the server, once. */
ncclResult_t ckt_nccl_enter(const struct ckt_client_table **ret_client);
/* The genuine library's version. */
uint32_t ckt_nccl_version(void);
/* NULL: none, or one that has ended. */
struct ckt_nccl_handle *ckt_nccl_handle(ncclComm_t comm);
/* ncclInvalidArgument where it is none, or is not made yet. */
ncclResult_t ckt_nccl_ready(ncclComm_t comm, struct ckt_nccl_handle **ret_handle);
/*
 * Waits until those are made that block; the first status that is none of success.  Those that were
 * not made are forgotten.
 */
ncclResult_t ckt_nccl_settle(
	struct ckt_nccl_handle *const *made, ncclComm_t *const *places, size_t count);
/* The end of one that is not to be. */
void ckt_nccl_forget(struct ckt_nccl_handle *handle);

/* ---- answers.c: the communicator ends, and its registrations with it. */
void ckt_nccl_registrations_drop(const struct ckt_nccl_handle *comm);

/* ---- group.c */
/* Whether the thread collects. */
bool ckt_nccl_collects(void);
/* A communicator is being made: the group's end waits for it, and puts NULL where there is none. */
ncclResult_t ckt_nccl_collect_comm(struct ckt_nccl_handle *made, ncclComm_t *place);
/* Keeps the error for the group's end too, where the thread collects. */
ncclResult_t ckt_nccl_note(ncclResult_t status);

/* For the generated functions: logs the name once; ncclInvalidUsage. */
int ckt_nccl_unsupported(const char *name, bool *once);

/* A call NAME with its arguments, in the context: CUDA's error.  ret_reply: of begin and wait. */
#define CKT_NCCL_BEGIN(client, call, NAME, name, arguments, flags)               \
	((client)->begin(call, CKT_LIB_PROC(CKT_LIB_NCCL, CKT_NCCL_PROC_##NAME), \
		ckt_##name##_args_size(arguments), flags))

/* Waits for a call that has results; status_ of what could not be asked. */
#define CKT_NCCL_WAIT(client, NAME, name, arguments, ret_results, flags)                       \
	({                                                                                     \
		struct ckt_call call_;                                                         \
		struct ckt_reply reply_;                                                       \
		CUresult done_ = CKT_NCCL_BEGIN(client, &call_, NAME, name, arguments, flags); \
		if (!done_) {                                                                  \
			call_.p = ckt_##name##_args_put(call_.p, arguments);                   \
			done_ = (client)->wait(&call_, &reply_);                               \
			if (!done_) {                                                          \
				done_ = ckt_##name##_res_get(&reply_.results, ret_results)     \
					? CUDA_SUCCESS                                         \
					: CUDA_ERROR_UNKNOWN;                                  \
				(client)->release(&reply_);                                    \
			}                                                                      \
		}                                                                              \
		done_;                                                                         \
	})
