/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/info.c: cricketctl info: the server, its GPUs, who may connect. */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_gpu gpus[] = {
	{.ordinal = 3, .name = (char *)"GPU X", .memory_bytes = (uint64_t)8 << 30}};
static ckt_control_address listening[] = {{(char *)"127.0.0.1:7350"}};
static ckt_control_info_res info = {.build = (char *)"1.2",
	.host = (char *)"h\nost",
	.pid = 42,
	.driver = (char *)"/lib/libcuda.so.1",
	.gpus = {1, gpus},
	.socket = (char *)"/run/s",
	.listening = {1, listening},
	.sessions = 2,
	.max_sessions = 5,
	.session_memory_bytes = (uint64_t)1 << 30};

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

/* In which ways sessions share GPUs. */
static void test_sharing(void)
{
	static ckt_control_share_modes_res modes;
	static const struct {
		bool space, wants;
		const char *standard, *words;
	} cases[] = {{true, true, "space", "in time or in space, without a rule in space"},
		{true, false, "time", "in time or in space, without a rule in time"},
		{false, true, "time", "in time; not in space: no\\x09MPS"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin();
		modes = (ckt_control_share_modes_res){
			cases[i].space, (char *)(cases[i].space ? "" : "no\tMPS"), cases[i].wants};
		replies[CKT_CONTROL_INFO] =
			(struct reply){(xdrproc_t)xdr_ckt_control_info_res, &info, NULL};
		replies[CKT_CONTROL_SHARE_MODES] =
			(struct reply){(xdrproc_t)xdr_ckt_control_share_modes_res, &modes, NULL};
		IS(run(ckt_ctl_info, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
		json_t *json = json_loads(out, 0, NULL),
		       *sharing = json_object_get(json, "sharing");
		IS(json_array_size(json_object_get(sharing, "modes")), cases[i].space ? 2 : 1);
		TEXT(json_string_value(json_object_get(sharing, "default")), cases[i].standard);
		IS(json_is_null(json_object_get(sharing, "reason")), cases[i].space);
		json_decref(json);
		IS(run(ckt_ctl_info, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
		HAS(out, "sharing     GPUs in time");
		if (cases[i].space)
			HAS(out, cases[i].words);
	}
	replies[CKT_CONTROL_SHARE_MODES] = (struct reply){.answer = hang_up};
	IS(run(ckt_ctl_info, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
	json_t *json = json_loads(out, 0, NULL);
	YES(json_is_null(json_object_get(json, "sharing")));
	json_decref(json);
	IS(run(ckt_ctl_info, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	CU_ASSERT_PTR_NULL(strstr(out, "sharing"));
}

static void test_info(void)
{
	static const struct {
		bool token, insecure, soft, stopping;
		const char *authentication, *words;
	} cases[] = {
		{false, false, false, false, "local", "of this host, by user"},
		{true, false, true, false, "token", "over TCP with the token"},
		{true, true, false, true, "none", "--insecure"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin();
		info.token = cases[i].token;
		info.insecure = cases[i].insecure;
		info.soft = cases[i].soft;
		info.stopping = cases[i].stopping;
		replies[CKT_CONTROL_INFO] =
			(struct reply){(xdrproc_t)xdr_ckt_control_info_res, &info, NULL};
		IS(run(ckt_ctl_info, (struct ckt_ctl_args){.json = true}, NULL), CKT_EXIT_DONE);
		json_t *json = json_loads(out, 0, NULL);
		TEXT(json_string_value(json_object_get(json, "authentication")),
			cases[i].authentication);
		IS(json_is_true(json_object_get(json, "soft")), cases[i].soft);
		IS(json_is_true(json_object_get(json, "stopping")), cases[i].stopping);
		TEXT(json_string_value(json_object_get(json, "host")), "h\nost");
		json_t *gpu = json_array_get(json_object_get(json, "gpus"), 0);
		IS(json_integer_value(json_object_get(gpu, "gpu")), 3);
		IS(json_integer_value(json_object_get(gpu, "memory_bytes")), (uint64_t)8 << 30);
		json_decref(json);
		IS(run(ckt_ctl_info, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
		HAS(out, cases[i].words);
		HAS(out, "gpu 3       GPU X, 8.0 GiB");
		HAS(out, "sessions    2 of 5, 1.0 GiB each");
		IS(strstr(out, "shutting down") != NULL, cases[i].stopping);
		CU_ASSERT_PTR_NULL(strstr(out, "h\nost"));
	}
	IS(run(ckt_ctl_info, (struct ckt_ctl_args){.server = "unix:/nowhere"}, NULL),
		CKT_EXIT_NO_SERVER);
}

UNIT_SUITE(info, {"info", test_info}, {"sharing", test_sharing})
