/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic images; see durable.h. */
#include "ctl/durable.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static bool read_page(
	struct ckt_ctl_server *server, const char *after, struct ckt_ctl_durable *durable)
{
	ckt_control_list_args args = {.after = (char *)after};
	ckt_control_durable_res *more =
		reallocarray(durable->pages, durable->count + 1, sizeof *more);
	if (!more)
		return false;
	durable->pages = more;
	more[durable->count] = (ckt_control_durable_res){0};
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_DURABLE,
		    (xdrproc_t)xdr_ckt_control_list_args, &args,
		    (xdrproc_t)xdr_ckt_control_durable_res, &more[durable->count],
		    ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_durable_res, (char *)&more[durable->count]);
		return false;
	}
	durable->count++;
	return true;
}

void ckt_ctl_durable_read(const struct ckt_ctl_args *args, struct ckt_ctl_durable *ret_durable)
{
	struct ckt_ctl_server server;
	const char *after = "";
	*ret_durable = (struct ckt_ctl_durable){0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	while (read_page(&server, after, ret_durable)) {
		const ckt_control_durable_res *page = &ret_durable->pages[ret_durable->count - 1];
		if (!page->more || !page->sessions.sessions_len)
			break;
		after = page->sessions.sessions_val[page->sessions.sessions_len - 1].session;
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_durable_free(struct ckt_ctl_durable *durable)
{
	for (size_t i = 0; i < durable->count; i++)
		xdr_free((xdrproc_t)xdr_ckt_control_durable_res, (char *)&durable->pages[i]);
	free(durable->pages);
	*durable = (struct ckt_ctl_durable){0};
}

static const ckt_control_durable *find(const struct ckt_ctl_durable *durable, const char *session)
{
	for (size_t page = 0; page < durable->count; page++)
		for (u_int i = 0; i < durable->pages[page].sessions.sessions_len; i++) {
			const ckt_control_durable *one =
				&durable->pages[page].sessions.sessions_val[i];
			if (strcmp(one->session, session) == 0)
				return one;
		}
	return NULL;
}

json_t *ckt_ctl_durable_json(const struct ckt_ctl_durable *durable, const char *session)
{
	const ckt_control_durable *one = find(durable, session);
	char when[64];
	if (!one)
		return NULL;
	return json_pack("{s:o, s:I, s:I, s:i, s:I, s:I, s:i, s:o}", "when",
		one->when ? json_string(ckt_ctl_time_text(one->when, when, sizeof when))
			  : json_null(),
		"executed", (json_int_t)one->executed, "bytes", (json_int_t)one->bytes, "images",
		(int)one->images, "taken", (json_int_t)one->taken, "behind",
		(json_int_t)one->behind, "restores", (int)one->restores, "problem",
		*one->problem ? ckt_ctl_json_text(one->problem) : json_null());
}

void ckt_ctl_durable_print(const struct ckt_ctl_durable *durable, const char *session)
{
	const ckt_control_durable *one = find(durable, session);
	char size[32], problem[CKT_CONTROL_REASON + 1];
	if (!one)
		return;
	int64_t age = (int64_t)time(NULL) - one->when;
	if (one->when)
		printf("              automatic image %lld s old, up to command %llu: %u image%s, %s",
			(long long)(age > 0 ? age : 0), (unsigned long long)one->executed,
			one->images, one->images == 1 ? "" : "s",
			ckt_ctl_size_text(one->bytes, size, sizeof size));
	else
		printf("              no automatic image yet");
	if (*one->problem)
		printf("; %s: %s", one->when ? "no newer one" : "why",
			ckt_ctl_clean(one->problem, problem, sizeof problem));
	printf("\n");
}
