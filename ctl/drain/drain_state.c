/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a server drains; see drain_state.h. */
#include "ctl/drain/drain_state.h"

#include <stdio.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 10000 };

/* 0 or -errno; then nothing is to be freed. */
static int call(struct ckt_ctl_server *server, ckt_control_drain_way way, const char *to,
	ckt_control_drain_res *ret_res)
{
	ckt_control_drain_args args = {.way = way, .to = (char *)to};
	*ret_res = (ckt_control_drain_res){0};
	return ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_DRAIN,
		(xdrproc_t)xdr_ckt_control_drain_args, &args, (xdrproc_t)xdr_ckt_control_drain_res,
		ret_res, ckt_net_now_ms() + TIMEOUT_MS, -1);
}

static struct ckt_ctl_drain state_of(const ckt_control_drain_res *res)
{
	struct ckt_ctl_drain drain = {.since = res->since, .sessions = res->sessions};
	ckt_ctl_clean(res->to, drain.to, sizeof drain.to);
	return drain;
}

bool ckt_ctl_drain_look(const struct ckt_ctl_args *args, struct ckt_ctl_drain *ret_drain)
{
	struct ckt_ctl_server server;
	ckt_control_drain_res res;
	char ignored[1200];
	if (ckt_ctl_try_connect(args, &server, ignored, sizeof ignored) != CKT_EXIT_DONE)
		return false;
	bool known = call(&server, CKT_CONTROL_DRAIN_LOOK, "", &res) == 0;
	bool draining = known && res.result.status == CKT_CONTROL_OK && res.draining;
	if (draining && ret_drain)
		*ret_drain = state_of(&res);
	if (known)
		xdr_free((xdrproc_t)xdr_ckt_control_drain_res, (char *)&res);
	ckt_ctl_disconnect(&server);
	return draining;
}

int ckt_ctl_drain_set(const struct ckt_ctl_args *args, ckt_control_drain_way way, const char *to,
	struct ckt_ctl_drain *ret_drain)
{
	struct ckt_ctl_server server;
	ckt_control_drain_res res;
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	if (call(&server, way, to, &res)) {
		fprintf(stderr,
			"cricketctl: the server at %s does not answer; a server of an earlier version "
			"cannot be drained: migrate its sessions one by one\n",
			server.address);
		ckt_ctl_disconnect(&server);
		return CKT_EXIT_NO_SERVER;
	}
	status = ckt_ctl_result(&res.result);
	*ret_drain = state_of(&res);
	xdr_free((xdrproc_t)xdr_ckt_control_drain_res, (char *)&res);
	ckt_ctl_disconnect(&server);
	return status;
}

json_t *ckt_ctl_drain_json(const struct ckt_ctl_drain *drain)
{
	char since[64];
	return json_pack("{s:s, s:o}", "since",
		ckt_ctl_time_text(drain->since, since, sizeof since), "to",
		ckt_ctl_json_text(drain->to));
}
