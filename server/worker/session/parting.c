/* SPDX-License-Identifier: Apache-2.0 */
/* Ending the client's connection; see parting.h. */
#include "server/worker/session/parting.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "rpc/net.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum { PART_MS = 1000 };

void ckt_parting_flush(struct ckt_worker *worker, int64_t deadline_ms)
{
	while (worker->client_fd >= 0 && ckt_output_flush(&worker->output) == -EAGAIN &&
		ckt_net_now_ms() < deadline_ms)
		ckt_transport_wait(&worker->input.transport, CKT_TRANSPORT_WRITE, 100);
}

/* A callback; text NULL: without arguments. */
static void tell(struct ckt_worker *worker, uint32_t proc, const char *text)
{
	uint32_t length = text ? (uint32_t)strlen(text) : 0;
	uint8_t *p = ckt_output_begin(&worker->output, worker->client_epoch,
		CKT_CALL_HEADER_SIZE + (text ? 4 + ckt_padded(length) : 0));
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = proc});
	if (text)
		ckt_put_opaque(p, text, length);
	ckt_output_end(&worker->output);
}

/* No byte follows on this connection, which lives on.  False: it could not be said. */
static bool say_sleep(struct ckt_worker *worker)
{
	uint8_t *p = ckt_output_begin(
		&worker->output, worker->client_epoch, CKT_CALL_HEADER_SIZE + sizeof(uint64_t));
	if (!p)
		return false;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_SLEEP});
	ckt_put_u64(p, worker->parting.executed);
	ckt_output_end(&worker->output);
	return true;
}

/* Tells the client where its session went, or that it was stopped on purpose. */
static void say_goodbye(struct ckt_worker *worker)
{
	const struct ckt_parting *parting = &worker->parting;
	if (parting->moved_to[0])
		tell(worker, CKT_CALLBACK_MOVED, parting->moved_to);
	else if (parting->parked)
		tell(worker, CKT_CALLBACK_PARKED, parting->message);
}

/*
 * A close() with unread input resets the connection, and what the peer's kernel has not
 * acknowledged by then is lost.  What it has is safe, whether the client reads now or in an hour.
 */
static void part(struct ckt_worker *worker, bool quiesce)
{
	if (worker->client_fd < 0)
		return;
	int64_t deadline = ckt_net_now_ms() + PART_MS;
	if (!quiesce && worker->parting.asleep) {
		/* Who does not take it sees the end of the connection instead, and comes back. */
		bool said = say_sleep(worker);
		ckt_parting_flush(worker, deadline);
		if (!said || ckt_output_waiting(&worker->output))
			ckt_transport_finish(&worker->input.transport);
		return;
	}
	if (quiesce)
		tell(worker, CKT_CALLBACK_QUIESCE, NULL);
	else
		say_goodbye(worker);
	ckt_parting_flush(worker, deadline);
	ckt_transport_finish(&worker->input.transport);
	for (;;) {
		ckt_input_discard(&worker->input);
		if (!ckt_transport_undelivered(&worker->input.transport) ||
			ckt_net_now_ms() >= deadline)
			return;
		poll(NULL, 0, 1);
	}
}

void ckt_parting_end(struct ckt_worker *worker, bool quiesce)
{
	part(worker, quiesce);
	if (quiesce)
		ckt_executor_disconnect(worker, "it was told to be quiet");
}
