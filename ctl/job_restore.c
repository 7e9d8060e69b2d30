/*
 * cricketctl restore --job DIR: all sessions of a job, at one or several servers, all at one time, all or none.
 *
 * They are restored beside each other, because what they make anew may wait for the others.  A session goes to the server that has the number
 * its own one had, the servers counted round, and gets the GPU that it had, unless --gpu says otherwise.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

enum { ANSWER_MS = 30000 };

struct restorer {
	const struct ckt_ctl_job_entry *entry;
	struct ckt_ctl_args args;	/* with --server of its own */
	char path[CKT_CTL_PATH_SIZE + 16];
	int gpu;
	pthread_t thread;
	bool begun;
	struct ckt_ctl_server server;
	char session[CKT_SESSION_ID_SIZE + 1];
	int status;
};

struct restoration {
	const struct ckt_ctl_args *args;
	char path[CKT_CTL_PATH_SIZE], job[CKT_JOB_NAME_MAX + 1];
	struct ckt_ctl_job_entry *entries;
	struct restorer *restorers;
	unsigned count;
};

static void *restore_thread(void *opaque)
{
	struct restorer *one = opaque;
	one->status = ckt_ctl_connect_near(&one->args, &one->server);
	if (one->status == CKT_EXIT_DONE)
		one->status = ckt_ctl_restore_image(&one->args, &one->server, one->path, one->gpu, NULL, one->session);
	return NULL;
}

static void kill_one(struct restorer *one)
{
	ckt_control_session_args call = {.session = one->session};
	ckt_control_result result = {0};
	if (ckt_ctl_call(&one->server, CKT_CONTROL_KILL, (xdrproc_t)xdr_ckt_control_session_args, &call, (xdrproc_t)xdr_ckt_control_result, &result,
			 ANSWER_MS, -1) == CKT_EXIT_DONE)
		ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
}

/* All or none: where one could not be restored, the others end, and the images stay. */
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
	for (unsigned i = 0; i < r->count; i++)
		if (r->restorers[i].status == CKT_EXIT_DONE)
			kill_one(&r->restorers[i]);
	fprintf(stderr, "cricketctl: job %s: %u of %u sessions could not be restored, so none is; the images in %s are as they were\n", r->job, failed,
		r->count, r->path);
	return status;
}

static int restore_all(struct restoration *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		struct restorer *one = &r->restorers[i];
		int error = pthread_create(&one->thread, NULL, restore_thread, one);
		one->begun = !error;
		if (error)
			one->status = ckt_ctl_refuse("restore", strerror(error));
	}
	for (unsigned i = 0; i < r->count; i++)
		if (r->restorers[i].begun)
			pthread_join(r->restorers[i].thread, NULL);
	return judge(r);
}

/* The GPUs of --gpu 1,0: the first session's, the second's, and from the beginning again. */
static int parse_gpus(const char *text, int ret_gpus[CKT_DEVICES_MAX], unsigned *ret_count)
{
	char one[16];
	*ret_count = 0;
	while (text && *text) {
		size_t length = strcspn(text, ",");
		snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one - 1), text);
		int status = *ret_count < CKT_DEVICES_MAX ? ckt_ctl_parse_gpu(one, &ret_gpus[*ret_count]) : CKT_EXIT_USAGE;
		if (status != CKT_EXIT_DONE)
			return status;
		(*ret_count)++;
		text += length + (text[length] == ',');
	}
	return CKT_EXIT_DONE;
}

static int prepare(struct restoration *r)
{
	int gpus[CKT_DEVICES_MAX];
	unsigned gpu_count, servers = r->args->server_count;
	int status = parse_gpus(r->args->gpu, gpus, &gpu_count);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_job_manifest_read(r->path, r->job, &r->entries, &r->count);
	if (status == CKT_EXIT_DONE && !(r->restorers = calloc(r->count, sizeof *r->restorers)))
		status = ckt_ctl_refuse("restore", "out of memory");
	for (unsigned i = 0; i < r->count && status == CKT_EXIT_DONE; i++) {
		struct restorer *one = &r->restorers[i];
		*one = (struct restorer){.entry = &r->entries[i], .args = *r->args, .server = {.fd = -1}};
		if (servers)
			one->args.server = r->args->servers[r->entries[i].server % servers];
		one->gpu = gpu_count ? gpus[i % gpu_count] : r->entries[i].gpu;
		snprintf(one->path, sizeof one->path, "%s/%s", r->path, r->entries[i].session);
	}
	return status;
}

static int print(const struct restoration *r)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < r->count; i++)
		json_array_append_new(list, json_string(r->restorers[i].session));
	if (r->args->json)
		return ckt_ctl_json_print(json_pack("{s:s, s:o}", "job", r->job, "sessions", list));
	json_decref(list);
	printf("job %s: %u session%s restored from %s\n", r->job, r->count, r->count == 1 ? "" : "s", r->path);
	return ckt_ctl_flush();
}

int ckt_ctl_job_restore(const struct ckt_ctl_args *args)
{
	struct restoration r = {.args = args};
	if (args->word_count || args->server_side || args->with_client) {
		fprintf(stderr, "cricketctl: restore --job DIR goes with --server, --gpu and --client-address alone\n");
		return CKT_EXIT_USAGE;
	}
	int status = ckt_ctl_path_copy(args->job, r.path);
	if (status == CKT_EXIT_DONE)
		status = prepare(&r);
	if (status == CKT_EXIT_DONE)
		status = restore_all(&r);
	for (unsigned i = 0; i < r.count && r.restorers; i++) {
		if (status == CKT_EXIT_DONE)
			ckt_ctl_tell_client(&r.restorers[i].args, &r.restorers[i].server, r.restorers[i].session);
		ckt_ctl_disconnect(&r.restorers[i].server);
	}
	if (status == CKT_EXIT_DONE)
		status = print(&r);
	free(r.restorers);
	free(r.entries);
	return status;
}
