/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/drain/drain_state.c: what a server says of its draining, and what an older one does not. */
#include <jansson.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/drain/drain_state.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_drain_res res;

static void answer(bool draining)
{
	begin();
	res = (ckt_control_drain_res){.result = {.message = (char *)""},
		.draining = draining,
		.since = 5,
		.to = (char *)"b\x1b",
		.sessions = 3};
	replies[CKT_CONTROL_DRAIN].xdr = (xdrproc_t)xdr_ckt_control_drain_res;
	replies[CKT_CONTROL_DRAIN].res = &res;
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static void test_look(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_drain state = {0};
	answer(false);
	NO(ckt_ctl_drain_look(&args, &state));
	answer(true);
	YES(ckt_ctl_drain_look(&args, &state));
	IS(state.since, 5);
	IS(state.sessions, 3);
	TEXT(state.to, "b?");
	json_t *json = ckt_ctl_drain_json(&state);
	TEXT(json_string_value(json_object_get(json, "since")), "1970-01-01T00:00:05Z");
	TEXT(json_string_value(json_object_get(json, "to")), "b?");
	json_decref(json);
	/* An earlier version knows nothing of it. */
	replies[CKT_CONTROL_DRAIN].answer = hang_up;
	NO(ckt_ctl_drain_look(&args, NULL));
	NO(ckt_ctl_drain_look(&(struct ckt_ctl_args){.server = "unix:/nowhere"}, NULL));
}

static void test_set(void)
{
	answer(false);
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.undo = true}, NULL), CKT_EXIT_DONE);
	HAS(out, "takes new sessions again");
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){.undo = true, .json = true}, NULL),
		CKT_EXIT_DONE);
	HAS(out, "\"draining\": false");
	res.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"not you"};
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "not you");
	replies[CKT_CONTROL_DRAIN].answer = hang_up;
	IS(run(ckt_ctl_drain, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "earlier version cannot be drained");
}

UNIT_SUITE(drain_state, {"look", test_look}, {"set", test_set})
