/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/durable.c: automatic images, of a server that knows and of one that does not; a peer's text. */
#include "ctl/durable.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/net.h"

static ckt_control_durable images[] = {
	{.session = (char *)"0123456789ab",
		.when = 1000,
		.executed = 77,
		.bytes = 3 << 20,
		.images = 2,
		.taken = 9,
		.behind = 4,
		.problem = (char *)""},
	{.session = (char *)"fffffffffff0", .problem = (char *)"full\033[2J"},
};

/* Two pages. */
static bool page(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_durable_res res;
	ckt_control_list_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_list_args, &asked) == 0);
	bool second = *asked.after;
	res = (ckt_control_durable_res){.sessions = {1, &images[second]}, .more = !second};
	xdr_free((xdrproc_t)xdr_ckt_control_list_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_durable_res;
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
	struct ckt_ctl_durable list;
	begin();
	replies[CKT_CONTROL_DURABLE].answer = page;
	ckt_ctl_durable_read(&args, &list);
	IS(list.images.count, 2);
	json_t *json = ckt_ctl_durable_json(&list, "0123456789ab");
	IS(json_integer_value(json_object_get(json, "executed")), 77);
	IS(json_integer_value(json_object_get(json, "behind")), 4);
	YES(json_is_null(json_object_get(json, "problem")));
	json_decref(json);
	json = ckt_ctl_durable_json(&list, "fffffffffff0");
	YES(json_is_null(json_object_get(json, "when")));
	json_decref(json);
	CU_ASSERT_PTR_NULL(ckt_ctl_durable_json(&list, "nobody"));
	CU_ASSERT_PTR_NULL(ckt_ctl_asleep_json(&list, "nobody"));
	json = ckt_ctl_asleep_json(&list, "0123456789ab");
	IS(json_object_size(json), 2);
	IS(json_integer_value(json_object_get(json, "bytes")), 3 << 20);
	YES(json_is_string(json_object_get(json, "since")));
	json_decref(json);
	ckt_ctl_durable_free(&list);
	/* A server of an earlier version ends the connection. */
	replies[CKT_CONTROL_DURABLE].answer = hang_up;
	ckt_ctl_durable_read(&args, &list);
	IS(list.images.count, 0);
	ckt_ctl_durable_free(&list);
}

/* One of a session there, and two pages of those that are held there. */
static bool replicas(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_replica list[] = {
		{.session = (char *)"0123456789ab",
			.server = (char *)"gpu2\033[2J",
			.executed = 70,
			.behind = 11,
			.when = 1,
			.lease_s = 16,
			.problem = (char *)"no\033room"},
		{.session = (char *)"aaaaaaaaaaaa",
			.server = (char *)"",
			.executed = 5,
			.bytes = 3 << 20,
			.problem = (char *)""},
		{.session = (char *)"b\033bbbbbbbbbb",
			.server = (char *)"",
			.when = INT64_MAX,
			.problem = (char *)""},
	};
	static ckt_control_replicas_res res;
	ckt_control_replicas_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_replicas_args, &asked) == 0);
	unsigned which = !asked.held ? 0 : *asked.after ? 2 : 1;
	res = (ckt_control_replicas_res){.replicas = {1, &list[which]}, .more = which == 1};
	xdr_free((xdrproc_t)xdr_ckt_control_replicas_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_replicas_res;
	*ret_res = &res;
	return true;
}

static void test_replicas(void)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_durable list;
	begin();
	replies[CKT_CONTROL_DURABLE].answer = page;
	replies[CKT_CONTROL_REPLICAS].answer = replicas;
	ckt_ctl_durable_read(&args, &list);
	IS(list.replica_count, 3);
	json_t *json = ckt_ctl_durable_json(&list, "0123456789ab"),
	       *replica = json_object_get(json, "replica");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(replica, "state")), "behind");
	IS(json_integer_value(json_object_get(replica, "behind")), 11);
	IS(json_integer_value(json_object_get(replica, "lease_s")), 16);
	json_decref(json);
	/* What is held there is no replica of its own session. */
	json = ckt_ctl_durable_json(&list, "fffffffffff0");
	CU_ASSERT_PTR_NULL(json_object_get(json, "replica"));
	json_decref(json);
	json = ckt_ctl_replicas_json(&list);
	IS(json_array_size(json), 2);
	json_decref(json);
	ckt_ctl_durable_free(&list);
	/* A server of an earlier version ends the connection: it has none. */
	replies[CKT_CONTROL_REPLICAS].answer = hang_up;
	ckt_ctl_durable_read(&args, &list);
	IS(list.images.count, 2);
	IS(list.replica_count, 0);
	CU_ASSERT_PTR_NULL(ckt_ctl_replicas_json(&list));
	ckt_ctl_durable_free(&list);
}

static bool list_sessions(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_session sessions[] = {
		{.session = (char *)"0123456789ab",
			.program_name = (char *)"p",
			.client = (char *)"",
			.note = (char *)""},
		{.session = (char *)"fffffffffff0",
			.program_name = (char *)"q",
			.client = (char *)"",
			.note = (char *)""},
	};
	static ckt_control_list_res res = {.sessions = {2, sessions}};
	(void)args, (void)fd;
	*ret_xdr = (xdrproc_t)xdr_ckt_control_list_res;
	*ret_res = &res;
	return true;
}

static void test_text(void)
{
	begin();
	replies[CKT_CONTROL_LIST].answer = list_sessions;
	replies[CKT_CONTROL_JOBS].answer = hang_up;
	replies[CKT_CONTROL_OWNERS].answer = hang_up;
	replies[CKT_CONTROL_CONNECTIONS].answer = hang_up;
	replies[CKT_CONTROL_WAITS].answer = hang_up;
	replies[CKT_CONTROL_DURABLE].answer = page;
	replies[CKT_CONTROL_REPLICAS].answer = replicas;
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(out, "s old, up to command 77: 2 images, 3.0 MiB\n");
	HAS(out, "no automatic image yet; why: full");
	HAS(out, "up to command 70, 11 behind, renewed ");
	HAS(out, "aaaaaaaaaaaa  replica of another server's session, up to command 5: 3.0 MiB");
	CU_ASSERT_PTR_NULL(strchr(out, '\033'));
}

UNIT_SUITE(durable, {"pages", test_pages}, {"text", test_text}, {"replicas", test_replicas})
