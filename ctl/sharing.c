/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share their GPUs; see sharing.h. */
#include "ctl/sharing.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static bool add(struct ckt_ctl_sharings *sharings, const ckt_control_sharing *one)
{
	ckt_control_sharing *more = reallocarray(sharings->list, sharings->count + 1, sizeof *more);
	if (!more)
		return false;
	sharings->list = more;
	ckt_control_sharing *last = &more[sharings->count++];
	*last = *one;
	last->session = strdup(one->session);
	last->reason = strdup(one->reason);
	return last->session && last->reason;
}

void ckt_ctl_sharings_read(const struct ckt_ctl_args *args, struct ckt_ctl_sharings *ret_sharings)
{
	/* A connection of its own: an older server ends it. */
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	bool more = ckt_ctl_connect(args, &server) == CKT_EXIT_DONE, connected = more;
	*ret_sharings = (struct ckt_ctl_sharings){0};
	while (more) {
		ckt_control_list_args call = {.after = pages.after};
		ckt_control_sharings_res res = {0};
		more = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_SHARINGS,
			       (xdrproc_t)xdr_ckt_control_list_args, &call,
			       (xdrproc_t)xdr_ckt_control_sharings_res, &res,
			       ckt_net_now_ms() + TIMEOUT_MS, -1) == 0;
		const char *last = NULL;
		for (u_int i = 0; i < res.sessions.sessions_len && more; i++) {
			last = res.sessions.sessions_val[i].session;
			more = add(ret_sharings, &res.sessions.sessions_val[i]);
		}
		more = more && ckt_ctl_pages_next(&pages, res.more, last) > 0;
		xdr_free((xdrproc_t)xdr_ckt_control_sharings_res, (char *)&res);
	}
	if (connected)
		ckt_ctl_disconnect(&server);
}

void ckt_ctl_sharings_free(struct ckt_ctl_sharings *sharings)
{
	for (size_t i = 0; i < sharings->count; i++) {
		free(sharings->list[i].session);
		free(sharings->list[i].reason);
	}
	free(sharings->list);
	*sharings = (struct ckt_ctl_sharings){0};
}

/* NULL: not known. */
static const ckt_control_sharing *find(const struct ckt_ctl_sharings *sharings, const char *session)
{
	for (size_t i = 0; i < sharings->count; i++)
		if (sharings->list[i].session && !strcmp(sharings->list[i].session, session))
			return &sharings->list[i];
	return NULL;
}

json_t *ckt_ctl_sharings_json(const struct ckt_ctl_sharings *sharings, const char *session)
{
	const ckt_control_sharing *one = find(sharings, session);
	if (!one)
		return json_null();
	return json_pack("{s:s, s:i, s:i, s:b, s:o}", "mode", one->space ? "space" : "time",
		"members", (int)one->members, "percent", one->percent ? (int)one->percent : 100,
		"below", (int)one->below, "reason",
		one->reason && *one->reason ? ckt_ctl_json_text(one->reason) : json_null());
}

void ckt_ctl_sharings_print(const struct ckt_ctl_sharings *sharings, const char *session)
{
	const ckt_control_sharing *one = find(sharings, session);
	char reason[CKT_CONTROL_REASON + 1];
	if (one && one->space) {
		printf("              GPU in space, one of %u", one->members);
		if (one->percent)
			printf(", %u%% of its processors", one->percent);
		printf("%s\n", one->below ? ", after the others" : "");
	} else if (one && one->reason && *one->reason) {
		printf("              GPU in time, not in space: %s\n",
			ckt_ctl_clean(one->reason, reason, sizeof reason));
	}
}
