/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async notifications: the driver calls one of ours on a thread of its own, which takes a note and
 * returns; the executor tells the client.
 *
 * Of each registration the latest notification is kept and told again to a client that comes back,
 * which knows by its instance what it has heard.  Two that come before the client can be told the
 * first are one, with the later figure: nothing piles up.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

struct ckt_worker;

/* More than a program needs. */
enum { CKT_NOTIFICATIONS_MAX = 4096 };

/* The executor's: sends notifications that the client has not been told. */
void ckt_notifications_send(struct ckt_worker *worker);
/* The executor's: a new connection may not have been told the latest. */
void ckt_notifications_resend(struct ckt_worker *worker);
