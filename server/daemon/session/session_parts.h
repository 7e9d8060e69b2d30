/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of session.h share, for them alone.
 *
 *	session_spec.c   what a session is to be
 *	session_gpus.c   the GPUs that it sees
 *	session_spawn.c  its worker's process; session_warm.c: one that was started ahead
 *	session_start.c  what the worker is told, and what it answers
 *	session_name.c   its ID and its owner, which an image may name
 *	session_adopt.c  sessions of an earlier server
 *	session_client.c its clients
 *	session_end.c    the end of its worker
 *
 * Threading: the loop's thread.  Errors: 0 or -errno, with the reason where there is room for it.
 */
#pragma once

#include "rpc/greeting.h"
#include "server/daemon/server.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session.h"

enum {
	/* The client of a new session waits longer; a restore reads the whole image. */
	CKT_SESSION_START_TIMEOUT_MS = CKT_HELLO_START_MS,
	CKT_SESSION_KILL_TIMEOUT_MS = 5000, /* freeing a large context takes long */
	CKT_SESSION_CALL_TIMEOUT_MS = 10000,
};

/* ---- session.c */

/* The file of its worker's socket. */
void ckt_session_path(const struct ckt_session *session, char ret_path[CKT_PATH_MAX]);
/* The server's list, in the order of IDs; the caller counts sessions (session_count). */
void ckt_session_insert(struct ckt_session *session);
void ckt_session_take_out(struct ckt_session *session);
/* Calls each once, and frees the list. */
void ckt_session_tell_waiters(
	struct ckt_wait **list, struct ckt_session *session, int error, const char *message);
/* In no list, and without a worker; NULL without memory.  The caller's, for ckt_session_free. */
struct ckt_session *ckt_session_new(struct ckt_server *server, const char *id);
/* keep_socket: the socket's file, the owner's file and the marks stay. */
void ckt_session_free(struct ckt_session *session, bool keep_socket);

/* ---- session_end.c */

/* Takes the end of a child from the kernel.  ret_bad: nobody wanted it. */
void ckt_session_describe_end(
	struct ckt_session *session, char *ret_text, size_t text_size, bool *ret_bad);
/* The worker is dead, and nothing that it sent is wanted any more: tells all who wait, and frees the session. */
void ckt_session_worker_gone(struct ckt_source *source, uint32_t events);
/* From here on ckt_session_worker_gone follows. */
int ckt_session_watch_worker(struct ckt_session *session, pid_t pid);

/* ---- session_name.c */

/* Tells the worker its owner, and our seal of that for its images. */
int ckt_session_tell_owner(struct ckt_session *session);
/* Marks that the session was parked or has moved: it is here. */
void ckt_session_remove_marks(struct ckt_session *session);
/* The session of that ID is gone: the one that was to replace it takes its name. */
void ckt_session_inherit_name(struct ckt_server *server, const char *id);
/* A ckt_request_done.  The image names the session; until then the socket has a temporary name. */
void ckt_session_restored_named(
	struct ckt_session *session, void *context, int error, void *result);

/* ---- session_gpus.c */

void ckt_session_ask_share(const struct ckt_session *session, struct ckt_share *ret_share);
/*
 * A program may see fewer GPUs than the server gives it, in an order of its own, but never more.
 * -ENODEV if none remains, -EINVAL if one is named twice.
 */
int ckt_session_narrow(struct ckt_session *session, const ckt_hello_args *hello);
/*
 * The server's GPUs; the requested one changes places with the first, so that a session's further
 * ones stay.  How many of share->gpus count; 0: all that exist.
 */
u_int ckt_session_list_gpus(const struct ckt_session *session, struct ckt_share *share);

/* ---- session_spec.c */

/* The session with its id, and no worker yet. */
int ckt_session_from_spec(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size);

/* ---- session_spawn.c */

struct ckt_cgroup_limits ckt_session_cgroup_limits(const struct ckt_session *session);
/* Starts its worker, and watches it.  On failure the session is freed. */
int ckt_session_spawn(struct ckt_session *session, char *ret_message, size_t message_size);
/* Of session->pidfd: the warm worker that could not take the restore has ended: a fresh one can. */
void ckt_session_start_afresh(struct ckt_source *source, uint32_t events);

/* ---- session_warm.c */

/* A warm worker that fits becomes the session, which it replaces. */
bool ckt_session_take_warm(struct ckt_session **session);

/* ---- session_start.c */

/* Tells the new worker what it becomes.  On failure ckt_session_worker_gone cleans up. */
int ckt_session_tell(struct ckt_session *session, const struct ckt_session_spec *spec);
/* It does not start: its waiters hear this once its worker is gone. */
void ckt_session_refuse(struct ckt_session *session, int error, const char *message);
/* The worker has started, or been restored. */
void ckt_session_live(struct ckt_session *session);
