/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/limit.c: cricketctl limit set, show and clear. */
#include <jansson.h>
#include <string.h>

#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_result result = {CKT_CONTROL_OK, (char *)"that is why"};

static void answer(uint32_t proc, ckt_control_status status)
{
	begin();
	result.status = status;
	replies[proc] = (struct reply){(xdrproc_t)xdr_ckt_control_result, &result, NULL};
}

static void asked(uint32_t proc, const char *rule)
{
	ckt_control_limit_args args = {0};
	calls_are(&proc, 1);
	YES(decode(0, (xdrproc_t)xdr_ckt_control_limit_args, &args));
	TEXT(args.rule, rule);
	xdr_free((xdrproc_t)xdr_ckt_control_limit_args, (char *)&args);
}

static void test_change(void)
{
	struct ckt_ctl_args args = {0}, json = {.json = true};
	answer(CKT_CONTROL_LIMIT_SET, CKT_CONTROL_OK);
	IS(run(ckt_ctl_limit, args, "set", "job=a", "memory=8G", "share=3", NULL), CKT_EXIT_DONE);
	asked(CKT_CONTROL_LIMIT_SET, "job=a memory=8G share=3");
	answer(CKT_CONTROL_LIMIT_SET, CKT_CONTROL_REFUSED);
	IS(run(ckt_ctl_limit, args, "set", "job=a", "memory=8X", NULL), CKT_EXIT_REFUSED);
	HAS(err, "that is why");
	/* Who has a share-group hears what that means, once it is set. */
	answer(CKT_CONTROL_LIMIT_SET, CKT_CONTROL_REFUSED);
	run(ckt_ctl_limit, args, "set", "user=a", "share-group=lab", NULL);
	CU_ASSERT_PTR_NULL(strstr(err, "fault domain"));
	answer(CKT_CONTROL_LIMIT_SET, CKT_CONTROL_OK);
	IS(run(ckt_ctl_limit, args, "set", "user=a", "share-group=none", NULL), CKT_EXIT_DONE);
	CU_ASSERT_PTR_NULL(strstr(err, "fault domain"));
	answer(CKT_CONTROL_LIMIT_SET, CKT_CONTROL_OK);
	IS(run(ckt_ctl_limit, args, "set", "user=a", "share-group=lab", NULL), CKT_EXIT_DONE);
	HAS(err, "all owners of share-group=lab have one user and one fault domain");
	answer(CKT_CONTROL_LIMIT_CLEAR, CKT_CONTROL_OK);
	IS(run(ckt_ctl_limit, json, "clear", "job=a", NULL), CKT_EXIT_DONE);
	asked(CKT_CONTROL_LIMIT_CLEAR, "job=a");
	HAS(out, "\"cleared\": \"job=a\"");
}

static void test_usage(void)
{
	char rule[CKT_CONTROL_LIMIT_LINE + 2];
	struct ckt_ctl_args args = {0};
	memset(rule, 'a', sizeof rule);
	rule[sizeof rule - 1] = 0;
	begin();
	IS(run(ckt_ctl_limit, args, "set", "job=a", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_limit, args, "clear", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_limit, args, "clear", "job=a", "job=b", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_limit, args, "show", "job=a", NULL), CKT_EXIT_USAGE);
	IS(run(ckt_ctl_limit, args, "lift", "job=a", NULL), CKT_EXIT_USAGE);
	HAS(err, "set, show or clear");
	IS(run(ckt_ctl_limit, args, "set", "job=a", rule, NULL), CKT_EXIT_USAGE);
	HAS(err, "too long");
	IS(seen_count, 0);
}

static void test_show(void)
{
	ckt_control_leased leased[] = {{0, 96 << 20}, {1, 2 << 20}};
	ckt_control_limit limits[] = {{.rule = (char *)"job=a memory=1G",
					      .live = true,
					      .sessions = 2,
					      .leased = {2, leased}},
		{.rule = (char *)"user=bob\x1b sessions=3"}};
	ckt_control_budget budget = {0, (u_quad_t)5 << 30, (u_quad_t)1 << 30};
	ckt_control_limits_res res = {{2, limits}, {1, &budget}};
	begin();
	replies[CKT_CONTROL_LIMIT_SHOW] =
		(struct reply){(xdrproc_t)xdr_ckt_control_limits_res, &res, NULL};
	IS(run(ckt_ctl_limit, (struct ckt_ctl_args){0}, "show", NULL), CKT_EXIT_DONE);
	HAS(out, "set     96 MiB on GPU 0, 2.0 MiB on GPU 1  job=a memory=1G\n");
	HAS(out, "file    -  user=bob");
	CU_ASSERT_PTR_NULL(strchr(out, '\x1b'));
	HAS(out, "GPU 0: 1.0 GiB of 5.0 GiB\n");
	IS(run(ckt_ctl_limit, (struct ckt_ctl_args){.json = true}, "show", NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL), *list = json_object_get(json, "limits");
	IS(json_array_size(list), 2);
	const json_t *first = json_array_get(list, 0);
	TEXT(json_string_value(json_object_get(first, "limit")), "job=a memory=1G");
	IS(json_integer_value(json_object_get(first, "sessions")), 2);
	const json_t *gpu = json_array_get(json_object_get(first, "gpus"), 1);
	IS(json_integer_value(json_object_get(gpu, "leased_bytes")), 2 << 20);
	gpu = json_array_get(json_object_get(json, "gpus"), 0);
	IS(json_integer_value(json_object_get(gpu, "budget_bytes")), 5ll << 30);
	json_decref(json);
}

UNIT_SUITE(limit, {"change", test_change}, {"usage", test_usage}, {"show", test_show})
