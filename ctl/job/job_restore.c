/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl restore --job DIR: all sessions of a job, at one or several servers, all at one time,
 * all or none.
 *
 * They are restored beside each other, because what they make anew may wait for the others.  A
 * session goes to the server that --place says; without, to the one that has the number its own one
 * had, the servers counted round; where more are named than there were, the sessions are spread
 * over them in their order.  It gets the GPU that it had, unless --gpu says otherwise.
 *
 *	no communicator of NCCL and no memory is shared	RESTORE2 of each, side by side
 *	else						PRELOAD of each -> a new id for each communicator, told to all its ranks -> PRELOAD last of each
 */
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/restore.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/job.h"
#include "rpc/session.h"

enum { ANSWER_MS = 30000 };

struct restoration;

struct restorer {
	const struct restoration *restoration;
	const struct ckt_ctl_job_entry *entry;
	struct ckt_ctl_args args; /* with --server of its own */
	char path[CKT_CTL_PATH_SIZE + 16];
	char plain[CKT_CTL_PATH_SIZE + 16]; /* its decrypted image; empty: path is plain */
	int gpu;
	pthread_t thread;
	bool begun;
	struct ckt_ctl_server server;
	struct ckt_ctl_passing *passing;       /* NULL: in one step */
	char session[CKT_SESSION_ID_SIZE + 1]; /* or the copy that becomes the session */
	bool whole;                            /* it is the session */
	int status;
};

struct restoration {
	const struct ckt_ctl_args *args;
	char path[CKT_CTL_PATH_SIZE], job[CKT_JOB_NAME_MAX + 1];
	struct ckt_ctl_job_entry *entries;
	struct restorer *restorers;
	unsigned count;
	struct ckt_ctl_plain plain; /* of encrypted images */
	struct ckt_ctl_members members;
	bool held; /* the sessions stand still at their source, which tells their clients */
};

static const char *plain_of(const struct restorer *one)
{
	return *one->plain ? one->plain : NULL;
}

static void *decrypt_thread(void *opaque)
{
	struct restorer *one = opaque;
	one->status = ckt_ctl_job_image_unseal(
		&one->args, one->args.job, one->entry, one->restoration->plain.fd);
	return NULL;
}

static void *restore_thread(void *opaque)
{
	struct restorer *one = opaque;
	one->status = ckt_ctl_connect_near(&one->args, &one->server);
	if (one->status == CKT_EXIT_DONE)
		one->status = ckt_ctl_restore_image(&one->args, &one->server, one->path,
			plain_of(one), one->gpu, NULL, one->session);
	one->whole = one->status == CKT_EXIT_DONE;
	return NULL;
}

static void *ahead_thread(void *opaque)
{
	struct restorer *one = opaque;
	one->status = ckt_ctl_connect_near(&one->args, &one->server);
	if (one->status == CKT_EXIT_DONE)
		one->status = ckt_ctl_passing_open(
			&one->args, &one->server, one->path, plain_of(one), NULL, &one->passing);
	if (one->status == CKT_EXIT_DONE)
		one->status = ckt_ctl_passing_preload(
			one->passing, &one->server, one->gpu, false, one->session);
	return NULL;
}

static void *last_thread(void *opaque)
{
	struct restorer *one = opaque;
	one->status =
		ckt_ctl_passing_preload(one->passing, &one->server, one->gpu, true, one->session);
	one->whole = one->status == CKT_EXIT_DONE;
	return NULL;
}

