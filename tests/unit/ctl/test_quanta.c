/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/quanta.c: page by page, of a server that swaps and of one that does not know.  test_ps.c has the words. */
#include <stdbool.h>
#include <string.h>

#include "ctl/quanta.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"

static ckt_control_quantum sessions[] = {
	{.session = (char *)"0123456789ab",
		.gpu = 1,
		.state = CKT_CONTROL_QUANTUM_SWAPPED,
		.swapped_bytes = 4096,
		.reason = (char *)"why"},
	/* What no server of ours says. */
	{.session = (char *)"fffffffffff0", .state = 99, .reason = (char *)""},
};

/* The first session, then the second. */
static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_quanta_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	bool first = !*asked.after;
	if (!first)
		TEXT(asked.after, "0123456789ab");
	res = (ckt_control_quanta_res){
		.sessions = {1, first ? sessions : sessions + 1}, .more = first};
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_quanta_res;
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
	replies[CKT_CONTROL_QUANTA].answer = list;
	ckt_ctl_quanta_read(&args, &read);
	IS(read.count, 2);
	json_t *json = ckt_ctl_quanta_json(&read, "0123456789ab");
	TEXT(json_string_value(json_object_get(json, "state")), "swapped");
	IS(json_integer_value(json_object_get(json, "swapped_bytes")), 4096);
	TEXT(json_string_value(json_object_get(json, "reason")), "why");
	json_decref(json);
	json = ckt_ctl_quanta_json(&read, "fffffffffff0");
	TEXT(json_string_value(json_object_get(json, "state")), "?");
	json_decref(json);
	json = ckt_ctl_quanta_json(&read, "nobody");
	YES(json_is_null(json));
	json_decref(json);
	ckt_ctl_listing_free(&read);
	replies[CKT_CONTROL_QUANTA].answer = hang_up;
	ckt_ctl_quanta_read(&args, &read);
	IS(read.count, 0);
	ckt_ctl_listing_free(&read);
}

UNIT_SUITE(quanta, {"pages", test_pages})
