/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a client's connection: the answer to its hello, and what the connection runs over
 * from then on.  Threading: the executor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_worker;

/*
 * Answers the hello on worker->client_transport, a socket, before anybody else can say something on
 * it.  Input and output begin, and worker->client_transport is what they run over. takes_rings: the
 * client offered CKT_CAPABILITY_RINGS; without memory for them the connection stays on the socket, and
 * the log says so.  0 or -errno: there is no connection.
 */
int ckt_worker_connection_answer(struct ckt_worker *worker, uint32_t xid, bool takes_rings);
