/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that have not said hello: which one is dropped when there are too many, and how long
 * one waits after a wrong token.  When they are full, the source with the most of them loses one;
 * the policy says how many are too many.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "server/daemon/policy/identity.h"

struct ckt_server;

/*
 * A connection was accepted as this descriptor.  True: it may say hello; another source's
 * connection may have been dropped for it.  One ckt_admit_greeted follows every true, when the peer
 * has said hello or gone.
 */
bool ckt_admit_connection(struct ckt_server *server, const struct ckt_identity *source, int fd);
void ckt_admit_greeted(struct ckt_server *server, const struct ckt_identity *source);
/*
 * There was no descriptor for a new connection: drops some of the source with the most connections
 * that have not said hello.
 */
void ckt_admit_no_descriptor(struct ckt_server *server);
/*
 * How long the reply to a wrong token or secret waits: longer with each from that address, 0 for
 * the first few.
 */
unsigned ckt_admit_failed(struct ckt_server *server, const struct ckt_identity *source);

/* Frees what is remembered. */
void ckt_admission_fini(struct ckt_server *server);
