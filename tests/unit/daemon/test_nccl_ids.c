/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/nccl_ids.c: ids of communicators go between a connection and the copies
 * that it took ahead, and to nobody else.
 */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static char text[CKT_MESSAGE_MAX];
static unsigned got;
static char first[CKT_CONTROL_NCCL_ID];

static ckt_control_status make(int fd, const char *copy, unsigned count)
{
	ckt_control_nccl_make_args args = {.copy = (char *)copy, .count = count};
	ckt_control_nccl_make_res res = {0};
	YES(control(fd, CKT_CONTROL_NCCL_MAKE, (xdrproc_t)xdr_ckt_control_nccl_make_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_nccl_make_res, &res));
	ckt_control_status status = res.result.status;
	snprintf(text, sizeof text, "%.500s", res.result.message);
	got = res.ids.ids_len;
	if (got)
		memcpy(first, res.ids.ids_val[0].id, sizeof first);
	xdr_free((xdrproc_t)xdr_ckt_control_nccl_make_res, (char *)&res);
	return status;
}

static ckt_control_status tell(int fd, const char *copy, unsigned count)
{
	static ckt_control_nccl_pair pairs[CKT_CONTROL_NCCL_IDS_MAX + 1];
	ckt_control_nccl_ids_args args = {.copy = (char *)copy, .pairs = {count, pairs}};
	ckt_control_result res = {0};
	YES(control(fd, CKT_CONTROL_NCCL_IDS, (xdrproc_t)xdr_ckt_control_nccl_ids_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_result, &res));
	ckt_control_status status = res.status;
	snprintf(text, sizeof text, "%.500s", res.message);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static char copy[] = "0000000000c1";

static struct ckt_session *copy_of(struct ckt_peer *peer)
{
	struct ckt_session *session = session_new(copy);
	session->preloader = peer;
	session->phase = CKT_SESSION_STARTING;
	return session;
}

static void drop(struct ckt_session *session)
{
	session->preloader = NULL;
	session->phase = CKT_SESSION_LIVE;
	session_drop(session);
}

static void test_own(void)
{
	int fd = control_new();
	struct ckt_session *session = copy_of(peer_last());
	worker.ids = 2;
	IS(make(fd, copy, 2), CKT_CONTROL_OK);
	IS(got, 2);
	IS(first[0], 0x77);
	IS(first[CKT_CONTROL_NCCL_ID - 1], 0x77);
	IS(worker.calls[CKT_WORKER_NCCL_MAKE], 1);
	IS(tell(fd, copy, CKT_CONTROL_NCCL_IDS_MAX), CKT_CONTROL_OK);
	IS(tell(fd, copy, 0), CKT_CONTROL_OK);
	IS(worker.calls[CKT_WORKER_NCCL_IDS], 2);
	/* What the worker says goes on. */
	worker.status = -22;
	worker.message = "a worker makes 1 to 128";
	IS(make(fd, copy, 4000000000u), CKT_CONTROL_REFUSED);
	HAS(text, "session 0000000000c1: a worker makes 1 to 128");
	IS(got, 0);
	IS(tell(fd, copy, 1), CKT_CONTROL_REFUSED);
	HAS(text, "session 0000000000c1: a worker makes 1 to 128");
	worker.status = 0;
	/* One that answers with more than there may be has answered nothing. */
	worker.accept_stat = 1;
	IS(make(fd, copy, 1), CKT_CONTROL_REFUSED);
	HAS(text, "makes no IDs for communicators");
	IS(tell(fd, copy, 1), CKT_CONTROL_REFUSED);
	HAS(text, "accepts no IDs of communicators");
	worker.accept_stat = 0;
	close(fd);
	drop(session);
}

static void test_foreign(void)
{
	int fd = control_new();
	struct ckt_session *session = copy_of(peer_last());
	int other = control_new();
	unsigned before = worker.calls[CKT_WORKER_NCCL_MAKE] + worker.calls[CKT_WORKER_NCCL_IDS];
	IS(make(other, copy, 1), CKT_CONTROL_REFUSED);
	HAS(text, "the copy '0000000000c1' no longer exists");
	IS(tell(other, copy, 1), CKT_CONTROL_REFUSED);
	IS(make(fd, "", 1), CKT_CONTROL_REFUSED);
	HAS(text, "name the copy");
	IS(tell(fd, "", 1), CKT_CONTROL_REFUSED);
	HAS(text, "name the copy");
	IS(make(fd, "\x1b[2J", 1), CKT_CONTROL_REFUSED);
	HAS(text, "the copy '?'");
	/* While it loads, and once it is a session. */
	session->preloading = true;
	IS(make(fd, copy, 1), CKT_CONTROL_REFUSED);
	session->preloading = false;
	session->phase = CKT_SESSION_LIVE;
	IS(tell(fd, copy, 1), CKT_CONTROL_REFUSED);
	IS(worker.calls[CKT_WORKER_NCCL_MAKE] + worker.calls[CKT_WORKER_NCCL_IDS], before);
	close(fd);
	close(other);
	drop(session);
}

UNIT_SUITE(nccl_ids, {"of a copy of one's own", test_own}, {"of others", test_foreign})
