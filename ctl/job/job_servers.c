/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of a job, and what they hold for us; see job.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { ANSWER_MS = 15000 };

int ckt_ctl_job_connect(const struct ckt_ctl_args *args, struct ckt_ctl_job *job)
{
	int status = CKT_EXIT_DONE;
	unsigned count = args->server_count ? args->server_count : 1;
	job->args = args;
	for (unsigned i = 0; i < count && status == CKT_EXIT_DONE; i++) {
		job->servers[i].args = *args;
		if (args->server_count)
			job->servers[i].args.server = args->servers[i];
		status = ckt_ctl_connect_near(&job->servers[i].args, &job->servers[i].server);
		if (status == CKT_EXIT_DONE)
			job->server_count++;
	}
	if (status != CKT_EXIT_DONE)
		ckt_ctl_job_close(job);
	return status;
}

void ckt_ctl_job_close(struct ckt_ctl_job *job)
{
	for (unsigned i = 0; i < job->server_count; i++)
		ckt_ctl_disconnect(&job->servers[i].server);
	job->server_count = 0;
	free(job->ranks);
	job->ranks = NULL;
	job->rank_count = 0;
}

const char *ckt_ctl_rank_text(const struct ckt_ctl_rank *rank, char *buffer, size_t size)
{
	char program[CKT_NAME_MAX + 1], client[CKT_ADDRESS_MAX + 1];
	snprintf(buffer, size, "session %s (%s, process %u on %s)", rank->session,
		ckt_ctl_clean(rank->program, program, sizeof program), rank->pid,
		ckt_ctl_clean(rank->client, client, sizeof client));
	return buffer;
}

static struct ckt_ctl_rank *find(struct ckt_ctl_job *job, unsigned server, const char *session)
{
	for (unsigned i = 0; i < job->rank_count; i++)
		if (job->ranks[i].server == server && strcmp(job->ranks[i].session, session) == 0)
			return &job->ranks[i];
	return NULL;
}

static struct ckt_ctl_rank *add(
	struct ckt_ctl_job *job, unsigned server, const ckt_control_rank *told)
{
	struct ckt_ctl_rank *more = reallocarray(job->ranks, job->rank_count + 1, sizeof *more);
	if (!more)
		return NULL;
	job->ranks = more;
	struct ckt_ctl_rank *rank = &more[job->rank_count++];
	*rank = (struct ckt_ctl_rank){.server = server, .pid = told->client_pid, .gpu = told->gpu};
	snprintf(rank->session, sizeof rank->session, "%s", told->session);
	snprintf(rank->program, sizeof rank->program, "%s", told->program_name);
	snprintf(rank->client, sizeof rank->client, "%s", told->client);
	return rank;
}

static void note(struct ckt_ctl_rank *rank, const ckt_control_rank *told)
{
	rank->seen = true;
	rank->held = told->held;
	rank->cut.drained = told->drained;
	rank->copied = told->copied;
	rank->cut.commands = told->commands;
	rank->cut.issued = told->issued;
	rank->executed = told->executed;
	rank->memory_bytes = told->memory_bytes;
	rank->cut.tells = *told->message != 0;
	snprintf(rank->message, sizeof rank->message, "%s", told->message);
}

