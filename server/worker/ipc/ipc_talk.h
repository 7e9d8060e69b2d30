/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers of one server ask each other about shared memory and events, one question a
 * connection.
 *
 *	worker --abstract socket: question--> worker (a control thread)
 *	       <--answer, where memory is fetched with its descriptor (SCM_RIGHTS)--
 *
 *	FETCH	give me what has this secret; with `restoring`: only as part of the restore of one cut
 *	STILL	is what has this secret still shared?
 *	OPEN	have you anything open that is mine?
 *
 * A handle says where its owner's socket was when it was made.  A session that was restored has
 * another one, and leaves a notice where those who look for the session find it (ipc_notice.h).
 *
 * Threading: ckt_ipc_ask from any thread.  Errors: -errno.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/ipc.h"
#include "rpc/job.h"

struct ckt_worker;

#define CKT_IPC_TALK_MAGIC "CKTTALK1"

enum ckt_ipc_want { CKT_IPC_FETCH = 1, CKT_IPC_STILL = 2, CKT_IPC_OPEN = 3 };
enum ckt_ipc_found { CKT_IPC_NONE = 0, CKT_IPC_HERE = 1, CKT_IPC_LATER = 2 };

struct ckt_ipc_question {
	char magic[8];
	uint8_t secret[CKT_IPC_SECRET];
	uint32_t uid; /* whose session asks */
	uint32_t kind;
	uint32_t want;
	uint32_t restoring;
	char session[CKT_IPC_SESSION]; /* the asking one */
	char socket[CKT_IPC_SOCKET];
	uint32_t pad;
};

struct ckt_ipc_answer {
	uint32_t found;
	uint32_t held;          /* is frozen with its job */
	uint64_t whole;         /* bytes behind the descriptor */
	uint64_t offset, size;  /* of the allocation */
	CUipcEventHandle event; /* the driver's: of an event, which has no descriptor */
	/*
	 * which of several copies of the session answers; with `restoring`: which one its image was
	 * taken of
	 */
	uint64_t copy;
	char session[CKT_IPC_SESSION]; /* that answers */
	char job[CKT_JOB_NAME_MAX + 1];
	char pad[3];
};

/* Fills in the asking session. */
struct ckt_ipc_question ckt_ipc_question(
	struct ckt_worker *worker, enum ckt_ipc_want want, uint32_t kind, const uint8_t *secret);
/*
 * -ESRCH if nobody answers.  ret_fd: NULL, or receives the descriptor that came with the answer,
 * else -1; the caller's.
 */
int ckt_ipc_ask(const char socket[CKT_IPC_SOCKET], const struct ckt_ipc_question *question,
	struct ckt_ipc_answer *ret_answer, int *ret_fd);
/*
 * The same for the session's worker, wherever it is now: at the handle's address, else at its
 * notice's.
 */
int ckt_ipc_ask_session(struct ckt_worker *worker, const struct ckt_ipc_handle *handle,
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd);
/*
 * Receives a question from a connection; accepts only processes of this user and this session's
 * owner.
 */
bool ckt_ipc_hear(struct ckt_worker *worker, int connection, struct ckt_ipc_question *ret_question);
/* fd -1: none goes along. */
void ckt_ipc_reply(int connection, const struct ckt_ipc_answer *answer, int fd);
