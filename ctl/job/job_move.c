/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl migrate --job NAME --to ADDRESS: all sessions of a job to one other server.
 *
 *	hold all -> the cut -> all are saved, as by checkpoint --job (job.c) -> restored at the target, while they stand still at the source
 *		 -> each ends at the source, and its client is told where to go
 *
 * Until the first one ends, any failure lets all go on at the source, because our connections end;
 * what was restored at the target is ended.
 */
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/fault_point.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { LOOK_NS = 200000000, KEEP_MS = 20000, ANSWER_MS = 30000 };

int ckt_ctl_job_move_directory(const struct ckt_ctl_job *job, struct ckt_ctl_partial *ret_partial)
{
	const char *places[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};
	uint64_t bytes = 0;
	for (unsigned i = 0; i < job->rank_count; i++)
		bytes += job->ranks[i].memory_bytes;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		struct statvfs fs;
		char path[CKT_CTL_PATH_SIZE];
		if (!places[i] || places[i][0] != '/' || statvfs(places[i], &fs) ||
			fs.f_bavail * (uint64_t)fs.f_frsize < bytes + bytes / 4 ||
			snprintf(path, sizeof path, "%s/cricket-migrate-job", places[i]) >=
				(int)sizeof path)
			continue;
		if (ckt_ctl_partial_make(path, ret_partial) == CKT_EXIT_DONE)
			return CKT_EXIT_DONE;
	}
	return ckt_ctl_refuse("migrate",
		"found no room for the job's memory: set TMPDIR to a directory with enough space");
}

/* ---- The restore at the target, beside the hold at the source */

struct restore {
	struct ckt_ctl_args args;
	int status;
	_Atomic bool over;
};

static void *restore_thread(void *opaque)
{
	struct restore *restore = opaque;
	restore->status = ckt_ctl_job_restore_held(&restore->args);
	restore->over = true;
	return NULL;
}

/* A connection that says nothing for long would lose its hold. */
static int keep_connection(struct ckt_ctl_server *server)
{
	return ckt_ctl_call(server, CKT_CONTROL_NULL, NULL, NULL,
		(xdrproc_t)(void (*)(void))xdr_void, NULL, ANSWER_MS, -1);
}

static int keep_held(
	struct ckt_ctl_job *job, struct ckt_ctl_server *const *holders, int64_t *kept_ms)
{
	int status = ckt_ctl_job_look(job);
	int64_t now = ckt_net_now_ms();
	if (now - *kept_ms < KEEP_MS)
		return status;
	*kept_ms = now;
	for (unsigned i = 0; i < job->rank_count && status == CKT_EXIT_DONE; i++)
		status = keep_connection(holders[i]);
	return status;
}

int ckt_ctl_job_pass(
	struct ckt_ctl_job *job, struct ckt_ctl_server *const *holders, const char *path)
{
	struct restore restore = {.args = *job->args};
	pthread_t thread;
	int64_t kept_ms = ckt_net_now_ms();
	restore.args.job = path;
	restore.args.word_count = 0;
	restore.args.server = restore.args.servers[0] = job->args->to;
	restore.args.server_count = 1;
	int status = CKT_EXIT_DONE;
	int error = pthread_create(&thread, NULL, restore_thread, &restore);
	if (error)
		return ckt_ctl_refuse("migrate", strerror(error));
	/* A hold that is lost: its session goes on here, so what is restored there must not. */
	while (!restore.over) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		if (status == CKT_EXIT_DONE)
			status = keep_held(job, holders, &kept_ms);
	}
	pthread_join(thread, NULL);
	if (status == CKT_EXIT_DONE && restore.status == CKT_EXIT_DONE)
		status = ckt_ctl_job_look(job);
	if (status != CKT_EXIT_DONE && restore.status == CKT_EXIT_DONE)
		ckt_ctl_job_pass_undo(job);
	ckt_fault(CKT_FAULT_CTL_JOB_MOVE_RESTORED);
	return restore.status == CKT_EXIT_DONE ? status : restore.status;
}

void ckt_ctl_job_pass_undo(struct ckt_ctl_job *job)
{
	struct ckt_ctl_args args = *job->args;
	args.server = job->args->to;
	for (unsigned i = 0; i < job->rank_count; i++) {
		ckt_control_session_args call = {.session = job->ranks[i].session};
		ckt_control_result result = {0};
		ckt_ctl_ask(&args, call.session, CKT_CONTROL_KILL,
			(xdrproc_t)xdr_ckt_control_session_args, &call,
			(xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS);
		xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	}
}

int ckt_ctl_job_move_print(const struct ckt_ctl_job *job, uint64_t bytes)
{
	char size[32];
	double stopped_ms = (double)(job->over_ns - job->held_ns) * 1e-6;
	if (job->args->json) {
		json_t *list = json_array();
		for (unsigned i = 0; i < job->rank_count; i++)
			json_array_append_new(list, json_string(job->ranks[i].session));
		return ckt_ctl_json_print(json_pack("{s:s, s:o, s:o, s:I, s:f}", "job", job->name,
			"sessions", list, "to", ckt_ctl_json_text(job->args->to), "bytes",
			(json_int_t)bytes, "stopped_ms", stopped_ms));
	}
	printf("job %s: %u session%s moved to %s, %s, stopped for %.1f ms\n", job->name,
		job->rank_count, job->rank_count == 1 ? "" : "s", job->args->to,
		ckt_ctl_size_text(bytes, size, sizeof size), stopped_ms);
	return ckt_ctl_flush();
}
