/*
 * Calls to a worker that are under way; the part of session.c that knows records.  Threading: the
 * loop's thread.
 */
#pragma once

#include "server/daemon/session/session.h"

/* 0 or -errno. */
int ckt_request_connect(struct ckt_session *session, enum ckt_link_kind kind);
/*
 * Ends the connection: what waits for an answer over it gets the error, and the worker drops what
 * it has not begun.
 */
void ckt_request_hang_up(struct ckt_session *session, enum ckt_link_kind kind, int error);
/*
 * worker_long_call.c: as ckt_session_call, for what goes over CKT_LINK_LONG and may take any time
 * as long as it comes on.  deadline_ms: what the worker was told.  From then on it is asked for its
 * progress; where it does not answer, or has not come on for ten minutes, the call ends with
 * -ETIMEDOUT.
 */
int ckt_session_call_long(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, unsigned deadline_ms,
	ckt_request_done done, void *context);
/* What became of a worker, for a message: "session ...: its worker ...: %s". */
const char *ckt_request_problem(int error);
/* Tells everyone who waits that there will be no answer. */
void ckt_request_fail_all(struct ckt_session *session, int error);
