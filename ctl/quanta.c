/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that the server may swap; see quanta.h. */
#include "ctl/quanta.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static const char *state_name(ckt_control_quantum_state state)
{
	static const char *const names[] = {[CKT_CONTROL_QUANTUM_RUNS] = "runs",
		[CKT_CONTROL_QUANTUM_IDLE] = "idle",
		[CKT_CONTROL_QUANTUM_WAITS] = "waits",
		[CKT_CONTROL_QUANTUM_SWAPPED] = "swapped",
		[CKT_CONTROL_QUANTUM_MOVES] = "moves",
		[CKT_CONTROL_QUANTUM_STAYS] = "stays"};
	return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

static bool read_page(
	struct ckt_ctl_server *server, const char *after, struct ckt_ctl_quanta *quanta)
{
	ckt_control_list_args args = {.after = (char *)after};
	ckt_control_quanta_res *more = reallocarray(quanta->pages, quanta->count + 1, sizeof *more);
	if (!more)
		return false;
	quanta->pages = more;
	more[quanta->count] = (ckt_control_quanta_res){0};
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_QUANTA,
		    (xdrproc_t)xdr_ckt_control_list_args, &args,
		    (xdrproc_t)xdr_ckt_control_quanta_res, &more[quanta->count],
		    ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_quanta_res, (char *)&more[quanta->count]);
		return false;
	}
	quanta->count++;
	return true;
}

void ckt_ctl_quanta_read(const struct ckt_ctl_args *args, struct ckt_ctl_quanta *ret_quanta)
{
	/* A connection of its own: an older server ends it. */
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	*ret_quanta = (struct ckt_ctl_quanta){0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	while (read_page(&server, pages.after, ret_quanta)) {
		const ckt_control_quanta_res *page = &ret_quanta->pages[ret_quanta->count - 1];
		u_int count = page->sessions.sessions_len;
		const char *last = count ? page->sessions.sessions_val[count - 1].session : NULL;
		if (ckt_ctl_pages_next(&pages, page->more, last) <= 0)
			break;
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_quanta_free(struct ckt_ctl_quanta *quanta)
{
	for (size_t i = 0; i < quanta->count; i++)
		xdr_free((xdrproc_t)xdr_ckt_control_quanta_res, (char *)&quanta->pages[i]);
	free(quanta->pages);
	*quanta = (struct ckt_ctl_quanta){0};
}

/* NULL: the server told nothing of it. */
static const ckt_control_quantum *find(const struct ckt_ctl_quanta *quanta, const char *session)
{
	for (size_t i = 0; i < quanta->count; i++)
		for (u_int k = 0; k < quanta->pages[i].sessions.sessions_len; k++) {
			const ckt_control_quantum *one = &quanta->pages[i].sessions.sessions_val[k];
			if (strcmp(one->session, session) == 0)
				return one;
		}
	return NULL;
}

json_t *ckt_ctl_quanta_json(const struct ckt_ctl_quanta *quanta, const char *session)
{
	const ckt_control_quantum *one = find(quanta, session);
	if (!one)
		return json_null();
	return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:o}", "gpu", (int)one->gpu,
		"state", state_name(one->state), "here_bytes", (json_int_t)one->here_bytes,
		"swapped_bytes", (json_int_t)one->swapped_bytes, "wanted_bytes",
		(json_int_t)one->wanted_bytes, "waited_ms", (json_int_t)one->waited_ms, "outs",
		(json_int_t)one->outs, "ins", (json_int_t)one->ins, "switches", (int)one->switches,
		"reason", ckt_ctl_json_text(one->reason));
}

void ckt_ctl_quanta_print(const struct ckt_ctl_quanta *quanta, const char *session)
{
	const ckt_control_quantum *one = find(quanta, session);
	char here[32], out[32], reason[CKT_CONTROL_REASON + 1];
	if (!one || (!*one->reason && !one->waited_ms))
		return;
	printf("              memory on GPU %u: %s, %s here, %s swapped out", one->gpu,
		state_name(one->state), ckt_ctl_size_text(one->here_bytes, here, sizeof here),
		ckt_ctl_size_text(one->swapped_bytes, out, sizeof out));
	if (one->waited_ms)
		printf(", waits for %s for %.1f s",
			ckt_ctl_size_text(one->wanted_bytes, here, sizeof here),
			(double)one->waited_ms / 1000);
	printf(", out %llu and in %llu times", (unsigned long long)one->outs,
		(unsigned long long)one->ins);
	if (*one->reason)
		printf(": %s", ckt_ctl_clean(one->reason, reason, sizeof reason));
	printf("\n");
}
