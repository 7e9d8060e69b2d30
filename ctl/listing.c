/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of what a server tells of sessions; see listing.h. */
#include "ctl/listing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

/* A page of any kind. */
struct view {
	u_int count;
	const char *entries;
	bool_t more;
};

static struct view view_of(const struct ckt_ctl_listing_kind *kind, const void *page)
{
	struct view view;
	memcpy(&view.count, (const char *)page + kind->count_at, sizeof view.count);
	memcpy(&view.entries, (const char *)page + kind->entries_at, sizeof view.entries);
	memcpy(&view.more, (const char *)page + kind->more_at, sizeof view.more);
	return view;
}

static const char *session_of(const void *entry)
{
	const char *session;
	memcpy(&session, entry, sizeof session);
	return session;
}

/* Adds a page to the listing. */
static bool read_page(
	struct ckt_ctl_server *server, const char *after, struct ckt_ctl_listing *listing)
{
	const struct ckt_ctl_listing_kind *kind = listing->kind;
	ckt_control_list_args args = {.after = (char *)after};
	void **more = reallocarray(listing->pages, listing->count + 1, sizeof *more);
	void *page = more ? calloc(1, kind->page_size) : NULL;
	if (more)
		listing->pages = more;
	if (!page ||
		ckt_net_call(server->fd, CRICKET_CONTROL_PROG, kind->procedure,
			(xdrproc_t)xdr_ckt_control_list_args, &args, kind->xdr, page,
			ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		free(page);
		return false;
	}
	more[listing->count++] = page;
	return true;
}

void ckt_ctl_listing_read(const struct ckt_ctl_args *args, const struct ckt_ctl_listing_kind *kind,
	struct ckt_ctl_listing *ret_listing)
{
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	*ret_listing = (struct ckt_ctl_listing){.kind = kind};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	while (read_page(&server, pages.after, ret_listing)) {
		struct view view = view_of(kind, ret_listing->pages[ret_listing->count - 1]);
		const char *last = view.count
			? session_of(view.entries + (view.count - 1) * kind->entry_size)
			: NULL;
		if (ckt_ctl_pages_next(&pages, view.more, last) <= 0)
			break;
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_listing_free(struct ckt_ctl_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++) {
		xdr_free(listing->kind->xdr, listing->pages[i]);
		free(listing->pages[i]);
	}
	free(listing->pages);
	*listing = (struct ckt_ctl_listing){0};
}

const void *ckt_ctl_listing_next(
	const struct ckt_ctl_listing *listing, const char *session, const void *before)
{
	bool behind = !before;
	for (size_t page = 0; page < listing->count; page++) {
		struct view view = view_of(listing->kind, listing->pages[page]);
		for (u_int i = 0; i < view.count; i++) {
			const char *entry = view.entries + i * listing->kind->entry_size;
			if (behind && strcmp(session_of(entry), session) == 0)
				return entry;
			behind |= entry == before;
		}
	}
	return NULL;
}
