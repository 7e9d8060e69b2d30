/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/job/job.c, ctl/job/job_servers.c: what is asked of the server for a job's checkpoint, what
 * comes of each answer, and that nothing is left of one that fails.
 */
#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/job/job.h"
#include "ctl/subcommands.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/wire.h"

static ckt_control_rank told[2];
static ckt_control_job_res held;
static ckt_control_save_res saved;

static bool save(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args;
	if (saved.result.status == CKT_CONTROL_OK)
		image_in(fd, 'x', "");
	*ret_xdr = (xdrproc_t)xdr_ckt_control_save_res;
	*ret_res = &saved;
	return true;
}

static void start(void)
{
	begin();
	for (int i = 0; i < 2; i++)
		told[i] =
			(ckt_control_rank){.session = (char *)(i ? "ba9876543210" : "0123456789ab"),
				.program_name = (char *)"p",
				.client = (char *)"h",
				.client_pid = 8u - (unsigned)i,
				.held = true,
				.drained = true,
				.copied = true,
				.message = (char *)""};
	held = (ckt_control_job_res){.result = {CKT_CONTROL_OK, (char *)""}, .ranks = {2, told}};
	memset(held.key, 'k', sizeof held.key);
	saved = (ckt_control_save_res){.result = {CKT_CONTROL_OK, (char *)""},
		.session = (char *)"x",
		.bytes = 512,
		.memory_bytes = 700};
	for (uint32_t proc = CKT_CONTROL_JOB_HOLD; proc <= CKT_CONTROL_JOB_END; proc++)
		replies[proc] = (struct reply){(xdrproc_t)xdr_ckt_control_job_res, &held, NULL};
	replies[CKT_CONTROL_SAVE].answer = save;
}

static unsigned calls_of(uint32_t proc)
{
	unsigned n = 0;
	for (unsigned i = 0; i < seen_count; i++)
		n += seen[i].proc == proc;
	return n;
}

static void test_usage(void)
{
	static const struct {
		struct ckt_ctl_args args;
		const char *word, *says;
	} cases[] = {
		{{.job = "a b"}, "x", "--job: 'a b' is not a job name"},
		{{.job = "a"}, NULL, "checkpoint --job NAME DIR can be combined with"},
		{{.job = "a", .every = "1s"}, "x",
			"can be combined with --server, --stop, --deadline, --compress, --image-key and --encrypt only"},
		{{.job = "a", .with_client = true}, "x", "can be combined with"},
		{{.job = "a", .deadline = "0"}, "x", "--deadline: '0' is not valid"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		start();
		IS(run(ckt_ctl_checkpoint, cases[i].args, cases[i].word, NULL), CKT_EXIT_USAGE);
		HAS(err, cases[i].says);
		IS(seen_count, 0);
	}
}

static void test_saved(void)
{
	start();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine", .json = true},
		   path_in("saved"), NULL),
		CKT_EXIT_DONE);
	TEXT(err, "");
	json_t *json = json_loads(out, 0, NULL);
	TEXT(json_string_value(json_object_get(json, "job")), "mine");
	/* By process on their host, as launchers start them. */
	TEXT(json_string_value(json_array_get(json_object_get(json, "sessions"), 0)),
		"ba9876543210");
	IS(json_integer_value(json_object_get(json, "bytes")), 1024);
	IS(json_integer_value(json_object_get(json, "memory_bytes")), 1400);
	double stopped_ms = json_real_value(json_object_get(json, "stopped_ms")),
	       cut_ms = json_real_value(json_object_get(json, "cut_ms"));
	YES(cut_ms > 0 && cut_ms <= stopped_ms);
	json_decref(json);
	IS(calls_of(CKT_CONTROL_JOB_HOLD), 1);
	IS(calls_of(CKT_CONTROL_JOB_KEY_SHOW), 2);
	IS(calls_of(CKT_CONTROL_SAVE), 2);
	IS(calls_of(CKT_CONTROL_JOB_END), 1);
	IS(calls_of(CKT_CONTROL_RELEASE), 0);
	YES(exists(path_in("saved/job.json")) && exists(path_in("saved/0123456789ab")));
	for (unsigned i = 0; i < seen_count; i++)
		if (seen[i].proc == CKT_CONTROL_JOB_KEY_SHOW)
			IS(memcmp(seen[i].args, held.key, sizeof held.key), 0);
}

static void test_stopped(void)
{
	start();
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine", .stop = true},
		   path_in("stopped"), NULL),
		CKT_EXIT_DONE);
	HAS(out, "job mine: 2 sessions written to");
	HAS(out, "and ended");
	IS(calls_of(CKT_CONTROL_RELEASE), 2);
	IS(calls_of(CKT_CONTROL_JOB_END), 0);
}

static void test_failed(void)
{
	/* One that does not drain. */
	start();
	told[1].drained = false;
	told[1].message = (char *)"a kernel\033 spins";
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine", .deadline = "1"},
		   path_in("late"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "session ba9876543210 (p, process 7 on h) did not drain within 1 s: a kernel");
	CU_ASSERT_PTR_NULL(strchr(err, '\033'));
	IS(calls_of(CKT_CONTROL_SAVE), 0);
	NO(exists(path_in("late")));
	/* One that went on by itself, one that ended, one that cannot be saved, none at all. */
	start();
	told[0].held = false;
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine"}, path_in("late"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "continued before all sessions were saved");
	start();
	saved.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"no room"};
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine"}, path_in("late"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "no room");
	NO(exists(path_in("late")));
	start();
	held.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"there is no such job"};
	IS(run(ckt_ctl_checkpoint, (struct ckt_ctl_args){.job = "mine"}, path_in("late"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "there is no such job");
	NO(exists(path_in("late")));
}

UNIT_SUITE(job, {"usage", test_usage}, {"saved", test_saved}, {"stopped", test_stopped},
	{"failed", test_failed})
