/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl checkpoint --job NAME DIR
 *
 *	hold all -> the cut (job_cut.c) -> every session is saved at one time, each into DIR/SESSION -> all have copied what they need
 *		 -> all go on -> the images are whole -> DIR/job.json, and DIR gets its name
 *
 * With --stop they stand until DIR has its name, and end then.  Whatever fails before that leaves
 * no DIR and lets all go on: by our word, or because our connections end.
 */
#include "ctl/job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/checkpoint.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/transfer.h"
#include "ctl/vouch.h"
#include "rpc/control.h"
#include "rpc/job.h"

enum { ANSWER_MS = 15000, LOOK_NS = 2000000, KEEP_NS = 200000000 };

/* One session's image. */
struct saver {
	struct ckt_ctl_job *job;
	struct ckt_ctl_rank *rank;
	unsigned deadline_ms;
	int parent_fd; /* where its directory is made: in DIR, or in memory with --encrypt */
	int final_fd;  /* DIR */
	pthread_t thread;
	bool begun;
	struct ckt_ctl_server server; /* a connection of its own, which shows the job's key */
	uint64_t bytes, memory_bytes;
	int status;
	_Atomic bool over;
};

/* All images: their bytes, and those of the sessions' memory. */
struct written {
	uint64_t bytes, memory_bytes;
};

