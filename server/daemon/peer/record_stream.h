/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records over a socket, without waiting.  Reads never take a byte beyond the current record, so
 * that the socket can be passed to another process between two records.  The descriptor itself
 * stays in the mode it was in (every call says MSG_DONTWAIT).
 *
 * Errors given to `closed`: -ECONNRESET at the end of the stream, -EPROTO for bytes that are not a
 * record, -EMSGSIZE above max_bytes.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "server/daemon/loop.h"
#include "rpc/transport/transport.h"
#include "rpc/wire.h"

struct ckt_stream_out;

struct ckt_record_stream {
	struct ckt_source source; /* its fd is the transport's, for the loop to wait on */
	struct ckt_transport transport;
	struct ckt_loop *loop;
	size_t max_bytes; /* of one record */
	/* keep descriptors that come with a record; otherwise the kernel drops them */
	bool take_fds;
	bool paused; /* reads nothing, but notices when the peer hangs up */
	bool finish; /* see ckt_record_stream_finish */

	uint8_t mark[CKT_MARK_SIZE];
	size_t have; /* bytes of mark and data so far */
	size_t size; /* of data; known once have >= CKT_MARK_SIZE */
	uint8_t *data;
	int passed_fd; /* came with this record; -1 */

	struct ckt_stream_out *out_first, **out_last;

	/*
	 * data: the callee's to free.  passed_fd: the callee's to close, or -1.  The callback may
	 * end the stream.
	 */
	void (*record)(struct ckt_record_stream *stream, uint8_t *data, size_t size, int passed_fd);
	/* Called at most once, from the loop; the callee then calls ckt_record_stream_fini. */
	void (*closed)(struct ckt_record_stream *stream, int error);
};

/* Takes fd over on success. */
int ckt_record_stream_init(struct ckt_record_stream *stream, struct ckt_loop *loop, int fd);
/* Ends the connection for all copies of the descriptor, and frees the queue. */
void ckt_record_stream_fini(struct ckt_record_stream *stream);
/* Takes the descriptor out of the stream; nothing may be queued. */
int ckt_record_stream_detach(struct ckt_record_stream *stream);
void ckt_record_stream_pause(struct ckt_record_stream *stream, bool paused);
/*
 * Queues a record and writes what the socket accepts.  data (malloc'd) and pass_fd (-1 for none)
 * become the stream's in every case. Write errors come through `closed`.
 */
int ckt_record_stream_send(
	struct ckt_record_stream *stream, uint8_t *data, size_t size, int pass_fd);
/* Stops reading, and calls `closed` once everything queued is written. */
void ckt_record_stream_finish(struct ckt_record_stream *stream);
/* Bytes queued and not yet written. */
size_t ckt_record_stream_queued(const struct ckt_record_stream *stream);
