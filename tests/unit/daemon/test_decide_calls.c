/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/decide_calls.c: who decides, and decisions that make no sense. */
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/lease.h"

static char said[CKT_MESSAGE_MAX];

static ckt_control_status decide(
	int fd, uint64_t event, uint64_t request, const char *session, ckt_control_action action)
{
	ckt_control_decide_args args = {event, request, (char *)session, action};
	ckt_control_decide_res res = {0};
	YES(control(fd, CKT_CONTROL_DECIDE, (xdrproc_t)xdr_ckt_control_decide_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_decide_res, &res));
	ckt_control_status status = res.result.status;
	snprintf(said, sizeof said, "%.500s", res.result.message);
	xdr_free((xdrproc_t)xdr_ckt_control_decide_res, (char *)&res);
	return status;
}

static void test_refused(void)
{
	struct ckt_session *session = session_new("0000000000e8");
	int fd = control_new();
	IS(decide(fd, 0, 0, "", CKT_CONTROL_GRANT), CKT_CONTROL_NO_SESSION);
	IS(decide(fd, 0, 0, "ffff", CKT_CONTROL_GRANT), CKT_CONTROL_NO_SESSION);
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_GRANT), CKT_CONTROL_REFUSED);
	HAS(said, "waits for no memory");
	IS(decide(fd, 0, 9, "0000000000e8", CKT_CONTROL_REFUSE), CKT_CONTROL_REFUSED);
	HAS(said, "request 9 waits no more");
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_WAIT), CKT_CONTROL_REFUSED);
	HAS(said, "answers an event");
	IS(decide(fd, 9, 1, "", CKT_CONTROL_GRANT), CKT_CONTROL_REFUSED);
	HAS(said, "event 9 asks nothing");
	IS(decide(fd, 9, 1, "", CKT_CONTROL_MOVE_OUT), CKT_CONTROL_REFUSED);
	HAS(said, "name a session");
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_MOVE_OUT), CKT_CONTROL_REFUSED);
	HAS(said, "no swap memory");
	for (int action = CKT_CONTROL_GIVE_TURN; action <= CKT_CONTROL_END_TURN; action++) {
		IS(decide(fd, 0, 0, "0000000000e8", (ckt_control_action)action),
			CKT_CONTROL_REFUSED);
		HAS(said, "takes no turns");
		IS(decide(fd, 9, 1, "", (ckt_control_action)action), CKT_CONTROL_REFUSED);
		HAS(said, "name a session");
	}
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_END_TURN + 1), CKT_CONTROL_REFUSED);
	HAS(said, "does not know that decision");
	peer_last()->who.uid = session->uid = 4711;
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_GIVE_TURN), CKT_CONTROL_REFUSED);
	HAS(said, "decisions are made by administrators");
	IS(decide(fd, 0, 0, "0000000000e8", CKT_CONTROL_GRANT), CKT_CONTROL_REFUSED);
	HAS(said, "decisions are made by administrators");
	close(fd);
	run_for(2);
	session_drop(session);
}

UNIT_SUITE(decide_calls, {"refused", test_refused})
