/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/turns.c: page by page, of a server that knows turns and of one that does not.  test_ps.c has the words. */
#include <stdbool.h>
#include <string.h>

#include "ctl/turns.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"

static ckt_control_turn turns[] = {
	{.session = (char *)"0123456789ab", .gpu = 0, .state = CKT_CONTROL_TURN_HAS, .weight = 300},
	{.session = (char *)"0123456789ab", .gpu = 1, .weight = 1000},
	/* What no server of ours says. */
	{.session = (char *)"fffffffffff0", .state = 99, .latency_class = 99},
};

/* The first session, then the second. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_turns_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	bool first = !*asked.after;
	if (!first)
		TEXT(asked.after, "0123456789ab");
	res = (ckt_control_turns_res){
		.turns = {first ? 2 : 1, first ? turns : turns + 2}, .more = first};
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_turns_res;
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
	struct ckt_ctl_listing read;
	begin();
	replies[CKT_CONTROL_TURNS].answer = list;
	ckt_ctl_turns_read(&args, &read);
	IS(read.count, 2);
	json_t *json = ckt_ctl_turns_json(&read, "0123456789ab");
	IS(json_array_size(json), 2);
	TEXT(json_string_value(json_object_get(json_array_get(json, 0), "state")), "runs");
	TEXT(json_string_value(json_object_get(json_array_get(json, 1), "state")), "idle");
	TEXT(json_string_value(json_object_get(json_array_get(json, 1), "class")), "latency");
	json_decref(json);
	json = ckt_ctl_turns_json(&read, "fffffffffff0");
	TEXT(json_string_value(json_object_get(json_array_get(json, 0), "state")), "?");
	TEXT(json_string_value(json_object_get(json_array_get(json, 0), "class")), "?");
	json_decref(json);
	ckt_ctl_listing_free(&read);
	replies[CKT_CONTROL_TURNS].answer = hang_up;
	ckt_ctl_turns_read(&args, &read);
	IS(read.count, 0);
	ckt_ctl_listing_free(&read);
}

UNIT_SUITE(turns, {"pages", test_pages})
