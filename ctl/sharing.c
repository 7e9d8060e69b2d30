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

static bool add_group(struct ckt_ctl_sharings *sharings, const ckt_control_share_group *one)
{
	ckt_control_share_group *more =
		reallocarray(sharings->groups, sharings->group_count + 1, sizeof *more);
	if (!more)
		return false;
	sharings->groups = more;
	ckt_control_share_group *last = &more[sharings->group_count++];
	*last = *one;
	last->session = strdup(one->session);
	last->group = strdup(one->group);
	return last->session && last->group;
}

/* One page's sessions; false without memory.  *ret_last: the last one. */
static bool take_sharings(
	struct ckt_ctl_sharings *sharings, const void *page, const char **ret_last, bool *ret_more)
{
	const ckt_control_sharings_res *res = page;
	*ret_more = res->more;
	for (u_int i = 0; i < res->sessions.sessions_len; i++) {
		*ret_last = res->sessions.sessions_val[i].session;
		if (!add(sharings, &res->sessions.sessions_val[i]))
			return false;
	}
	return true;
}

static bool take_groups(
	struct ckt_ctl_sharings *sharings, const void *page, const char **ret_last, bool *ret_more)
{
	const ckt_control_share_groups_res *res = page;
	*ret_more = res->more;
	for (u_int i = 0; i < res->sessions.sessions_len; i++) {
		*ret_last = res->sessions.sessions_val[i].session;
		if (!add_group(sharings, &res->sessions.sessions_val[i]))
			return false;
	}
	return true;
}

struct question {
	uint32_t procedure;
	xdrproc_t xdr;
	bool (*take)(struct ckt_ctl_sharings *sharings, const void *page, const char **ret_last,
		bool *ret_more);
};

/* A connection of its own: an older server ends it. */
static void read_all(const struct ckt_ctl_args *args, const struct question *question,
	struct ckt_ctl_sharings *sharings)
{
	struct ckt_ctl_server server;
	struct ckt_ctl_pages pages = {0};
	bool again = ckt_ctl_connect(args, &server) == CKT_EXIT_DONE, connected = again;
	while (again) {
		ckt_control_list_args call = {.after = pages.after};
		union {
			ckt_control_sharings_res sharings;
			ckt_control_share_groups_res groups;
		} page = {0};
		const char *last = NULL;
		bool more = false;
		again = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, question->procedure,
				(xdrproc_t)xdr_ckt_control_list_args, &call, question->xdr, &page,
				ckt_net_now_ms() + TIMEOUT_MS, -1) == 0 &&
			question->take(sharings, &page, &last, &more) &&
			ckt_ctl_pages_next(&pages, more, last) > 0;
		xdr_free(question->xdr, (char *)&page);
	}
	if (connected)
		ckt_ctl_disconnect(&server);
}

void ckt_ctl_sharings_read(const struct ckt_ctl_args *args, struct ckt_ctl_sharings *ret_sharings)
{
	static const struct question questions[] = {
		{CKT_CONTROL_SHARINGS, (xdrproc_t)xdr_ckt_control_sharings_res, take_sharings},
		{CKT_CONTROL_SHARE_GROUPS, (xdrproc_t)xdr_ckt_control_share_groups_res,
			take_groups}};
	*ret_sharings = (struct ckt_ctl_sharings){0};
	for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
		read_all(args, &questions[i], ret_sharings);
}

bool ckt_ctl_share_modes_look(
	const struct ckt_ctl_args *args, ckt_control_share_modes_res *ret_modes)
{
	struct ckt_ctl_server server;
	char ignored[1200];
	*ret_modes = (ckt_control_share_modes_res){0};
	if (ckt_ctl_try_connect(args, &server, ignored, sizeof ignored) != CKT_EXIT_DONE)
		return false;
	bool known = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_SHARE_MODES, NULL,
			     NULL, (xdrproc_t)xdr_ckt_control_share_modes_res, ret_modes,
			     ckt_net_now_ms() + TIMEOUT_MS, -1) == 0;
	ckt_ctl_disconnect(&server);
	return known;
}

void ckt_ctl_sharings_free(struct ckt_ctl_sharings *sharings)
{
	for (size_t i = 0; i < sharings->count; i++) {
		free(sharings->list[i].session);
		free(sharings->list[i].reason);
	}
	for (size_t i = 0; i < sharings->group_count; i++) {
		free(sharings->groups[i].session);
		free(sharings->groups[i].group);
	}
	free(sharings->list);
	free(sharings->groups);
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

/* NULL: it is with its own owner's alone. */
static const ckt_control_share_group *find_group(
	const struct ckt_ctl_sharings *sharings, const char *session)
{
	for (size_t i = 0; i < sharings->group_count; i++)
		if (sharings->groups[i].session && sharings->groups[i].group &&
			!strcmp(sharings->groups[i].session, session))
			return &sharings->groups[i];
	return NULL;
}

json_t *ckt_ctl_sharings_json(const struct ckt_ctl_sharings *sharings, const char *session)
{
	const ckt_control_sharing *one = find(sharings, session);
	if (!one)
		return json_null();
	const ckt_control_share_group *group = find_group(sharings, session);
	return json_pack("{s:s, s:i, s:i, s:b, s:o, s:o, s:o}", "mode",
		one->space ? "space" : "time", "members", (int)one->members, "percent",
		one->percent ? (int)one->percent : 100, "below", (int)one->below, "group",
		group ? ckt_ctl_json_text(group->group) : json_null(), "agreed",
		group ? json_boolean(group->agreed) : json_null(), "reason",
		one->reason && *one->reason ? ckt_ctl_json_text(one->reason) : json_null());
}

void ckt_ctl_sharings_print(const struct ckt_ctl_sharings *sharings, const char *session)
{
	const ckt_control_sharing *one = find(sharings, session);
	const ckt_control_share_group *group = find_group(sharings, session);
	char reason[CKT_CONTROL_REASON + 1], name[CKT_CONTROL_SHARE_GROUP + 1];
	if (one && one->space) {
		printf("              GPU in space, one of %u", one->members);
		if (group)
			printf(" of share-group %s%s",
				ckt_ctl_clean(group->group, name, sizeof name),
				group->agreed ? "" : " (new ones are apart)");
		if (one->percent)
			printf(", %u%% of its processors", one->percent);
		printf("%s\n", one->below ? ", after the others" : "");
	} else if (one && one->reason && *one->reason) {
		printf("              GPU in time, not in space: %s\n",
			ckt_ctl_clean(one->reason, reason, sizeof reason));
	}
}
