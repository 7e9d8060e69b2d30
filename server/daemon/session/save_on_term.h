/* What --on-term says is done at SIGTERM; see term.c.  Threading: the loop's thread. */
#pragma once

#include "server/daemon/session/session.h"

/*
 * Begins to write all sessions, which end then by themselves; server->term_saves counts those that
 * are under way.
 */
void ckt_term_save_all(struct ckt_server *server);
