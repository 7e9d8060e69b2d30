/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers of one group ask each other about shared memory and events, one question a
 * connection.
 *
 *	worker --connection from the server (session/group.h): question--> worker (a control thread)
 *	       <--answer, to FETCH with the descriptor of the memory or of the event's page (SCM_RIGHTS)--
 *
 *	FETCH	give me what has this secret; with `restoring`: only as part of the restore of one cut
 *	STILL	is what has this secret still shared?
 *	OPEN	have you anything open that is mine?  LATER: you had, and open it again (ipc_together.c)
 *	LEFT	what has this secret is mine no more: count it, if you have it open (ipc_left.c)
 *	AGAIN	as FETCH, of what I had open until both of us left the GPU (ipc_together.c)
 *
 * Sessions are found by their ids, and what is restored also by the id in its image, which it
 * claims while it is restored.  Anybody's image may claim an id, so there may be several, and each
 * is asked.
 *
 * Threading: ckt_ipc_ask_session from any thread.  Errors: -errno.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/ipc.h"
#include "rpc/job.h"

struct ckt_worker;

#define CKT_IPC_TALK_MAGIC "CKTTALK2"

enum ckt_ipc_want {
	CKT_IPC_FETCH = 1,
	CKT_IPC_STILL = 2,
	CKT_IPC_OPEN = 3,
	CKT_IPC_AGAIN = 4,
	CKT_IPC_LEFT = 5
};
/* Bits of ckt_ipc_answer's `held`. */
enum ckt_ipc_held { CKT_IPC_WITH_JOB = 1, CKT_IPC_TOGETHER = 2 };
enum ckt_ipc_found { CKT_IPC_NONE = 0, CKT_IPC_HERE = 1, CKT_IPC_LATER = 2 };

struct ckt_ipc_question {
	char magic[8];
	uint8_t secret[CKT_IPC_SECRET];
	uint32_t kind;
	uint32_t want;
	uint32_t restoring;
	char session[CKT_IPC_SESSION]; /* the asking one */
};

struct ckt_ipc_answer {
	uint32_t found;
	uint32_t held;         /* is frozen with its job, or with those that it shares with */
	uint64_t whole;        /* bytes behind the descriptor */
	uint64_t offset, size; /* of the allocation */
	/* the driver's: of an event, which has a descriptor with the soft GPU alone */
	CUipcEventHandle event;
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
 * Asks the session's worker.  Of several workers that claim the session's id, one that has what is
 * asked for answers before one that has not.  -ENOENT: nobody of this group has that id; -ESRCH:
 * none of them answers; -ENOTCONN: there is no server to ask.  ret_fd: NULL, or receives the descriptor that came with the answer,
 * else -1; the caller's.
 */
int ckt_ipc_ask_session(const char session[CKT_IPC_SESSION],
	const struct ckt_ipc_question *question, struct ckt_ipc_answer *ret_answer, int *ret_fd);
/* Receives a question from a connection. */
bool ckt_ipc_hear(int connection, struct ckt_ipc_question *ret_question);
/* fd -1: none goes along. */
void ckt_ipc_reply(int connection, const struct ckt_ipc_answer *answer, int fd);
