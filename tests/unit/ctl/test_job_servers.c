/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/job/job_servers.c: several servers of one job, what each is told, and what of their answers
 * counts.
 */
#include <rpc/rpc.h>
#include <stdint.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/job/job.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_rank told = {.session = (char *)"0123456789ab",
	.program_name = (char *)"p\033",
	.client = (char *)"h",
	.client_pid = 7,
	.held = true,
	.drained = true,
	.message = (char *)""};
static ckt_control_job_res res = {.result = {CKT_CONTROL_OK, (char *)""}, .ranks = {1, &told}};
static struct ckt_ctl_job job;

/* Both are the one server there is. */
static int use(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_args two = *args;
	char text[600];
	two.servers[0] = two.servers[1] = address;
	two.server_count = 2;
	job = (struct ckt_ctl_job){.name = "mine"};
	IS(ckt_ctl_job_connect(&two, &job), CKT_EXIT_DONE);
	IS(job.server_count, 2);
	IS(ckt_ctl_job_hold(&job), CKT_EXIT_DONE);
	MUST(job.rank_count, 2);
	IS(job.ranks[0].server, 0);
	IS(job.ranks[1].server, 1);
	TEXT(ckt_ctl_rank_text(&job.ranks[0], text, sizeof text),
		"session 0123456789ab (p?, process 7 on h)");
	job.ranks[1].cut.step = true;
	job.ranks[1].cut.step_commands = 3;
	IS(ckt_ctl_job_look(&job), CKT_EXIT_DONE);
	NO(job.ranks[1].cut.step);
	res.ranks.ranks_len = 0;
	IS(ckt_ctl_job_look(&job), CKT_EXIT_REFUSED);
	res.ranks.ranks_len = 1;
	IS(ckt_ctl_job_end(&job), CKT_EXIT_DONE);
	told.held = false;
	IS(ckt_ctl_job_end(&job), CKT_EXIT_REFUSED);
	told.held = true;
	ckt_ctl_job_close(&job);
	IS(job.rank_count, 0);
	two.servers[1] = "unix:/nonexistent/socket";
	IS(ckt_ctl_job_connect(&two, &job), CKT_EXIT_NO_SERVER);
	IS(job.server_count, 0);
	return CKT_EXIT_DONE;
}

static void test_two(void)
{
	begin();
	for (uint32_t proc = CKT_CONTROL_JOB_HOLD; proc <= CKT_CONTROL_JOB_END; proc++)
		replies[proc] = (struct reply){(xdrproc_t)xdr_ckt_control_job_res, &res, NULL};
	IS(run(use, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	HAS(err, "ended meanwhile");
	HAS(err, "continued before all sessions were saved");
	unsigned steps = 0;
	for (unsigned i = 0; i < seen_count; i++) {
		ckt_control_job_look_args args = {0};
		if (seen[i].proc == CKT_CONTROL_JOB_LOOK &&
			decode(i, (xdrproc_t)xdr_ckt_control_job_look_args, &args)) {
			steps += args.steps.steps_len;
			xdr_free((xdrproc_t)xdr_ckt_control_job_look_args, (char *)&args);
		}
	}
	IS(steps, 1);
}

UNIT_SUITE(job_servers, {"two", test_two})
