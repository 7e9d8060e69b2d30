/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/session/turn.c: what stops, and what is told, with the server's end of the channel in the test. */
#include "server/worker/session/turn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/record.h"
#include "rpc/turn.h"
#include "rpc/wire.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/object.h"
#include "server/worker/worker.h"
#include "tests/unit/suite.h"

enum { READ_MS = 60000, GPU = 3 };

static struct ckt_worker *const worker = &ckt_worker;
static struct ckt_fences fences;
static struct ckt_object *context;
static uint8_t record[CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE];
static int server;
static bool works;

static CUresult CUDAAPI set_current(CUcontext real)
{
	(void)real;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI query_stream(CUstream stream)
{
	(void)stream;
	return works ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* The next command is of that context; 0: of none. */
static void put(uint64_t id)
{
	struct ckt_call_header header = {
		.prog = CKT_CUDA_PROG, .vers = CKT_LIB_VERS, .context = id};
	ckt_mark_put(record, CKT_CALL_HEADER_SIZE);
	ckt_call_header_put(record + CKT_MARK_SIZE, &header);
	worker->input.data = record;
	worker->input.head = 0;
	worker->input.tail = sizeof record;
}

static void begin(void)
{
	int ends[2];
	worker->wake_fd = eventfd(0, EFD_NONBLOCK);
	worker->device_count = 1;
	worker->devices[0].number = GPU;
	works = false;
	fences = (struct ckt_fences){.real = (CUcontext)1, .lock = PTHREAD_MUTEX_INITIALIZER};
	ckt_driver.cuCtxSetCurrent = set_current;
	ckt_driver.cuStreamQuery = query_stream;
	MUST(ckt_objects_add(&worker->objects, ckt_handle_make(CKT_KIND_CONTEXT, 1, 1041),
		     CKT_KIND_CONTEXT, false, &context),
		CUDA_SUCCESS);
	context->real = (void *)1;
	context->ctx.fences = &fences;
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	server = ends[0];
	NO(ckt_turns_on());
	MUST(ckt_turn_join(worker, ends[1]), 0);
	YES(ckt_turns_on());
	put(context->id);
}

/* Until the worker has taken a message, or seen the channel's end. */
static void woken(void)
{
	uint64_t number;
	struct pollfd p = {.fd = worker->wake_fd, .events = POLLIN};
	MUST(poll(&p, 1, READ_MS), 1);
	MUST(read(worker->wake_fd, &number, sizeof number), sizeof number);
}

static void end(void)
{
	close(server);
	woken();
	NO(ckt_turns_on());
	NO(ckt_turn_stops(worker));
	worker->current = NULL;
	ckt_objects_remove(&worker->objects, context);
	close(worker->wake_fd);
	worker->input.data = NULL;
	worker->input.tail = 0;
}

static void tell(enum ckt_turn_kind kind, uint32_t number, int64_t length_ns, bool eager)
{
	struct ckt_turn_message message = {
		.kind = kind, .gpu = GPU, .number = number, .length_ns = length_ns, .wants = eager};
	MUST(send(server, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
	woken();
}

/* The kind of the worker's message; 0: none. */
static unsigned said(struct ckt_turn_message *ret_message)
{
	ssize_t n = recv(server, ret_message, sizeof *ret_message, MSG_DONTWAIT);
	return n == sizeof *ret_message ? ret_message->kind : 0;
}

static void test_turn(void)
{
	struct ckt_turn_message message;
	begin();
	YES(ckt_turn_stops(worker) && ckt_turn_stops(worker));
	YES(ckt_turn_stopped());
	IS(said(&message), CKT_TURN_WANT);
	IS(message.gpu, GPU);
	IS(said(&message), 0); /* once */
	/* What is for no GPU goes on, and so does what is not there in full. */
	put(0);
	NO(ckt_turn_stops(worker));
	put(context->id);
	worker->input.tail--;
	NO(ckt_turn_stops(worker));
	put(context->id);
	tell(CKT_TURN_GIVE, 7, CKT_TURN_NO_END, false);
	NO(ckt_turn_stops(worker));
	NO(ckt_turn_waits());
	/* Without an end it is kept, also by one that has nothing to do. */
	ckt_turn_look(worker, true);
	IS(said(&message), 0);
	/* An end of another turn is none. */
	tell(CKT_TURN_LIMIT, 6, 0, false);
	NO(ckt_turn_stops(worker));
	tell(CKT_TURN_LIMIT, 7, 0, false);
	YES(ckt_turn_stops(worker));
	YES(ckt_turn_waits());
	/* Not before the GPU is drained. */
	fences.legacy = works = true;
	YES(ckt_turn_look(worker, false));
	IS(said(&message), 0);
	works = false;
	NO(ckt_turn_look(worker, false));
	IS(said(&message), CKT_TURN_YIELD);
	IS(message.number, 7);
	IS(message.wants, 1);
	/* It said so: it need not ask again. */
	YES(ckt_turn_stops(worker));
	IS(said(&message), 0);
	tell(CKT_TURN_GIVE, 8, CKT_TURN_NO_END, false);
	NO(ckt_turn_stops(worker));
	end();
}

/* With an end, who has nothing to do keeps it for a moment, or not at all. */
static void test_idle(void)
{
	struct ckt_turn_message message;
	begin();
	YES(ckt_turn_stops(worker));
	IS(said(&message), CKT_TURN_WANT);
	tell(CKT_TURN_GIVE, 1, INT64_C(1) << 40, false);
	NO(ckt_turn_stops(worker));
	worker->input.tail = 0;
	NO(ckt_turn_stops(worker));
	ckt_turn_look(worker, false);
	IS(said(&message), 0);
	ckt_turn_look(worker, true);
	usleep(2 * CKT_TURN_GRACE_NS / 1000);
	ckt_turn_look(worker, true);
	IS(said(&message), CKT_TURN_YIELD);
	IS(message.wants, 0);
	put(context->id);
	YES(ckt_turn_stops(worker));
	IS(said(&message), CKT_TURN_WANT);
	tell(CKT_TURN_GIVE, 2, INT64_C(1) << 40, true);
	NO(ckt_turn_stops(worker));
	worker->input.tail = 0;
	NO(ckt_turn_stops(worker));
	ckt_turn_look(worker, true);
	IS(said(&message), CKT_TURN_YIELD);
	end();
}

/* An executor that stands still has no turn, and takes none. */
static void test_away(void)
{
	struct ckt_turn_message message;
	begin();
	YES(ckt_turn_stops(worker));
	IS(said(&message), CKT_TURN_WANT);
	tell(CKT_TURN_GIVE, 1, CKT_TURN_NO_END, false);
	ckt_turn_leave();
	IS(said(&message), CKT_TURN_YIELD);
	IS(message.wants, 0);
	tell(CKT_TURN_GIVE, 2, CKT_TURN_NO_END, false);
	IS(said(&message), CKT_TURN_YIELD);
	IS(message.number, 2);
	ckt_turn_return();
	YES(ckt_turn_stops(worker));
	IS(said(&message), CKT_TURN_WANT);
	end();
}

static void test_channels(void)
{
	int ends[2], first;
	begin();
	first = server;
	/* A new one takes the old one's place, and its turns. */
	tell(CKT_TURN_GIVE, 1, CKT_TURN_NO_END, false);
	NO(ckt_turn_stops(worker));
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	server = ends[0];
	MUST(ckt_turn_join(worker, ends[1]), 0);
	woken();
	YES(ckt_turn_stops(worker));
	close(first);
	/* What is no channel. */
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	IS(ckt_turn_join(worker, ends[1]), -EINVAL);
	close(ends[0]);
	YES(ckt_turns_on());
	/* A server that says what cannot be changes nothing. */
	struct ckt_turn_message lie = {.kind = CKT_TURN_GIVE, .gpu = CKT_DEVICES_MAX};
	MUST(send(server, &lie, sizeof lie, MSG_NOSIGNAL), sizeof lie);
	YES(ckt_turn_stops(worker));
	end();
}

UNIT_SUITE(turn, {"turn", test_turn}, {"idle", test_idle}, {"away", test_away},
	{"channels", test_channels})
