/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control calls, spread over several files: control.c (listings, simple images), stage.c
 * (images that travel), image.c (chains, held sessions), pause.c, events.c, trace.c.  Each gets the decoded
 * arguments and answers with ckt_peer_reply, at once or from a callback with the peer held;
 * passed_fd is the descriptor that came with the call or -1; the function that takes it over sets
 * it to -1.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/peer/peer.h"
#include "server/daemon/session/session.h"

void ckt_control_result_set(ckt_control_result *result, char buffer[CKT_MESSAGE_MAX],
	ckt_control_status status, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A session that the peer may see. NULL: result says why. */
struct ckt_session *ckt_control_select(struct ckt_peer *peer, const char *prefix,
	ckt_control_result *ret_result, char buffer[CKT_MESSAGE_MAX]);
/* Why a restore cannot even begin; empty if it can. */
void ckt_control_restore_obstacle(struct ckt_peer *peer, int gpu, char buffer[CKT_MESSAGE_MAX]);

/*
 * A cricketctl of an older build passes a directory.  The server never opens it, because it cannot
 * tell whose rights it carries.
 */
#define CKT_NO_BROKER \
	"the call came without a file broker: use the cricketctl of the server's version"

/* image.c: the peer ends: releases what it holds, closes what it passed. */
void ckt_daemon_image_peer_gone(struct ckt_peer *peer);
/* No connection holds the session any more. */
void ckt_daemon_image_let_go(struct ckt_session *session);

/* As LIST tells of the session.  Strings stay the session's. */
ckt_control_session ckt_control_describe(const struct ckt_session *session);
/* Asks its worker for its status; done gets a ckt_worker_status_res.  0 or -errno. */
int ckt_control_ask_status(
	struct ckt_session *session, int timeout_ms, ckt_request_done done, void *context);
/* What done does with it first: the session takes over its strings. */
void ckt_control_keep_status(
	struct ckt_session *session, int error, struct ckt_worker_status_res *status);
void ckt_control_watch(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_connections(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_trace(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_trace_read(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_trace_peer_gone(struct ckt_peer *peer);
void ckt_control_stage_make(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_stage_list(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_stage_remove(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_stage_data(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_stage_keep(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_base(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_save(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_release(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_quiesce(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_image(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_preload(struct ckt_peer *peer, void *args, int *passed_fd);
/*
 * The copy of that name which the peer preloaded, if its worker is idle; NULL for none, and why in
 * buffer unless the name is empty.
 */
struct ckt_session *ckt_daemon_image_find_ahead(
	struct ckt_peer *peer, const char *copy, char buffer[CKT_MESSAGE_MAX]);
void ckt_control_nccl_make(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_nccl_ids(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_restore2(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_pause(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_unpause(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_swap(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_quanta(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_swap_look(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_progress(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_events(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_owned_events(struct ckt_peer *peer, void *args, int *passed_fd);

/* decide_calls.c, fact_calls.c */
void ckt_control_decide(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_facts(struct ckt_peer *peer, void *decoded, int *passed_fd);

/* wait_calls.c */
void ckt_control_waits(struct ckt_peer *peer, void *decoded, int *passed_fd);

/* durable_calls.c */
void ckt_control_durable_list(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replicas_list(struct ckt_peer *peer, void *decoded, int *passed_fd);

/* limit_calls.c */
/* Root, the server's own user on its socket, or an administrator's token. */
bool ckt_control_is_administrator(const struct ckt_peer *peer);
void ckt_control_limit_set(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replace(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_sharings(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_share_groups(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_share_modes(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_turns(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_limit_show(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_limit_clear(struct ckt_peer *peer, void *decoded, int *passed_fd);