/* One call to one server, which returns its sessions; grow: they belong to the job from now on. */
static int call(struct ckt_ctl_job *job, unsigned server, uint32_t proc, xdrproc_t xdr_args,
	void *args, bool grow)
{
	ckt_control_job_res res = {0};
	int status = ckt_ctl_call(&job->servers[server].server, proc, xdr_args, args,
		(xdrproc_t)xdr_ckt_control_job_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	for (u_int i = 0; i < res.ranks.ranks_len && status == CKT_EXIT_DONE; i++) {
		const ckt_control_rank *told = &res.ranks.ranks_val[i];
		struct ckt_ctl_rank *rank =
			grow ? add(job, server, told) : find(job, server, told->session);
		if (rank)
			note(rank, told);
		else if (grow)
			status = ckt_ctl_refuse("checkpoint", "out of memory");
	}
	if (status == CKT_EXIT_DONE && grow) {
		job->servers[server].ranks = res.ranks.ranks_len;
		memcpy(job->servers[server].key, res.key, sizeof res.key);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_job_res, (char *)&res);
	return status;
}

static int by_place(const void *a, const void *b)
{
	const struct ckt_ctl_rank *x = a, *y = b;
	int order = x->server != y->server ? (x->server < y->server ? -1 : 1)
					   : strcmp(x->client, y->client);
	if (!order && x->pid != y->pid)
		order = x->pid < y->pid ? -1 : 1;
	return order ? order : strcmp(x->session, y->session);
}

int64_t ckt_ctl_job_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int ckt_ctl_job_hold(struct ckt_ctl_job *job)
{
	ckt_control_job_args args = {.job = job->name};
	int status = CKT_EXIT_DONE;
	job->held_ms = ckt_net_now_ms();
	job->held_ns = ckt_ctl_job_now_ns();
	for (unsigned i = 0; i < job->server_count && status == CKT_EXIT_DONE; i++)
		status = call(job, i, CKT_CONTROL_JOB_HOLD, (xdrproc_t)xdr_ckt_control_job_args,
			&args, true);
	/*
	 * In the order in which launchers start them, so that a list of GPUs at a restore has the
	 * expected meaning.
	 */
	if (status == CKT_EXIT_DONE && job->rank_count)
		qsort(job->ranks, job->rank_count, sizeof *job->ranks, by_place);
	return status;
}

static int check_all(struct ckt_ctl_job *job)
{
	char text[600], message[1300];
	for (unsigned i = 0; i < job->rank_count; i++) {
		const struct ckt_ctl_rank *rank = &job->ranks[i];
		if (rank->seen && rank->held)
			continue;
		snprintf(message, sizeof message, "%s %s: the other sessions continue",
			ckt_ctl_rank_text(rank, text, sizeof text),
			rank->seen ? "continued before all sessions were saved"
				   : "ended meanwhile");
		return ckt_ctl_refuse(job->name, message);
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_job_look(struct ckt_ctl_job *job)
{
	static ckt_control_step steps[CKT_CTL_RANKS_MAX];
	int status = CKT_EXIT_DONE;
	for (unsigned i = 0; i < job->rank_count; i++)
		job->ranks[i].seen = false;
	for (unsigned s = 0; s < job->server_count && status == CKT_EXIT_DONE; s++) {
		ckt_control_job_look_args args = {.steps = {0, steps}};
		for (unsigned i = 0; i < job->rank_count; i++) {
			struct ckt_ctl_rank *rank = &job->ranks[i];
			if (rank->server != s || !rank->cut.step ||
				args.steps.steps_len == CKT_CTL_RANKS_MAX)
				continue;
			steps[args.steps.steps_len++] = (ckt_control_step){
				rank->session, rank->cut.step_commands, rank->cut.step_issued};
			rank->cut.step = false;
		}
		status = call(job, s, CKT_CONTROL_JOB_LOOK,
			(xdrproc_t)xdr_ckt_control_job_look_args, &args, false);
	}
	return status == CKT_EXIT_DONE ? check_all(job) : status;
}

int ckt_ctl_job_end(struct ckt_ctl_job *job)
{
	int status = CKT_EXIT_DONE;
	for (unsigned i = 0; i < job->rank_count; i++)
		job->ranks[i].seen = false;
	/* All sessions continue, whatever one server replies. */
	for (unsigned s = 0; s < job->server_count; s++) {
		int one = call(job, s, CKT_CONTROL_JOB_END, NULL, NULL, false);
		status = status == CKT_EXIT_DONE ? one : status;
	}
	return status == CKT_EXIT_DONE ? check_all(job) : status;
}
