/* SPDX-License-Identifier: Apache-2.0 */
/* Shares, swapped memory and waits in numbers; see watched.h. */
#include "ctl/watched.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static bool read_page(
	struct ckt_ctl_server *server, const char *after, struct ckt_ctl_watched *watched)
{
	ckt_control_list_args args = {.after = (char *)after};
	ckt_control_watch_res *more =
		reallocarray(watched->pages, watched->count + 1, sizeof *more);
	if (!more)
		return false;
	watched->pages = more;
	more[watched->count] = (ckt_control_watch_res){0};
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_WATCH,
		    (xdrproc_t)xdr_ckt_control_list_args, &args,
		    (xdrproc_t)xdr_ckt_control_watch_res, &more[watched->count],
		    ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_watch_res, (char *)&more[watched->count]);
		return false;
	}
	watched->count++;
	return true;
}

void ckt_ctl_watched_read(const struct ckt_ctl_args *args, struct ckt_ctl_watched *ret_watched)
{
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	*ret_watched = (struct ckt_ctl_watched){0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	while (read_page(&server, pages.after, ret_watched)) {
		const ckt_control_watch_res *page = &ret_watched->pages[ret_watched->count - 1];
		u_int count = page->sessions.sessions_len;
		const char *last =
			count ? page->sessions.sessions_val[count - 1].session.session : NULL;
		if (ckt_ctl_pages_next(&pages, page->more, last) <= 0)
			break;
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_watched_free(struct ckt_ctl_watched *watched)
{
	for (size_t i = 0; i < watched->count; i++)
		xdr_free((xdrproc_t)xdr_ckt_control_watch_res, (char *)&watched->pages[i]);
	free(watched->pages);
	*watched = (struct ckt_ctl_watched){0};
}

/* NULL: not known. */
static const ckt_control_watched *find(const struct ckt_ctl_watched *watched, const char *session)
{
	for (size_t page = 0; page < watched->count; page++)
		for (u_int i = 0; i < watched->pages[page].sessions.sessions_len; i++) {
			const ckt_control_watched *one =
				&watched->pages[page].sessions.sessions_val[i];
			if (strcmp(one->session.session, session) == 0)
				return one;
		}
	return NULL;
}

static json_t *count_or_null(const ckt_control_watched *known, int64_t count)
{
	return !known || count < 0 ? json_null() : json_integer(count);
}

void ckt_ctl_watched_json(
	const struct ckt_ctl_watched *watched, const char *session, json_t *object)
{
	const ckt_control_watched *one = find(watched, session);
	json_object_set_new(object, "share_percent",
		!one || one->share_permille < 0 ? json_null()
						: json_real(one->share_permille / 10.0));
	json_object_set_new(
		object, "swapped_bytes", count_or_null(one, one ? one->swapped_bytes : -1));
	json_object_set_new(object, "waiting_ms", count_or_null(one, one ? one->waiting_ms : -1));
	json_object_set_new(object, "switches", count_or_null(one, one ? one->switches : -1));
}
