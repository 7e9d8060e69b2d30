/* SPDX-License-Identifier: Apache-2.0 */
/* See wire_lease.h. */
#include "tests/unit/worker/wire_lease.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"

static int channel;

struct wire *lease_begin(bool takes_again, const char *env)
{
	int ends[2];
	struct ckt_worker_lease_args args = {.unlimited = false};
	ckt_worker_lease_res res = {0};
	struct wire *w = calloc(1, sizeof *w);
	char message[CKT_MESSAGE_MAX];
	MUST(w != NULL, true);
	w->fd = -1;
	w->takes_again = takes_again;
	w->env[0] = env;
	MUST(wire_start(w, worker_path, driver_path, 0, -1, message), 0);
	MUST(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	channel = ends[0];
	MUST(ckt_net_call(w->control, CRICKET_WORKER_PROG, CKT_WORKER_LEASE,
		     (xdrproc_t)xdr_ckt_worker_lease_args, &args,
		     (xdrproc_t)xdr_ckt_worker_lease_res, &res, ckt_net_now_ms() + WIRE_GUARD_MS,
		     ends[1]),
		0);
	close(ends[1]);
	xdr_free((xdrproc_t)xdr_ckt_worker_lease_res, (char *)&res);
	return w;
}

void lease_end(struct wire *w)
{
	close(channel);
	session_end(w);
}

struct ckt_lease_message lease_heard(int timeout_ms)
{
	struct ckt_lease_message message = {0};
	struct pollfd p = {.fd = channel, .events = POLLIN};
	if (poll(&p, 1, timeout_ms) <= 0 ||
		recv(channel, &message, sizeof message, 0) != sizeof message)
		message.kind = 0;
	return message;
}

void lease_answer(const struct ckt_lease_message *question, uint64_t bytes, uint32_t flags)
{
	struct ckt_lease_message message = {.kind = CKT_LEASE_ANSWER,
		.number = question->number,
		.gpu = question->gpu,
		.flags = flags,
		.bytes = bytes,
		.total = 100 * MIB,
		.left = bytes};
	MUST(send(channel, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
}

bool lease_told(struct wire *w, const struct ckt_lease_message *question, uint64_t bytes)
{
	struct ckt_worker_waited_args args = {
		.number = question->number, .gpu = question->gpu, .bytes = bytes};
	return ckt_net_call(w->control, CRICKET_WORKER_PROG, CKT_WORKER_LEASE_WAITED,
		       (xdrproc_t)xdr_ckt_worker_waited_args, &args, NULL, NULL,
		       ckt_net_now_ms() + WIRE_GUARD_MS, -1) == 0;
}

CUresult lease_result(struct wire_reply reply)
{
	CUresult result = reply.result;
	free(reply.data);
	return result;
}
