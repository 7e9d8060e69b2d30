/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes between a TLS transport and a socket; see tls_relay.h. */
#include "rpc/transport/tls_relay.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "rpc/net.h"
#include "rpc/transport/tls.h"

enum {
	FLOW_BYTES = 64 << 10,
	/* How often somebody who takes nothing is looked at. */
	LOOK_MS = 5000,
	/* How long the rest may take when the plain end is gone. */
	LINGER_MS = CKT_NET_VANISHED_MS,
	STACK_BYTES = 512 << 10,
};

/* One direction. */
struct flow {
	struct ckt_transport *from, *to;
	size_t start, end; /* of what was read and is not written */
	bool ended;        /* from has no more */
	bool finished;     /* and to knows */
	uint8_t data[FLOW_BYTES];
};

struct relay {
	struct flow in, out; /* in: from the TLS side */
	int64_t gone_ms;     /* when the plain end was seen to be gone; 0: it is there */
};

/* 1: something moved; 0: nothing can; -errno: the relay ends. */
static int move_flow(struct flow *flow)
{
	int moved = 0;
	if (flow->start == flow->end && !flow->ended) {
		ssize_t n = ckt_transport_read(flow->from, flow->data, sizeof flow->data);
		/* A stream that was cut does not end like one that is over. */
		if (n < 0 && n != -EAGAIN &&
			(n != -ECONNRESET ||
				(ckt_transport_is_tls(flow->from) && !ckt_tls_ended(flow->from))))
			return (int)n;
		flow->ended = n == -ECONNRESET;
		flow->start = 0;
		flow->end = n > 0 ? (size_t)n : 0;
		moved = n != -EAGAIN;
	}
	while (flow->start < flow->end) {
		ssize_t n = ckt_transport_write(
			flow->to, flow->data + flow->start, flow->end - flow->start);
		if (n == -EAGAIN)
			return moved;
		if (n < 0 && ckt_transport_is_tls(flow->to))
			return (int)n;
		if (n < 0) {
			/* Nobody takes it, but what was said before may still go the other way. */
			flow->ended = flow->finished = true;
			flow->start = flow->end;
			return 1;
		}
		flow->start += (size_t)n;
		moved = 1;
	}
	if (flow->ended && !flow->finished) {
		if (!ckt_transport_is_tls(flow->to))
			ckt_transport_finish(flow->to);
		else if (ckt_tls_say_end(flow->to))
			return moved;
		flow->finished = true;
		moved = 1;
	}
	return moved;
}

static unsigned wants(const struct flow *flow, const struct ckt_transport *t)
{
	if (flow->finished)
		return 0;
	if (flow->from == t)
		return flow->start == flow->end && !flow->ended ? CKT_TRANSPORT_READ : 0;
	return flow->start < flow->end || flow->ended ? CKT_TRANSPORT_WRITE : 0;
}

/* Waits for what either end wants.  -errno: the relay ends. */
static int wait_for_either(struct relay *relay)
{
	struct ckt_transport *tls = relay->in.from, *plain = relay->in.to;
	unsigned of_tls = wants(&relay->in, tls) | wants(&relay->out, tls);
	unsigned of_plain = wants(&relay->in, plain) | wants(&relay->out, plain);
	struct pollfd polled[] = {
		ckt_transport_pollfd(tls, of_tls), ckt_transport_pollfd(plain, of_plain)};
	/* An end that hung up reports that without end. */
	if (!of_tls)
		polled[0].fd = -1;
	if (relay->gone_ms && !of_plain)
		polled[1].fd = -1;
	if (ckt_transport_ready(tls, of_tls))
		return 0;
	bool blocked = of_tls & CKT_TRANSPORT_WRITE;
	if (poll(polled, 2, blocked || relay->gone_ms ? LOOK_MS : -1) < 0 && errno != EINTR)
		return -errno;
	if (blocked && ckt_transport_vanished(tls, CKT_NET_VANISHED_MS))
		return -ETIMEDOUT;
	if (polled[1].fd >= 0 && polled[1].revents & (POLLHUP | POLLERR) && !relay->gone_ms)
		relay->gone_ms = ckt_net_now_ms();
	return 0;
}

int ckt_tls_relay(struct ckt_transport *tls, struct ckt_transport *plain)
{
	struct relay *relay = calloc(1, sizeof *relay);
	int result = relay ? 0 : -ENOMEM;
	if (relay) {
		relay->in.from = relay->out.to = tls;
		relay->in.to = relay->out.from = plain;
	}
	while (result >= 0 && !(relay->in.finished && relay->out.finished)) {
		int in = move_flow(&relay->in);
		int out = move_flow(&relay->out);
		result = in < 0 ? in : out < 0 ? out : 0;
		/* Nobody reads what would still come in. */
		if (relay->gone_ms &&
			(relay->out.finished || ckt_net_now_ms() - relay->gone_ms > LINGER_MS))
			break;
		if (!result && !in && !out)
			result = wait_for_either(relay);
	}
	if (relay) {
		explicit_bzero(relay->in.data, sizeof relay->in.data);
		explicit_bzero(relay->out.data, sizeof relay->out.data);
	}
	free(relay);
	ckt_transport_shutdown(plain);
	ckt_transport_close(plain);
	ckt_transport_close(tls);
	return result;
}

/* ---- In a thread */

struct thread_ends {
	struct ckt_transport tls, plain;
};

static void *run(void *argument)
{
	struct thread_ends *ends = argument;
	ckt_tls_relay(&ends->tls, &ends->plain);
	free(ends);
	return NULL;
}

static int start_thread(struct thread_ends *ends)
{
	return ckt_thread_start(NULL, STACK_BYTES, run, ends);
}

int ckt_tls_relay_start(struct ckt_transport *tls, int *ret_fd)
{
	struct thread_ends *ends = calloc(1, sizeof *ends);
	int pair[2], result = ends ? ckt_net_pair(pair) : -ENOMEM;
	if (result) {
		free(ends);
		return result;
	}
	ckt_transport_init_socket(&ends->plain, pair[1]);
	ckt_transport_move(&ends->tls, tls);
	result = start_thread(ends);
	if (!result) {
		*ret_fd = pair[0];
		return 0;
	}
	ckt_transport_move(tls, &ends->tls);
	close(pair[0]);
	close(pair[1]);
	free(ends);
	return result;
}
