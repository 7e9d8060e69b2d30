/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/events.c: events: in order and numbered, to those who may see them, from where a
 * follower was; memory that runs low is told once.
 */
#include <string.h>
#include <unistd.h>

#include "server/daemon/events.h"
#include "inside.h"

static uint64_t last;

/* Sends the question; its answer is read later. */
static void ask(int fd, uint64_t after)
{
	ckt_control_events_args args = {.after = after};
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(9, CRICKET_CONTROL_PROG, CKT_CONTROL_EVENTS,
		     (xdrproc_t)xdr_ckt_control_events_args, &args, &data, &size),
		0);
	send_bytes(fd, data, size, -1);
	free(data);
	run_for(5);
}

static unsigned answer(int fd, ckt_control_events_res *ret_res)
{
	size_t size;
	uint8_t *data = receive(fd, &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_reply_header header;
	memset(ret_res, 0, sizeof *ret_res);
	YES(ckt_reply_header_get(&c, &header) &&
		!ckt_net_decode(&c, (xdrproc_t)xdr_ckt_control_events_res, ret_res));
	free(data);
	last = ret_res->last;
	return ret_res->events.events_len;
}

static void test_follow(void)
{
	struct ckt_session *session = session_new("0000000000d1"),
			   *foreign = session_new("0000000000d2");
	ckt_control_events_res res;
	int fd = control_new();
	struct ckt_peer *peer = peer_last();
	ask(fd, UINT64_MAX); /* only what comes from now on */
	YES(peer->wants_events);
	ckt_daemon_event(session, CKT_EVENT_SAVED, "%d bytes", 5);
	IS(answer(fd, &res), 1);
	TEXT(res.events.events_val[0].name, "saved");
	TEXT(res.events.events_val[0].session, "0000000000d1");
	TEXT(res.events.events_val[0].program_name, "program");
	TEXT(res.events.events_val[0].detail, "5 bytes");
	uint64_t first = res.events.events_val[0].number;
	IS(res.last, first);
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	/* What happened between two questions is there, in order, several at once. */
	static const enum ckt_event_name names[] = {CKT_EVENT_STARTED, CKT_EVENT_PAUSED,
		CKT_EVENT_RESUMED, CKT_EVENT_MEMORY_LOW, CKT_EVENT_LOST};
	static const char *const texts[] = {"started", "paused", "resumed", "memory-low", "lost"};
	for (size_t i = 0; i < COUNT(names); i++)
		ckt_daemon_event(session, names[i], "x");
	ask(fd, last);
	IS(answer(fd, &res), COUNT(names));
	for (size_t i = 0; i < res.events.events_len; i++) {
		TEXT(res.events.events_val[i].name, texts[i]);
		IS(res.events.events_val[i].number, first + 1 + i);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	/* Another user's are not told, and their numbers are passed over. */
	foreign->uid = 4242;
	peer->who.uid = 4343;
	session->uid = 4343;
	ask(fd, last);
	ckt_daemon_event(foreign, CKT_EVENT_ENDED, "x");
	YES(peer->wants_events);
	ckt_daemon_event(session, CKT_EVENT_ENDED, "x");
	IS(answer(fd, &res), 1);
	TEXT(res.events.events_val[0].session, "0000000000d1");
	IS(res.last, first + 7);
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	/*
	 * A follower far behind gets what is kept, a part at a time, and sees the gap by the
	 * numbers.
	 */
	for (int i = 0; i < 600; i++)
		ckt_daemon_event(session, CKT_EVENT_STARTED, "%d", i);
	ask(fd, first);
	IS(answer(fd, &res), CKT_CONTROL_EVENTS_MAX);
	YES(res.events.events_val[0].number > first + 1);
	IS(res.last, res.events.events_val[CKT_CONTROL_EVENTS_MAX - 1].number);
	xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	unsigned more = 0;
	for (uint64_t before = 0; before != last && last < first + 607;) {
		before = last;
		ask(fd, last);
		more += answer(fd, &res);
		xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
	}
	IS(more + CKT_CONTROL_EVENTS_MAX, 512);
	close(fd);
	run_for(3);
	session_drop(session);
	session_drop(foreign);
}

/* The same with owners. */
static void test_owned(void)
{
	struct ckt_session *session = session_new("0000000000d5");
	ckt_control_events_args args = {.after = last};
	ckt_control_owned_events_res res = {0};
	ckt_control_owners_res owners = {0};
	u_int numbers[] = {session->uid, CKT_UID_UNKNOWN};
	ckt_control_owners_args asked = {.owners = {COUNT(numbers), numbers}};
	char name[CKT_OWNER_NAME_SIZE];
	int fd = control_new();
	ckt_daemon_event(session, CKT_EVENT_SAVED, "%d", 1);
	ckt_owner_text(&server, session->uid, name);
	YES(control(fd, CKT_CONTROL_OWNED_EVENTS, (xdrproc_t)xdr_ckt_control_events_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_owned_events_res, &res));
	MUST(res.events.events_len, 1);
	last = res.last;
	TEXT(res.events.events_val[0].event.name, "saved");
	TEXT(res.events.events_val[0].owner.name, name);
	TEXT(res.events.events_val[0].owner.project, "");
	xdr_free((xdrproc_t)xdr_ckt_control_owned_events_res, (char *)&res);
	YES(control(fd, CKT_CONTROL_OWNERS, (xdrproc_t)xdr_ckt_control_owners_args, &asked, -1,
		(xdrproc_t)xdr_ckt_control_owners_res, &owners));
	MUST(owners.owners.owners_len, 2);
	TEXT(owners.owners.owners_val[0].name, name);
	xdr_free((xdrproc_t)xdr_ckt_control_owners_res, (char *)&owners);
	close(fd);
	run_for(3);
	session_drop(session);
}

static void test_memory(void)
{
	struct ckt_session *session = session_new("0000000000d3");
	ckt_control_events_res res;
	char message[256];
	unsigned told = 0;
	int fd = control_new();
	ask(fd, UINT64_MAX);
	MUST(ckt_daemon_events_init(&server, message, sizeof message), 0);
	/*
	 * Of 1000000 bytes: less than nine tenths, then more; once, until it has fallen well below.
	 */
	static const struct {
		uint64_t bytes;
		bool low;
	} steps[] = {{899999, false}, {900000, true}, {990000, true}, {870000, true},
		{849999, false}, {950000, true}};
	for (size_t i = 0; i < COUNT(steps); i++) {
		worker.bytes = steps[i].bytes;
		ckt_timer_set(&server.loop, &server.memory_timer, 0);
		for (int k = 0; k < 1000 && session->status.memory_bytes != steps[i].bytes; k++)
			run_for(2);
		IS(server.memory_low[0], steps[i].low);
		/* Nobody is asked while nobody follows. */
		if (!peer_last()->wants_events) {
			IS(answer(fd, &res), 1);
			TEXT(res.events.events_val[0].name, "memory-low");
			HAS(res.events.events_val[0].detail, " of 1000000 bytes");
			xdr_free((xdrproc_t)xdr_ckt_control_events_res, (char *)&res);
			told++;
			ask(fd, last);
		}
	}
	IS(told, 2);
	ckt_timer_clear(&server.memory_timer);
	close(fd);
	run_for(3);
	session_drop(session);
}

UNIT_SUITE(events, {"follow", test_follow}, {"owned", test_owned}, {"memory", test_memory})
