/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/restore.c: restores: which GPU, from where, what the server is asked, and what is said of its
 * answer.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/restore.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_restore_res restored;

static void start(ckt_control_status status, const char *message)
{
	begin();
	restored = (ckt_control_restore_res){.result = {status, (char *)message},
		.session = (char *)(status ? "" : "0123456789ab")};
	replies[CKT_CONTROL_RESTORE2] =
		(struct reply){(xdrproc_t)xdr_ckt_control_restore_res, &restored, NULL};
}

static int parse(const struct ckt_ctl_args *args)
{
	int gpu = 77, status = ckt_ctl_parse_gpu(args->gpu, &gpu);
	printf("%d", gpu);
	return status;
}

static void test_gpu(void)
{
	static const struct {
		const char *text;
		int status;
		const char *gpu;
	} cases[] = {{NULL, 0, "-1"}, {"0", 0, "0"}, {"7", 0, "7"}, {"007", 0, "7"}, {"", 2, "-1"},
		{"-1", 2, "-1"}, {"+1", 2, "-1"}, {" 1", 2, "-1"}, {"1x", 2, "-1"}, {"x", 2, "-1"},
		{"4294967296", 2, "-1"}, {"99999999999999999999999", 2, "-1"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		IS(run(parse, (struct ckt_ctl_args){.gpu = cases[i].text}, NULL), cases[i].status);
		TEXT(out, cases[i].gpu);
	}
	char most[16];
	snprintf(most, sizeof most, "%d", CKT_DEVICES_MAX - 1);
	IS(run(parse, (struct ckt_ctl_args){.gpu = most}, NULL), 0);
	snprintf(most, sizeof most, "%d", CKT_DEVICES_MAX);
	IS(run(parse, (struct ckt_ctl_args){.gpu = most}, NULL), CKT_EXIT_USAGE);
	HAS(err, "is not valid");
}

/* Nothing of these reaches the server. */
static void test_usage(void)
{
	static const struct {
		struct ckt_ctl_args args;
		const char *word;
		int status;
		const char *says;
	} cases[] = {
		{{0}, NULL, CKT_EXIT_USAGE, "name either a directory here or --server-side"},
		{{.server_side = "name"}, "dir", CKT_EXIT_USAGE,
			"name either a directory here or --server-side"},
		{{.server_side = "Name"}, NULL, CKT_EXIT_USAGE,
			"--server-side: 'Name' is not valid"},
		{{.server_side = "tmp-1"}, NULL, CKT_EXIT_USAGE, "do not begin with tmp-"},
		{{.gpu = "x"}, "dir", CKT_EXIT_USAGE, "--gpu: 'x' is not valid"},
		{{0}, "memory:A", CKT_EXIT_USAGE, "is not a name of an image in memory"},
		{{.with_client = true}, "memory:good", CKT_EXIT_USAGE,
			"--with-client needs a directory here"},
		{{.with_client = true, .server_side = "name"}, NULL, CKT_EXIT_USAGE,
			"--with-client needs a directory here"},
		{{0}, "/nonexistent/image", CKT_EXIT_REFUSED, "/nonexistent/image"},
		{{.server = "unix:/nonexistent/socket"}, "/nonexistent/image", CKT_EXIT_NO_SERVER,
			"/nonexistent/socket"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		start(CKT_CONTROL_OK, "");
		IS(run(ckt_ctl_restore, cases[i].args, cases[i].word, NULL), cases[i].status);
		HAS(err, cases[i].says);
		TEXT(out, "");
		IS(seen_count, 0);
	}
}

static void test_chain(void)
{
	image_make(path_in("whole"), 'a', "");
	image_make(path_in("second"), 'b', "a");
	write_file(path_in("second/base"), "../whole\n");
	start(CKT_CONTROL_OK, "");
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){.gpu = "3"}, path_in("second"), NULL),
		CKT_EXIT_DONE);
	HAS(out, "session 0123456789ab restored from");
	static const uint32_t calls[] = {
		CKT_CONTROL_IMAGE, CKT_CONTROL_IMAGE, CKT_CONTROL_RESTORE2, CKT_CONTROL_LIST};
	calls_are(calls, COUNT(calls));
	for (unsigned i = 0; i < 2; i++) {
		ckt_control_image_args image = {99};
		YES(seen[i].fd && decode(i, (xdrproc_t)xdr_ckt_control_image_args, &image));
		IS(image.index, i);
	}
	ckt_control_restore2_args asked = {0};
	YES(decode(2, (xdrproc_t)xdr_ckt_control_restore2_args, &asked));
	IS(asked.gpu, 3);
	IS(asked.stages.stages_len, 0);
	xdr_free((xdrproc_t)xdr_ckt_control_restore2_args, (char *)&asked);
	/* Refused: said, and nothing else. */
	start(CKT_CONTROL_REFUSED, "this server has no GPU 3");
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){0}, path_in("second"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "this server has no GPU 3");
	TEXT(out, "");
	calls_are(calls, 3);
	ckt_control_result no = {CKT_CONTROL_REFUSED, (char *)"a chain is at most so long"};
	start(CKT_CONTROL_OK, "");
	replies[CKT_CONTROL_IMAGE] = (struct reply){(xdrproc_t)xdr_ckt_control_result, &no, NULL};
	IS(run(ckt_ctl_restore, (struct ckt_ctl_args){0}, path_in("second"), NULL),
		CKT_EXIT_REFUSED);
	calls_are(calls, 1);
}

static void test_named(void)
{
	static const struct {
		const char *side, *word, *stage;
	} cases[] = {{"name", NULL, "name"}, {NULL, "memory:good", "memory:good"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_control_restore2_args asked = {0};
		start(CKT_CONTROL_OK, "");
		IS(run(ckt_ctl_restore,
			   (struct ckt_ctl_args){.server_side = cases[i].side, .json = true},
			   cases[i].word, NULL),
			CKT_EXIT_DONE);
		json_t *json = json_loads(out, 0, NULL);
		TEXT(json_string_value(json_object_get(json, "session")), "0123456789ab");
		json_decref(json);
		YES(decode(0, (xdrproc_t)xdr_ckt_control_restore2_args, &asked));
		IS(asked.gpu, -1);
		MUST(asked.stages.stages_len, 1);
		TEXT(asked.stages.stages_val[0].stage, cases[i].stage);
		xdr_free((xdrproc_t)xdr_ckt_control_restore2_args, (char *)&asked);
	}
}

UNIT_SUITE(restore, {"gpu", test_gpu}, {"usage", test_usage}, {"chain", test_chain},
	{"named", test_named})