static void kill_one(struct restorer *one)
{
	ckt_control_session_args call = {.session = one->session};
	ckt_control_result result = {0};
	if (ckt_ctl_call(&one->server, CKT_CONTROL_KILL, (xdrproc_t)xdr_ckt_control_session_args,
		    &call, (xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS,
		    -1) == CKT_EXIT_DONE)
		ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
}

/* All or none: if one could not be restored, the others end, and the images stay. */
static int judge(struct restoration *r)
{
	int status = CKT_EXIT_DONE;
	unsigned failed = 0;
	for (unsigned i = 0; i < r->count; i++) {
		failed += r->restorers[i].status != CKT_EXIT_DONE;
		status = status == CKT_EXIT_DONE ? r->restorers[i].status : status;
	}
	if (!failed)
		return CKT_EXIT_DONE;
	/* A copy ends with its connection. */
	for (unsigned i = 0; i < r->count; i++)
		if (r->restorers[i].whole)
			kill_one(&r->restorers[i]);
	fprintf(stderr, "cricketctl: job %s: %u of %u sessions could not be restored, so none was",
		r->job, failed, r->count);
	if (!r->held)
		fprintf(stderr, "; the images in %s are unchanged", r->path);
	fprintf(stderr, "\n");
	return status;
}

/* In parallel. */
static int run_all(struct restoration *r, void *(*thread)(void *restorer))
{
	for (unsigned i = 0; i < r->count; i++) {
		struct restorer *one = &r->restorers[i];
		int error = pthread_create(&one->thread, NULL, thread, one);
		one->begun = !error;
		if (error)
			one->status = ckt_ctl_refuse("restore", strerror(error));
	}
	for (unsigned i = 0; i < r->count; i++)
		if (r->restorers[i].begun)
			pthread_join(r->restorers[i].thread, NULL);
	return judge(r);
}

/*
 * Between a copy's first image and its last one: all copies exist, and none has begun to make
 * objects together with others.
 */
static int introduce(struct restoration *r)
{
	struct ckt_ctl_server **servers = calloc(r->count, sizeof(*servers));
	const char **copies = calloc(r->count, sizeof(*copies));
	int status = servers && copies ? CKT_EXIT_DONE : ckt_ctl_refuse("restore", "out of memory");
	for (unsigned i = 0; i < r->count && status == CKT_EXIT_DONE; i++) {
		servers[i] = &r->restorers[i].server;
		copies[i] = r->restorers[i].session;
	}
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_members_make(&r->members, servers, copies);
	for (unsigned i = 0; i < r->count && status == CKT_EXIT_DONE; i++)
		status = ckt_ctl_members_tell(&r->members, servers[i], copies[i], i);
	free(servers);
	free(copies);
	return status;
}

/* A copy that an earlier move left there is replaced by one that comes ahead. */
static int restore_all(struct restoration *r)
{
	bool shared = ckt_ctl_members_shared(&r->members);
	if (!shared && !r->held)
		return run_all(r, restore_thread);
	int status = run_all(r, ahead_thread);
	if (status == CKT_EXIT_DONE && shared)
		status = introduce(r);
	return status == CKT_EXIT_DONE ? run_all(r, last_thread) : status;
}

/* The server judges an image that cannot be read. */
static int read_members(struct restoration *r)
{
	char message[512];
	const char **names = calloc(r->count, sizeof(*names)),
		   **servers = calloc(r->count, sizeof(*servers));
	bool whole = names && servers;
	int status = whole ? CKT_EXIT_DONE : ckt_ctl_refuse("restore", "out of memory");
	for (unsigned i = 0; i < r->count && whole; i++) {
		int fd = open(
			plain_of(&r->restorers[i]) ? r->restorers[i].plain : r->restorers[i].path,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		whole = fd >= 0 &&
			ckt_ctl_members_read(&r->members, fd, i, message, sizeof message) == 0;
		names[i] = r->entries[i].session;
		servers[i] = r->restorers[i].args.server;
		if (fd >= 0)
			close(fd);
	}
	if (whole)
		status = ckt_ctl_members_check(&r->members, r->job, names);
	if (whole && status == CKT_EXIT_DONE)
		status = ckt_ctl_members_place(&r->members, r->job, names, servers, r->count);
	else
		ckt_ctl_members_free(&r->members);
	free(names);
	free(servers);
	return status;
}

/* --gpu 1,0 and --place 0,1: the first session's, the second's, and again from the beginning. */
static int parse_numbers(const char *text, const char *option, unsigned end,
	int ret_numbers[CKT_CTL_RANKS_MAX], unsigned *ret_count)
{
	*ret_count = 0;
	for (const char *p = text; p && *p;) {
		char *behind;
		long number = *p >= '0' && *p <= '9' ? strtol(p, &behind, 10) : -1;
		if (number < 0 || number >= (long)end ||
			(*behind && (*behind != ',' || !behind[1])) ||
			*ret_count == CKT_CTL_RANKS_MAX) {
			fprintf(stderr,
				"cricketctl: %s: '%s' is not valid: write numbers from 0 to %u with commas between them\n",
				option, text, end - 1);
			return CKT_EXIT_USAGE;
		}
		ret_numbers[(*ret_count)++] = (int)number;
		p = behind + (*behind == ',');
	}
	return CKT_EXIT_DONE;
}

/* The number of a session's server among the named ones. */
static unsigned place_of(
	const struct restoration *r, unsigned session, const int *places, unsigned place_count)
{
	unsigned named = r->args->server_count, before = 0;
	if (place_count)
		return (unsigned)places[session % place_count];
	for (unsigned i = 0; i < r->count; i++)
		before = r->entries[i].server >= before ? r->entries[i].server + 1 : before;
	return named > before ? session * named / r->count : r->entries[session].server % named;
}

static int read_manifest(struct restoration *r)
{
	if (!ckt_ctl_job_is_sealed(r->path))
		return ckt_ctl_job_manifest_read(r->path, r->job, &r->entries, &r->count);
	int status = ckt_ctl_plain_make(&r->plain);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_job_sealed_open(r->args, r->path, r->plain.fd);
	return status == CKT_EXIT_DONE
		? ckt_ctl_job_manifest_read(r->plain.path, r->job, &r->entries, &r->count)
		: status;
}

static int prepare(struct restoration *r)
{
	static int gpus[CKT_CTL_RANKS_MAX], places[CKT_CTL_RANKS_MAX];
	unsigned gpu_count, place_count, servers = r->args->server_count;
	int status = parse_numbers(r->args->gpu, "--gpu", CKT_DEVICES_MAX, gpus, &gpu_count);
	if (status == CKT_EXIT_DONE && r->args->place && !servers) {
		fprintf(stderr,
			"cricketctl: --place counts the servers of --server, but no "
			"--server is given\n");
		status = CKT_EXIT_USAGE;
	}
	if (status == CKT_EXIT_DONE)
		status = parse_numbers(
			r->args->place, "--place", servers ? servers : 1, places, &place_count);
	if (status == CKT_EXIT_DONE)
		status = read_manifest(r);
	if (status == CKT_EXIT_DONE && !(r->restorers = calloc(r->count, sizeof *r->restorers)))
		status = ckt_ctl_refuse("restore", "out of memory");
	for (unsigned i = 0; i < r->count && status == CKT_EXIT_DONE; i++) {
		struct restorer *one = &r->restorers[i];
		*one = (struct restorer){.restoration = r,
			.entry = &r->entries[i],
			.args = *r->args,
			.server = {.fd = -1}};
		if (servers)
			one->args.server = r->args->servers[place_of(r, i, places, place_count)];
		one->gpu = gpu_count ? gpus[i % gpu_count] : r->entries[i].gpu;
		one->args.job = r->path;
		snprintf(one->path, sizeof one->path, "%s/%s", r->path, r->entries[i].session);
		if (r->plain.fd >= 0)
			snprintf(one->plain, sizeof one->plain, "%s/%s", r->plain.path,
				r->entries[i].session);
	}
	if (status == CKT_EXIT_DONE && r->plain.fd >= 0)
		status = run_all(r, decrypt_thread);
	return status == CKT_EXIT_DONE ? read_members(r) : status;
}

static int print(const struct restoration *r)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < r->count; i++)
		json_array_append_new(list, json_string(r->restorers[i].session));
	if (r->args->json)
		return ckt_ctl_json_print(json_pack("{s:s, s:o}", "job", r->job, "sessions", list));
	json_decref(list);
	printf("job %s: %u session%s restored from %s\n", r->job, r->count,
		r->count == 1 ? "" : "s", r->path);
	return ckt_ctl_flush();
}

