/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/sharing.c: page by page, of a server that knows and of one that does not. */
#include <stdbool.h>
#include <string.h>

#include "ctl/sharing.h"
#include "inside.h"
#include "rpc/net.h"

static ckt_control_sharing sessions[] = {
	{.session = (char *)"0123456789ab",
		.space = true,
		.members = 3,
		.percent = 40,
		.below = true,
		.reason = (char *)""},
	{.session = (char *)"fffffffffff0", .reason = (char *)"its MPS\tdoes not start"},
};

/* The first session, then the second. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_sharings_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	bool first = !*asked.after;
	if (!first)
		TEXT(asked.after, "0123456789ab");
	res = (ckt_control_sharings_res){
		.sessions = {1, first ? sessions : sessions + 1}, .more = first};
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_sharings_res;
	*ret_res = &res;
	return true;
}

static bool list_groups(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_share_group groups[] = {
		{.session = (char *)"0123456789ab", .group = (char *)"la\nb", .agreed = false}};
	static ckt_control_share_groups_res res = {.sessions = {1, groups}};
	(void)args, (void)fd;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_share_groups_res;
	*ret_res = &res;
	return true;
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_pages(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_sharings read;
	begin();
	replies[CKT_CONTROL_SHARINGS].answer = list;
	replies[CKT_CONTROL_SHARE_GROUPS].answer = list_groups;
	ckt_ctl_sharings_read(&args, &read);
	IS(read.sharings.count, 2);
	json_t *json = ckt_ctl_sharings_json(&read, "0123456789ab");
	TEXT(json_string_value(json_object_get(json, "mode")), "space");
	IS(json_integer_value(json_object_get(json, "members")), 3);
	IS(json_integer_value(json_object_get(json, "percent")), 40);
	YES(json_is_true(json_object_get(json, "below")));
	YES(json_is_null(json_object_get(json, "reason")));
	json_decref(json);
	json = ckt_ctl_sharings_json(&read, "0123456789ab");
	TEXT(json_string_value(json_object_get(json, "group")), "la\nb");
	YES(json_is_false(json_object_get(json, "agreed")));
	json_decref(json);
	json = ckt_ctl_sharings_json(&read, "fffffffffff0");
	YES(json_is_null(json_object_get(json, "group")));
	YES(json_is_null(json_object_get(json, "agreed")));
	TEXT(json_string_value(json_object_get(json, "mode")), "time");
	IS(json_integer_value(json_object_get(json, "percent")), 100);
	YES(json_is_string(json_object_get(json, "reason")));
	json_decref(json);
	json = ckt_ctl_sharings_json(&read, "nobody");
	YES(json_is_null(json));
	json_decref(json);
	ckt_ctl_sharings_free(&read);
	replies[CKT_CONTROL_SHARINGS].answer = hang_up;
	ckt_ctl_sharings_read(&args, &read);
	IS(read.sharings.count, 0);
	ckt_ctl_sharings_free(&read);
}

UNIT_SUITE(sharing, {"pages", test_pages})
