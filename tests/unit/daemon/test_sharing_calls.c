/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/peer/sharing_calls.c: how sessions share their GPUs, as it is told. */
#include <string.h>
#include <unistd.h>

#include "inside.h"

static void test_told(void)
{
	struct ckt_session *sessions[2] = {
		session_new("0000000000d0"), session_new("0000000000d1")};
	ckt_control_list_args args = {.after = (char *)""};
	ckt_control_sharings_res res = {0};
	sessions[1]->mps.reason = "because";
	/* Only of a daemon. */
	sessions[1]->mps.asked = (struct ckt_mps_kind){true, 40, true, ""};
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_SHARINGS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_sharings_res, &res));
	MUST(res.sessions.sessions_len, 2);
	const ckt_control_sharing *told = res.sessions.sessions_val;
	TEXT(told[0].session, "0000000000d0");
	TEXT(told[0].reason, "");
	NO(told[1].space);
	NO(told[1].below);
	IS(told[1].percent, 0);
	IS(told[1].members, 0);
	TEXT(told[1].reason, "because");
	NO(res.more);
	xdr_free((xdrproc_t)xdr_ckt_control_sharings_res, (char *)&res);
	memset(&res, 0, sizeof res);
	args.after = (char *)"0000000000d0";
	YES(control(fd, CKT_CONTROL_SHARINGS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_sharings_res, &res));
	IS(res.sessions.sessions_len, 1);
	xdr_free((xdrproc_t)xdr_ckt_control_sharings_res, (char *)&res);
	close(fd);
	session_drop(sessions[0]);
	session_drop(sessions[1]);
}

/* Of sessions with other owners alone. */
static void test_groups(void)
{
	struct ckt_session *sessions[2] = {
		session_new("0000000000d0"), session_new("0000000000d1")};
	ckt_control_list_args args = {.after = (char *)""};
	ckt_control_share_groups_res res = {0};
	struct ckt_mps_daemon *daemon = (struct ckt_mps_daemon *)sessions;
	sessions[0]->mps.daemon = sessions[1]->mps.daemon = daemon;
	strcpy(sessions[1]->mps.asked.group, "lab");
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_SHARE_GROUPS, (xdrproc_t)xdr_ckt_control_list_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_share_groups_res, &res));
	MUST(res.sessions.sessions_len, 1);
	TEXT(res.sessions.sessions_val[0].session, "0000000000d1");
	TEXT(res.sessions.sessions_val[0].group, "lab");
	/* No rule names its owner. */
	NO(res.sessions.sessions_val[0].agreed);
	NO(res.more);
	xdr_free((xdrproc_t)xdr_ckt_control_share_groups_res, (char *)&res);
	close(fd);
	sessions[0]->mps.daemon = sessions[1]->mps.daemon = NULL;
	session_drop(sessions[0]);
	session_drop(sessions[1]);
}

static void test_modes(void)
{
	ckt_control_share_modes_res res = {0};
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_SHARE_MODES, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_control_share_modes_res, &res));
	NO(res.space);
	NO(res.wants_space);
	/* This server has none. */
	TEXT(res.reason, "out of memory");
	xdr_free((xdrproc_t)xdr_ckt_control_share_modes_res, (char *)&res);
	server.options.share = (char *)"space";
	YES(control(fd, CKT_CONTROL_SHARE_MODES, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_control_share_modes_res, &res));
	YES(res.wants_space);
	xdr_free((xdrproc_t)xdr_ckt_control_share_modes_res, (char *)&res);
	server.options.share = NULL;
	close(fd);
}

UNIT_SUITE(sharing_calls, {"told", test_told}, {"groups", test_groups}, {"modes", test_modes})
