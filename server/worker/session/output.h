/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes for the client: one buffer behind a lock, so that the executor and the waiters write
 * whole records.
 *
 * Records are appended and leave with the next flush; the socket is never waited for.  Where it
 * takes no more, the rest stays and the executor polls for room (others wake it); it reads no
 * further commands while more than CKT_OUTPUT_HIGH bytes lie here. A record for a connection that
 * is gone (another epoch) is dropped by the caller, who gets no room for it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/transport.h"

enum { CKT_OUTPUT_HIGH = 8 << 20 };

struct ckt_output {
	pthread_mutex_t lock;
	struct ckt_transport transport; /* a copy: the executor closes the connection */
	uint64_t epoch;                 /* of the connection; 0: none */
	bool broken; /* a send failed: the executor will see it at its next receive */
	uint8_t *data;
	size_t head, tail, room;
};

void ckt_output_init(struct ckt_output *output);
/*
 * Begins a connection (fd >= 0, epoch) or ends it (-1, 0); drops unsent bytes.  A first record (the
 * reply to the hello; NULL for none) precedes everything that other threads send.  -ENOMEM: there
 * is no connection.
 */
int ckt_output_connect(
	struct ckt_output *output, int fd, uint64_t epoch, const uint8_t *first, size_t size);
/*
 * Begins a connection over a transport that is open and whose first record was sent.  The caller
 * keeps and closes it.
 */
void ckt_output_connect_over(
	struct ckt_output *output, const struct ckt_transport *transport, uint64_t epoch);

/*
 * Locks; room for a record of size bytes, its mark already written.  NULL (not locked) if epoch is
 * not the connection's.
 */
uint8_t *ckt_output_begin(struct ckt_output *output, uint64_t epoch, size_t size);
/* Unlocks. */
void ckt_output_end(struct ckt_output *output);

/*
 * Sends what the socket accepts.  0: everything; -EAGAIN; another error: the connection is broken.
 */
int ckt_output_flush(struct ckt_output *output);
size_t ckt_output_waiting(struct ckt_output *output);
/* What it runs over (ckt_transport_name). */
const char *ckt_output_transport(struct ckt_output *output);
/* The connection's number, 0 for none. */
uint64_t ckt_output_epoch(struct ckt_output *output);