static int restore_job(const struct ckt_ctl_args *args, bool held)
{
	struct restoration r = {.args = args, .held = held, .plain = {.fd = -1}};
	int status = ckt_ctl_path_copy(args->job, r.path);
	if (status == CKT_EXIT_DONE)
		status = prepare(&r);
	if (status == CKT_EXIT_DONE)
		status = restore_all(&r);
	for (unsigned i = 0; i < r.count && r.restorers; i++) {
		if (status == CKT_EXIT_DONE && !held)
			ckt_ctl_tell_client(&r.restorers[i].args, &r.restorers[i].server,
				r.restorers[i].session);
		ckt_ctl_passing_close(r.restorers[i].passing);
		ckt_ctl_disconnect(&r.restorers[i].server);
	}
	ckt_ctl_members_free(&r.members);
	ckt_ctl_plain_remove(&r.plain);
	if (status == CKT_EXIT_DONE && !held)
		status = print(&r);
	free(r.restorers);
	free(r.entries);
	return status;
}

int ckt_ctl_job_restore(const struct ckt_ctl_args *args)
{
	if (args->word_count || args->server_side || args->with_client ||
		(args->fork && args->again)) {
		fprintf(stderr,
			"cricketctl: restore --job DIR can be combined with --server, "
			"--place, --gpu, --client-address, --image-key, and --fork or --again only\n");
		return CKT_EXIT_USAGE;
	}
	return restore_job(args, false);
}

int ckt_ctl_job_restore_held(const struct ckt_ctl_args *args)
{
	return restore_job(args, true);
}
