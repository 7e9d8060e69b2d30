/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for memory; see waits.h. */
#include "ctl/waits.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static bool read_page(struct ckt_ctl_server *server, u_int skip, struct ckt_ctl_waits *waits)
{
	ckt_control_waits_args args = {.skip = skip};
	ckt_control_waits_res *more = reallocarray(waits->pages, waits->count + 1, sizeof *more);
	if (!more)
		return false;
	waits->pages = more;
	more[waits->count] = (ckt_control_waits_res){0};
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_WAITS,
		    (xdrproc_t)xdr_ckt_control_waits_args, &args,
		    (xdrproc_t)xdr_ckt_control_waits_res, &more[waits->count],
		    ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_waits_res, (char *)&more[waits->count]);
		return false;
	}
	waits->count++;
	return true;
}

void ckt_ctl_waits_read(const struct ckt_ctl_args *args, struct ckt_ctl_waits *ret_waits)
{
	struct ckt_ctl_server server;
	u_int skip = 0;
	*ret_waits = (struct ckt_ctl_waits){0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	while (read_page(&server, skip, ret_waits)) {
		const ckt_control_waits_res *page = &ret_waits->pages[ret_waits->count - 1];
		skip += page->waits.waits_len;
		if (!page->more || !page->waits.waits_len || ret_waits->count >= CKT_CTL_PAGES_MAX)
			break;
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_waits_free(struct ckt_ctl_waits *waits)
{
	for (size_t i = 0; i < waits->count; i++)
		xdr_free((xdrproc_t)xdr_ckt_control_waits_res, (char *)&waits->pages[i]);
	free(waits->pages);
	*waits = (struct ckt_ctl_waits){0};
}

/* The next wait of the session from *at on; NULL: there is none. */
static const ckt_control_wait *next_of(
	const struct ckt_ctl_waits *waits, const char *session, size_t *page, u_int *at)
{
	for (; *page < waits->count; ++*page, *at = 0)
		while (*at < waits->pages[*page].waits.waits_len) {
			const ckt_control_wait *wait =
				&waits->pages[*page].waits.waits_val[(*at)++];
			if (strcmp(wait->session, session) == 0)
				return wait;
		}
	return NULL;
}

static json_t *wait_json(const ckt_control_wait *wait)
{
	json_t *holders = json_array();
	for (u_int i = 0; i < wait->holders.holders_len; i++) {
		const ckt_control_wait_holder *holder = &wait->holders.holders_val[i];
		json_array_append_new(holders,
			json_pack("{s:o, s:I}", "session", ckt_ctl_json_text(holder->session),
				"bytes", (json_int_t)holder->bytes));
	}
	return json_pack("{s:i, s:I, s:I, s:o, s:o, s:i, s:I}", "gpu", (int)wait->gpu, "bytes",
		(json_int_t)wait->bytes, "waited_ms", (json_int_t)wait->waited_ms, "reason",
		ckt_ctl_json_text(wait->reason), "holders", holders, "others", (int)wait->others,
		"others_bytes", (json_int_t)wait->others_bytes);
}

json_t *ckt_ctl_waits_json(const struct ckt_ctl_waits *waits, const char *session)
{
	json_t *list = json_array();
	const ckt_control_wait *wait;
	size_t page = 0;
	u_int at = 0;
	while ((wait = next_of(waits, session, &page, &at)))
		json_array_append_new(list, wait_json(wait));
	return list;
}

static void print_one(const ckt_control_wait *wait)
{
	char size[32], reason[CKT_CONTROL_REASON + 1], clean[CKT_SESSION_ID_SIZE + 1];
	printf("              waits for %s of GPU %u for %.1f s: %s",
		ckt_ctl_size_text(wait->bytes, size, sizeof size), wait->gpu,
		(double)wait->waited_ms / 1000, ckt_ctl_clean(wait->reason, reason, sizeof reason));
	for (u_int i = 0; i < wait->holders.holders_len; i++) {
		const ckt_control_wait_holder *holder = &wait->holders.holders_val[i];
		printf("%s%s %s", i ? ", " : "; held by ",
			ckt_ctl_clean(holder->session, clean, sizeof clean),
			ckt_ctl_size_text(holder->bytes, size, sizeof size));
	}
	if (wait->others)
		printf("%s%u %ssession%s %s", wait->holders.holders_len ? " and " : "; held by ",
			wait->others, wait->holders.holders_len ? "more " : "",
			wait->others == 1 ? "" : "s",
			ckt_ctl_size_text(wait->others_bytes, size, sizeof size));
	printf("\n");
}

void ckt_ctl_waits_print(const struct ckt_ctl_waits *waits, const char *session)
{
	const ckt_control_wait *wait;
	size_t page = 0;
	u_int at = 0;
	while ((wait = next_of(waits, session, &page, &at)))
		print_one(wait);
}
