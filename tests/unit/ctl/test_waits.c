/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/waits.c: who waits, of a server that knows and of one that does not; a peer's text. */
#include "ctl/waits.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/net.h"

static ckt_control_wait_holder holder = {(char *)"0123456789ab", 3 << 20};
static ckt_control_wait waits[] = {
	{.session = (char *)"fffffffffff0",
		.gpu = 2,
		.bytes = 1536,
		.waited_ms = 1500,
		.reason = (char *)"wait\033[2J",
		.holders = {1, &holder},
		.others = 2,
		.others_bytes = 1 << 20},
	{.session = (char *)"0123456789ab",
		.reason = (char *)"alone",
		.others = 1,
		.others_bytes = 1 << 20},
	{.session = (char *)"fffffffffff0", .reason = (char *)"second"},
};

/* Two pages. */
static bool page(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_waits_res res;
	ckt_control_waits_args asked = {0};
	(void)fd;
	YES(ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_waits_args, &asked) == 0);
	YES(asked.skip == 0 || asked.skip == 2);
	res = (ckt_control_waits_res){.policy = (char *)"fifo",
		.waits = {asked.skip ? 1 : 2, &waits[asked.skip]},
		.more = asked.skip == 0};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_waits_res;
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
	struct ckt_ctl_waits list;
	begin();
	replies[CKT_CONTROL_WAITS].answer = page;
	ckt_ctl_waits_read(&args, &list);
	IS(list.count, 2);
	json_t *json = ckt_ctl_waits_json(&list, "fffffffffff0"), *first = json_array_get(json, 0);
	IS(json_array_size(json), 2);
	IS(json_integer_value(json_object_get(first, "gpu")), 2);
	IS(json_integer_value(json_object_get(first, "bytes")), 1536);
	IS(json_integer_value(json_object_get(first, "waited_ms")), 1500);
	IS(json_integer_value(json_object_get(first, "others")), 2);
	IS(json_array_size(json_object_get(first, "holders")), 1);
	json_decref(json);
	json = ckt_ctl_waits_json(&list, "nobody");
	IS(json_array_size(json), 0);
	json_decref(json);
	ckt_ctl_waits_free(&list);
	/* A server of an earlier version ends the connection. */
	replies[CKT_CONTROL_WAITS].answer = hang_up;
	ckt_ctl_waits_read(&args, &list);
	IS(list.count, 0);
	ckt_ctl_waits_free(&list);
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
	replies[CKT_CONTROL_WAITS].answer = page;
	IS(run(ckt_ctl_ps, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(out, "waits for 1.5 KiB of GPU 2 for 1.5 s: wait");
	HAS(out, "; held by 0123456789ab 3.0 MiB and 2 more sessions 1.0 MiB\n");
	HAS(out, "alone; held by 1 session 1.0 MiB\n");
	HAS(out, "second\n");
	CU_ASSERT_PTR_NULL(strchr(out, '\033'));
}

UNIT_SUITE(waits, {"pages", test_pages}, {"text", test_text})
