/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses; see pause.c.  Threading: the loop's thread. */
#pragma once

#include "server/daemon/session/session.h"

/* A session that an earlier server left: its pause continues. */
void ckt_daemon_pause_adopt(struct ckt_session *session);
