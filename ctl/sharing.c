/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share their GPUs; see sharing.h. */
#include "ctl/sharing.h"

#include <stdbool.h>
#include <stdio.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

void ckt_ctl_sharings_read(const struct ckt_ctl_args *args, struct ckt_ctl_sharings *ret_sharings)
{
	static const struct ckt_ctl_listing_kind sharings =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_SHARINGS, ckt_control_sharings_res, sessions);
	static const struct ckt_ctl_listing_kind groups = CKT_CTL_LISTING_KIND(
		CKT_CONTROL_SHARE_GROUPS, ckt_control_share_groups_res, sessions);
	ckt_ctl_listing_read(args, &sharings, &ret_sharings->sharings);
	ckt_ctl_listing_read(args, &groups, &ret_sharings->groups);
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
	ckt_ctl_listing_free(&sharings->sharings);
	ckt_ctl_listing_free(&sharings->groups);
}

/* NULL: not known. */
static const ckt_control_sharing *find(const struct ckt_ctl_sharings *sharings, const char *session)
{
	return ckt_ctl_listing_next(&sharings->sharings, session, NULL);
}

/* NULL: it is with its own owner's alone. */
static const ckt_control_share_group *find_group(
	const struct ckt_ctl_sharings *sharings, const char *session)
{
	return ckt_ctl_listing_next(&sharings->groups, session, NULL);
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
		*one->reason ? ckt_ctl_json_text(one->reason) : json_null());
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
	} else if (one && *one->reason) {
		printf("              GPU in time, not in space: %s\n",
			ckt_ctl_clean(one->reason, reason, sizeof reason));
	}
}
