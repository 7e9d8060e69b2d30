/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --on-term makes the server do at SIGTERM; see save_on_term.c.  Threading: the loop's thread.
 */
#pragma once

#include "server/daemon/session/session.h"

/*
 * Begins to write all sessions, which then end by themselves; server->term_saves counts those in
 * progress.
 */
void ckt_session_save_all_on_term(struct ckt_server *server);