static int show_key(struct saver *saver, const char *key)
{
	ckt_control_job_key_args args;
	ckt_control_result result = {0};
	memcpy(args.key, key, sizeof args.key);
	int status = ckt_ctl_call(&saver->server, CKT_CONTROL_JOB_KEY_SHOW,
		(xdrproc_t)xdr_ckt_control_job_key_args, &args, (xdrproc_t)xdr_ckt_control_result,
		&result, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static int save_into(struct saver *saver, int directory)
{
	const struct ckt_ctl_args *args = &saver->job->servers[saver->rank->server].args;
	char stage[CKT_CONTROL_NAME_MAX + 1] = "";
	ckt_control_save_res res = {0};
	int status =
		saver->server.is_unix ? CKT_EXIT_DONE : ckt_ctl_stage_make(&saver->server, stage);
	ckt_control_save_args call = {.session = saver->rank->session,
		.stage = stage,
		.deadline_ms = saver->deadline_ms,
		.compress = args->compress,
		.hold = args->stop};
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_save(
			&saver->server, &call, saver->server.is_unix ? directory : -1, -1, &res);
	if (status == CKT_EXIT_DONE && *stage)
		status = ckt_ctl_fetch(args, &saver->server, stage, directory, true, NULL);
	if (status == CKT_EXIT_DONE && *stage)
		status = ckt_ctl_stage_remove(&saver->server, stage);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_vouch(args, &saver->server, &res, directory);
	saver->bytes = res.bytes;
	saver->memory_bytes = res.memory_bytes;
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

static int save(struct saver *saver)
{
	const char *session = saver->rank->session;
	int status = ckt_ctl_connect_near(
		&saver->job->servers[saver->rank->server].args, &saver->server);
	if (status == CKT_EXIT_DONE)
		status = show_key(saver, saver->job->servers[saver->rank->server].key);
	int directory = mkdirat(saver->parent_fd, session, 0700)
		? -1
		: openat(saver->parent_fd, session,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (status == CKT_EXIT_DONE && directory < 0)
		status = ckt_ctl_refuse(session, strerror(errno));
	if (status == CKT_EXIT_DONE)
		status = save_into(saver, directory);
	if (status == CKT_EXIT_DONE && fsync(directory))
		status = ckt_ctl_refuse(session, strerror(errno));
	if (status == CKT_EXIT_DONE && saver->job->plain.fd >= 0)
		status =
			ckt_ctl_job_image_seal(saver->job, saver->rank, directory, saver->final_fd);
	if (directory >= 0)
		close(directory);
	return status;
}

static void *save_thread(void *opaque)
{
	struct saver *saver = opaque;
	saver->status = save(saver);
	saver->over = true;
	return NULL;
}

/* The directory that the images are written in. */
static int written_in(const struct ckt_ctl_job *job, int final_fd)
{
	return job->plain.fd >= 0 ? job->plain.fd : final_fd;
}

static void begin_all(
	struct ckt_ctl_job *job, struct saver *savers, unsigned deadline_ms, int final_fd)
{
	for (unsigned i = 0; i < job->rank_count; i++) {
		savers[i] = (struct saver){.job = job,
			.rank = &job->ranks[i],
			.deadline_ms = deadline_ms,
			.parent_fd = written_in(job, final_fd),
			.final_fd = final_fd,
			.server = {.fd = -1}};
		int error = pthread_create(&savers[i].thread, NULL, save_thread, &savers[i]);
		savers[i].begun = !error;
		if (error) {
			savers[i].status = ckt_ctl_refuse("checkpoint", strerror(error));
			savers[i].over = true;
		}
	}
}

static bool has_failed(const struct ckt_ctl_job *job, const struct saver *savers)
{
	for (unsigned i = 0; i < job->rank_count; i++)
		if (savers[i].over && savers[i].status != CKT_EXIT_DONE)
			return true;
	return false;
}

/*
 * The sessions are no longer needed, or the save has failed; with --stop: all images are complete.
 */
static bool may_end(const struct ckt_ctl_job *job, const struct saver *savers)
{
	for (unsigned i = 0; i < job->rank_count; i++)
		if (!savers[i].over && (job->args->stop || !job->ranks[i].copied))
			return false;
	return true;
}

/* While they are saved; the hold lasts as long as any save needs it. */
static int watch_saves(struct ckt_ctl_job *job, struct saver *savers)
{
	int status = CKT_EXIT_DONE;
	while (status == CKT_EXIT_DONE && !may_end(job, savers) && !has_failed(job, savers)) {
		status = ckt_ctl_job_look(job);
		nanosleep(&(struct timespec){.tv_nsec = job->args->stop ? KEEP_NS / 10 : LOOK_NS},
			NULL);
	}
	/* Held to the end: with --stop until the sessions have ended, else until here. */
	if (status == CKT_EXIT_DONE)
		status = job->args->stop ? ckt_ctl_job_look(job) : ckt_ctl_job_end(job);
	job->over_ns = ckt_ctl_job_now_ns();
	return status;
}

static int join_all(
	struct ckt_ctl_job *job, struct saver *savers, int status, struct written *ret_written)
{
	for (unsigned i = 0; i < job->rank_count; i++) {
		if (savers[i].begun)
			pthread_join(savers[i].thread, NULL);
		status = status == CKT_EXIT_DONE ? savers[i].status : status;
		ret_written->bytes += savers[i].bytes;
		ret_written->memory_bytes += savers[i].memory_bytes;
	}
	return status;
}

static int end_sessions(struct ckt_ctl_job *job, struct saver *savers)
{
	const char *to = job->args->client_address && job->args->to ? job->args->client_address
		: job->args->to                                     ? job->args->to
								    : "";
	int status = CKT_EXIT_DONE;
	for (unsigned i = 0; i < job->rank_count; i++) {
		int one = ckt_ctl_release(&savers[i].server, job->ranks[i].session, true, !*to, to);
		/* None has ended: all go on here. */
		if (*to && i == 0 && one != CKT_EXIT_DONE && one != CKT_EXIT_NO_SERVER) {
			ckt_ctl_job_pass_undo(job);
			return one;
		}
		if (*to)
			ckt_fault(CKT_FAULT_CTL_JOB_MOVE_RELEASED);
		status = status == CKT_EXIT_DONE ? one : status;
	}
	if (*to)
		job->over_ns = ckt_ctl_job_now_ns();
	return status;
}

/* The images are whole: they get their name, or are restored elsewhere. */
static int use_images(
	struct ckt_ctl_job *job, struct saver *savers, struct ckt_ctl_partial *partial)
{
	if (!job->args->to)
		return ckt_ctl_partial_keep(partial);
	struct ckt_ctl_server **holders = calloc(job->rank_count, sizeof(*holders));
	if (!holders)
		return ckt_ctl_refuse("migrate", "out of memory");
	for (unsigned i = 0; i < job->rank_count; i++)
		holders[i] = &savers[i].server;
	int status = ckt_ctl_job_pass(job, holders, partial->temporary);
	free(holders);
	return status;
}

/* Whether the images could be restored together, while the sessions can still continue. */
static int check_communicators(const struct ckt_ctl_job *job, int parent_fd)
{
	struct ckt_ctl_members members = {0};
	const char **names = calloc(job->rank_count, sizeof(*names));
	char message[512];
	int status = names ? CKT_EXIT_DONE : ckt_ctl_refuse("checkpoint", "out of memory");
	for (unsigned i = 0; i < job->rank_count && status == CKT_EXIT_DONE; i++) {
		names[i] = job->ranks[i].session;
		int fd = openat(
			parent_fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int error = fd < 0 ? -errno
				   : ckt_ctl_members_read(&members, fd, i, message, sizeof message);
		if (error)
			status = ckt_ctl_refuse(names[i], fd < 0 ? strerror(-error) : message);
		if (fd >= 0)
			close(fd);
	}
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_members_check(&members, job->name, names);
	ckt_ctl_members_free(&members);
	free(names);
	return status;
}

static int write_manifest(const struct ckt_ctl_job *job, int final_fd)
{
	int result = ckt_ctl_job_manifest_write(written_in(job, final_fd), job);
	if (result)
		return ckt_ctl_refuse(job->name, strerror(-result));
	return job->plain.fd < 0
		? CKT_EXIT_DONE
		: ckt_ctl_file_seal(job->args, CKT_CTL_JOB_MANIFEST, job->plain.fd, final_fd);
}

static int save_all(struct ckt_ctl_job *job, unsigned deadline_ms, struct ckt_ctl_partial *partial,
	struct written *ret_written)
{
	struct saver *savers = calloc(job->rank_count, sizeof *savers);
	if (!savers)
		return ckt_ctl_refuse("checkpoint", "out of memory");
	begin_all(job, savers, deadline_ms, partial->fd);
	int status = watch_saves(job, savers);
	/* Closing its connection stops a write that is no longer needed. */
	for (unsigned i = 0; status != CKT_EXIT_DONE && i < job->rank_count; i++)
		if (savers[i].server.fd >= 0)
			ckt_ctl_hang_up(&savers[i].server);
	status = join_all(job, savers, status, ret_written);
	ckt_fault(CKT_FAULT_CTL_CHECKPOINT_SAVED);
	if (status == CKT_EXIT_DONE)
		status = check_communicators(job, written_in(job, partial->fd));
	if (status == CKT_EXIT_DONE)
		status = write_manifest(job, partial->fd);
	if (status == CKT_EXIT_DONE)
		status = use_images(job, savers, partial);
	if (status == CKT_EXIT_DONE && job->args->stop)
		status = end_sessions(job, savers);
	for (unsigned i = 0; i < job->rank_count; i++)
		ckt_ctl_disconnect(&savers[i].server);
	free(savers);
	return status;
}

/*
 * How long the job was stopped: from just before the first session was told to stop, until the last
 * one's server replied that it continues.  So it is never less than any session's time, and at most
 * two round trips more.  With --stop: until all images were complete.
 */
static int print(const struct ckt_ctl_job *job, const char *path, const struct written *written)
{
	char size[32];
	double stopped_ms = (double)(job->over_ns - job->held_ns) * 1e-6,
	       cut_ms = (double)(job->cut_ns - job->held_ns) * 1e-6;
	if (job->args->json) {
		json_t *list = json_array();
		for (unsigned i = 0; i < job->rank_count; i++)
			json_array_append_new(list, json_string(job->ranks[i].session));
		return ckt_ctl_json_print(json_pack("{s:s, s:o, s:o, s:I, s:I, s:b, s:f, s:f}",
			"job", job->name, "sessions", list, "directory", ckt_ctl_json_text(path),
			"bytes", (json_int_t)written->bytes, "memory_bytes",
			(json_int_t)written->memory_bytes, "stopped", job->args->stop, "stopped_ms",
			stopped_ms, "cut_ms", cut_ms));
	}
	printf("job %s: %u session%s written to %s, %s, ", job->name, job->rank_count,
		job->rank_count == 1 ? "" : "s", path,
		ckt_ctl_size_text(written->bytes, size, sizeof size));
	if (job->args->stop)
		printf("and ended\n");
	else
		printf("stopped for %.1f ms, of which %.1f ms until all were frozen\n", stopped_ms,
			cut_ms);
	return ckt_ctl_flush();
}

static int check_usage(const struct ckt_ctl_args *args)
{
	if (!ckt_job_name_good(args->job)) {
		fprintf(stderr,
			"cricketctl: --job: '%s' is not a job name: use at most %d "
			"letters, digits and . _ : -, with a letter or digit first\n",
			args->job, CKT_JOB_NAME_MAX);
		return CKT_EXIT_USAGE;
	}
	if (args->word_count != 1 || args->server_side || args->to_memory || args->every ||
		args->keep || args->incremental || args->with_client) {
		fprintf(stderr,
			"cricketctl: checkpoint --job NAME DIR can be combined with "
			"--server, --stop, --deadline, --compress, --image-key and --encrypt only\n");
		return CKT_EXIT_USAGE;
	}
	return ckt_ctl_checkpoint_check_keys(args);
}

static int check_migrate(const struct ckt_ctl_args *args)
{
	if (!ckt_job_name_good(args->job))
		return check_usage(args);
	if (args->word_count || !args->to || args->server_count > 1) {
		fprintf(stderr,
			"cricketctl: migrate --job NAME needs --to ADDRESS, and one --server at most\n");
		return CKT_EXIT_USAGE;
	}
	return CKT_EXIT_DONE;
}

/* path: NULL with migrate, whose images are for the way only. */
static int run(const struct ckt_ctl_args *args, const char *path)
{
	static struct ckt_ctl_job job;
	struct ckt_ctl_partial partial = {.fd = -1};
	unsigned deadline_ms;
	struct written written = {0};
	job = (struct ckt_ctl_job){.plain = {.fd = -1}};
	int status = ckt_ctl_parse_deadline(args->deadline, &deadline_ms);
	if (status != CKT_EXIT_DONE)
		return status;
	snprintf(job.name, sizeof job.name, "%s", args->job);
	status = ckt_ctl_job_connect(args, &job);
	if (status != CKT_EXIT_DONE)
		return status;
	if (path)
		status = ckt_ctl_partial_make(path, &partial);
	if (status == CKT_EXIT_DONE && args->encrypt)
		status = ckt_ctl_plain_make(&job.plain);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_job_hold(&job);
	if (status == CKT_EXIT_DONE && !path)
		status = ckt_ctl_job_move_directory(&job, &partial);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_job_cut(&job, deadline_ms);
	job.cut_ns = ckt_ctl_job_now_ns();
	if (status == CKT_EXIT_DONE)
		status = save_all(&job, deadline_ms, &partial, &written);
	ckt_ctl_plain_remove(&job.plain);
	if (status != CKT_EXIT_DONE || !path)
		ckt_ctl_partial_drop(&partial);
	if (status == CKT_EXIT_DONE)
		status = path ? print(&job, path, &written)
			      : ckt_ctl_job_move_print(&job, written.bytes);
	ckt_ctl_job_close(&job);
	return status;
}

int ckt_ctl_job_checkpoint(const struct ckt_ctl_args *args)
{
	char path[CKT_CTL_PATH_SIZE];
	int status = check_usage(args);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_path_copy(args->words[0], path);
	return status == CKT_EXIT_DONE ? run(args, path) : status;
}

int ckt_ctl_job_migrate(const struct ckt_ctl_args *args)
{
	/* They stand still until they are elsewhere. */
	struct ckt_ctl_args held = *args;
	int status = check_migrate(args);
	held.stop = true;
	return status == CKT_EXIT_DONE ? run(&held, NULL) : status;
}
