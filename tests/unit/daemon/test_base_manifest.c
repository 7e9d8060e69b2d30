/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/base_manifest.c: the manifest of the image to build on goes to the worker of
 * the caller's own session, piece by piece.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static char text[CKT_MESSAGE_MAX];

static ckt_control_status base(int fd, const char *session, unsigned bytes)
{
	static char data[CKT_CONTROL_BASE_MAX];
	ckt_control_base_args args = {.session = (char *)session, .data = {bytes, data}};
	ckt_control_result res = {0};
	YES(control(fd, CKT_CONTROL_BASE, (xdrproc_t)xdr_ckt_control_base_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_result, &res));
	ckt_control_status status = res.status;
	snprintf(text, sizeof text, "%.500s", res.message);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&res);
	return status;
}

static void test_base(void)
{
	struct ckt_session *session = session_new("0000000000ba");
	int fd = control_new();
	unsigned before = worker.calls[CKT_WORKER_BASE];
	IS(base(fd, "0000000000bb", 1), CKT_CONTROL_NO_SESSION);
	IS(base(fd, session->id, 0), CKT_CONTROL_OK);
	IS(base(fd, session->id, CKT_CONTROL_BASE_MAX), CKT_CONTROL_OK);
	worker.status = -7;
	worker.message = "the manifest is too large";
	IS(base(fd, session->id, 1), CKT_CONTROL_REFUSED);
	HAS(text, "the manifest is too large");
	worker.status = 0;
	IS(worker.calls[CKT_WORKER_BASE] - before, 3);
	session->phase = CKT_SESSION_STARTING;
	IS(base(fd, session->id, 1), CKT_CONTROL_REFUSED);
	HAS(text, "is starting or ending");
	session->phase = CKT_SESSION_LIVE;
	worker.hang_up = true;
	IS(base(fd, session->id, 1), CKT_CONTROL_REFUSED);
	HAS(text, "cannot reach its worker");
	worker.hang_up = false;
	close(fd);
	run_for(3);
	session_drop(session);
}

UNIT_SUITE(base, {"base", test_base})
