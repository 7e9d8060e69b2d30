/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a session is, for the next server: a file beside the worker's socket, SOCKET.d/SESSION.owner,
 * with the owner's number (rpc/identity.h), the client's container (limit_rule.h) and, of a session that shares its
 * GPU in space, its MPS (ckt_mps_note).  A worker tells its owner too, but a worker that somebody took over may name
 * another.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/session/mps.h"

struct ckt_server;
struct ckt_session;

/* Writes session->uid; logs where it cannot. */
void ckt_owner_file_write(const struct ckt_session *session);
/*
 * False if there is none, as of a worker that an older server started.  Also fills in the session's
 * container.
 */
bool ckt_owner_file_read(struct ckt_session *session, uint32_t *ret_owner);
/* "": it shares nothing in space. */
void ckt_owner_file_read_space(const struct ckt_session *session, char ret_note[CKT_MPS_NOTE]);
void ckt_owner_file_remove(struct ckt_server *server, const char *id);
/* Removes those of sessions that are gone. */
void ckt_owner_files_sweep(struct ckt_server *server);
