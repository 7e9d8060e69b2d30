/* SPDX-License-Identifier: Apache-2.0 */
/* See conn_parts.h. */
#include "conn_parts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t ring[CKT_RING_SIZE], receive[CKT_RECEIVE_SIZE];

int parts_open(void)
{
	struct ckt_conn *conn = &ckt_conn;
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	ckt_transport_init_socket(&conn->transport, fds[0]);
	conn->ring = ring;
	conn->receive = receive;
	conn->head = conn->executed = conn->last_ack_position = 0;
	conn->sent = conn->tail = 0;
	conn->gap_start = UINT64_MAX;
	conn->next_seq = conn->next_xid = 1;
	conn->ack_pending = conn->parked = conn->quiesce = false;
	conn->deferred = conn->error = CUDA_SUCCESS;
	conn->fault_count = 0;
	conn->receive_start = conn->receive_end = 0;
	conn->generation = 1;
	conn->moved_to[0] = 0;
	strcpy(conn->session, PARTS_SESSION);
	conn->epoch++;
	conn->state = CKT_CONN_OPEN;
	ckt_call_context = 0;
	return fds[1];
}

void parts_close(int peer)
{
	ckt_conn.state = CKT_CONN_CLOSED;
	ckt_waiter_finish_all(&ckt_conn, CUDA_ERROR_UNKNOWN);
	ckt_transport_close(&ckt_conn.transport);
	if (peer >= 0)
		close(peer);
}

void parts_queue(size_t args_bytes)
{
	struct ckt_call call;
	if (ckt_call_begin(&call, 1, args_bytes, CKT_CALL_F_BATCHED))
		abort();
	memset(call.p, 0, args_bytes);
	ckt_call_queue(&call);
}

void parts_reply(int peer, const struct ckt_reply_header *header, const void *body, size_t size)
{
	uint8_t record[CKT_REPLY_HEADER_SIZE + 4096];
	uint8_t *end = ckt_reply_header_put(record, header);
	if (size)
		memcpy(end, body, size);
	if (ckt_net_write_record(peer, record, (size_t)(end - record) + size, -1, -1))
		abort();
}

bool parts_read(int fd, void *ret_data, size_t size)
{
	uint8_t *p = ret_data;
	for (struct pollfd poll_fd = {.fd = fd, .events = POLLIN}; size;) {
		ssize_t n = poll(&poll_fd, 1, 60000) == 1 ? read(fd, p, size) : 0;
		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static int held_stderr = -1, stderr_file = -1;

void parts_stderr_begin(void)
{
	fflush(stderr);
	held_stderr = dup(STDERR_FILENO);
	stderr_file = memfd_create("stderr", MFD_CLOEXEC);
	if (held_stderr < 0 || stderr_file < 0 || dup2(stderr_file, STDERR_FILENO) < 0)
		abort();
}

const char *parts_stderr_end(void)
{
	static char text[16384];
	dup2(held_stderr, STDERR_FILENO);
	ssize_t n = pread(stderr_file, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(held_stderr);
	close(stderr_file);
	return text;
}
