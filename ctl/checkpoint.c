/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl checkpoint SESSION DIR
 *
 * The image is written into a new directory beside DIR, which gets DIR's name once it is completely
 * on the disk: DIR is complete or missing. On the server's host the worker writes there itself;
 * otherwise the server keeps the image until it is fetched.  With --stop the session stays frozen
 * until its image has its name.
 */
#include "ctl/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "checkpoint/format/broker.h"
#include "ctl/chain.h"
#include "ctl/checkpoint_every.h"
#include "ctl/client/client.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/sealed_image.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "ctl/transfer.h"
#include "ctl/vouch.h"

/* Of --with-client. */
static struct ckt_ctl_client client = {.fd = -1};

enum { DEFAULT_DEADLINE_S = 60, DEADLINE_MAX_S = 86400, RELEASE_MS = 120000 };

int ckt_ctl_parse_deadline(const char *text, unsigned *ret_ms)
{
	char *end;
	if (!text) {
		*ret_ms = DEFAULT_DEADLINE_S * 1000;
		return CKT_EXIT_DONE;
	}
	unsigned long seconds = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
	if (!seconds || *end || seconds > DEADLINE_MAX_S) {
		fprintf(stderr,
			"cricketctl: --deadline: '%s' is not valid: write a number of seconds from 1 to %d\n",
			text, DEADLINE_MAX_S);
		return CKT_EXIT_USAGE;
	}
	*ret_ms = (unsigned)seconds * 1000;
	return CKT_EXIT_DONE;
}

int ckt_ctl_release(struct ckt_ctl_server *server, const char *session, bool end, bool parked,
	const char *moved_to)
{
	ckt_control_release_args call = {.session = (char *)session,
		.end = end,
		.parked = parked,
		.moved_to = (char *)moved_to};
	ckt_control_result result = {0};
	int status =
		ckt_ctl_call(server, CKT_CONTROL_RELEASE, (xdrproc_t)xdr_ckt_control_release_args,
			&call, (xdrproc_t)xdr_ckt_control_result, &result, RELEASE_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static int print(
	const struct ckt_ctl_args *args, const ckt_control_save_res *res, const char *place)
{
	char size[32];
	char process[48] = "";
	if (args->json) {
		json_t *json = json_pack("{s:o, s:o, s:I, s:b, s:I, s:I, s:I}", "session",
			ckt_ctl_json_text(res->session), "directory", ckt_ctl_json_text(place),
			"bytes", (json_int_t)res->bytes, "stopped", args->stop, "memory_bytes",
			(json_int_t)res->memory_bytes, "changed_bytes",
			(json_int_t)res->changed_bytes, "frozen_us", (json_int_t)res->stopped_us);
		if (args->with_client)
			json_object_set_new(json, "client_pid", json_integer(client.process.pid));
		return ckt_ctl_json_print(json);
	}
	if (args->with_client)
		snprintf(process, sizeof process, " and its client, process %d,",
			(int)client.process.pid);
	printf("session %s%s written to %s, %s%s\n", res->session, process, place,
		ckt_ctl_size_text(res->bytes, size, sizeof size),
		!args->stop                 ? ""
			: args->with_client ? "; both have ended"
					    : "; the session has ended");
	return ckt_ctl_flush();
}

static int send_base_piece(struct ckt_ctl_server *server, ckt_control_base_args *call)
{
	ckt_control_result result = {0};
	int status = ckt_ctl_call(server, CKT_CONTROL_BASE, (xdrproc_t)xdr_ckt_control_base_args,
		call, (xdrproc_t)xdr_ckt_control_result, &result, RELEASE_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static int send_base(struct ckt_ctl_server *server, const ckt_control_save_args *save, int base_fd)
{
	static char data[CKT_CONTROL_BASE_MAX];
	ckt_control_base_args call = {.session = save->session, .data = {.data_val = data}};
	int status = CKT_EXIT_DONE,
	    fd = openat(base_fd, "manifest", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = 0;
	memcpy(call.base, save->base, sizeof call.base);
	while (fd >= 0 && status == CKT_EXIT_DONE &&
		(n = pread(fd, data, sizeof data, (off_t)call.offset)) > 0) {
		call.data.data_len = (u_int)n;
		status = send_base_piece(server, &call);
		call.offset += (uint64_t)n;
	}
	if (fd < 0 || n < 0)
		status = ckt_ctl_refuse("manifest of the image to build on", strerror(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

static int save_once(struct ckt_ctl_server *server, ckt_control_save_args *call, int directory,
	ckt_control_save_res *ret_res)
{
	struct ckt_broker *broker = NULL;
	int fd = -1,
	    result = directory < 0 ? 0
				   : ckt_broker_start(&directory, 1, CKT_BROKER_MAKE, &broker, &fd);
	if (result)
		return ckt_ctl_refuse("checkpoint", strerror(-result));
	/* The disk decides how long the writing takes, so only the draining has a deadline. */
	int status = ckt_ctl_call(server, CKT_CONTROL_SAVE, (xdrproc_t)xdr_ckt_control_save_args,
		call, (xdrproc_t)xdr_ckt_control_save_res, ret_res, -1, fd);
	if (fd >= 0)
		close(fd);
	ckt_broker_stop(broker);
	return status;
}

int ckt_ctl_save(struct ckt_ctl_server *server, ckt_control_save_args *call, int directory,
	int base_fd, ckt_control_save_res *ret_res)
{
	int status = save_once(server, call, directory, ret_res);
	if (status == CKT_EXIT_DONE && ret_res->result.status != CKT_CONTROL_OK && ret_res->stale &&
		base_fd >= 0) {
		xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)ret_res);
		*ret_res = (ckt_control_save_res){0};
		status = send_base(server, call, base_fd);
		if (status == CKT_EXIT_DONE)
			status = save_once(server, call, directory, ret_res);
	}
	return status == CKT_EXIT_DONE ? ckt_ctl_result(&ret_res->result) : status;
}

static ckt_control_save_args save_args(
	const struct ckt_ctl_args *args, char *stage, unsigned deadline_ms)
{
	return (ckt_control_save_args){.session = (char *)args->words[0],
		.stage = stage,
		.deadline_ms = deadline_ms,
		.compress = args->compress,
		.hold = args->stop || args->with_client,
		.keep_hashes = args->every || args->incremental};
}

static int finish(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const ckt_control_save_res *res, const char *place)
{
	int status = CKT_EXIT_DONE;
	if (args->stop || args->with_client)
		status = ckt_ctl_release(server, res->session, args->stop, args->stop, "");
	return status == CKT_EXIT_DONE ? print(args, res, place) : status;
}

/* What belongs to an image beside what its worker wrote, into `directory`. */
static int finish_files(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_base *base, const char *path, int directory, int final_directory,
	const ckt_control_save_res *res)
{
	int status = ckt_ctl_vouch(args, server, res, directory);
	if (status == CKT_EXIT_DONE && args->encrypt)
		status = ckt_ctl_image_seal(args, directory, final_directory, NULL);
	if (status != CKT_EXIT_DONE || !base)
		return status;
	int result = ckt_ctl_base_write(final_directory, path, base->path);
	return result ? ckt_ctl_refuse(path, strerror(-result)) : CKT_EXIT_DONE;
}

/* The image gets its name, or nothing of it remains. Free ret_res in every case. */
static int save_image(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	unsigned deadline_ms, const struct ckt_ctl_base *base, const char *path,
	ckt_control_save_res *ret_res)
{
	char stage[CKT_CONTROL_NAME_MAX + 1] = "";
	struct ckt_ctl_partial partial = {.fd = -1};
	struct ckt_ctl_plain plain = {.fd = -1};
	int base_fd = base ? open(base->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int status = ckt_ctl_partial_make(path, &partial);
	if (status == CKT_EXIT_DONE && args->encrypt)
		status = ckt_ctl_plain_make(&plain);
	/* Where the worker writes. */
	const int directory = args->encrypt ? plain.fd : partial.fd;
	if (status == CKT_EXIT_DONE && !server->is_unix)
		status = ckt_ctl_stage_make(server, stage);
	ckt_control_save_args call = save_args(args, stage, deadline_ms);
	if (base) {
		call.incremental = true;
		memcpy(call.base, base->id, sizeof call.base);
	}
	struct ckt_ctl_progress *progress = status == CKT_EXIT_DONE
		? ckt_ctl_progress_begin(args, server, args->words[0])
		: NULL;
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_save(
			server, &call, server->is_unix ? directory : -1, base_fd, ret_res);
	ckt_fault(CKT_FAULT_CTL_CHECKPOINT_SAVED);
	if (status == CKT_EXIT_DONE && *stage)
		status = ckt_ctl_fetch(args, server, stage, directory, true, progress);
	ckt_ctl_progress_end(progress);
	if (status == CKT_EXIT_DONE && *stage)
		status = ckt_ctl_stage_remove(server, stage);
	if (status == CKT_EXIT_DONE)
		status = finish_files(args, server, base, path, directory, partial.fd, ret_res);
	ckt_ctl_plain_remove(&plain);
	if (status == CKT_EXIT_DONE && args->with_client)
		status = ckt_ctl_client_save(args, &client, server, &partial);
	else if (status == CKT_EXIT_DONE)
		status = ckt_ctl_partial_keep(&partial);
	if (status != CKT_EXIT_DONE)
		ckt_ctl_partial_drop(&partial);
	if (base_fd >= 0)
		close(base_fd);
	return status;
}

static int save_here(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, unsigned deadline_ms)
{
	char path[CKT_CTL_PATH_SIZE];
	struct ckt_ctl_base base;
	ckt_control_save_res res = {0};
	int status = ckt_ctl_path_copy(args->words[1], path);
	if (status == CKT_EXIT_DONE && args->incremental) {
		status = ckt_ctl_path_copy(args->incremental, base.path);
		if (status == CKT_EXIT_DONE && !ckt_ctl_image_id(base.path, base.id))
			status = ckt_ctl_refuse(
				base.path, "is not an image that another can build on");
	}
	if (status == CKT_EXIT_DONE)
		status = save_image(
			args, server, deadline_ms, args->incremental ? &base : NULL, path, &res);
	if (status == CKT_EXIT_DONE)
		status = finish(args, server, &res, path);
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

int ckt_ctl_save_next(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_base *base, const char *path, char ret_id[CKT_CONTROL_IMAGE_ID])
{
	ckt_control_save_res res = {0};
	unsigned deadline_ms;
	int status = ckt_ctl_parse_deadline(args->deadline, &deadline_ms);
	if (status == CKT_EXIT_DONE)
		status = save_image(args, server, deadline_ms, base, path, &res);
	memcpy(ret_id, res.image, CKT_CONTROL_IMAGE_ID);
	if (status == CKT_EXIT_DONE)
		status = print(args, &res, path);
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

static int save_in_memory(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, unsigned deadline_ms)
{
	char place[CKT_CONTROL_NAME_MAX + 16];
	ckt_control_save_args call =
		save_args(args, args->word_count == 2 ? args->words[1] : (char *)"", deadline_ms);
	ckt_control_save_res res = {0};
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(args, server, args->words[0]);
	call.to_memory = true;
	int status = ckt_ctl_save(server, &call, -1, -1, &res);
	ckt_ctl_progress_end(progress);
	if (status == CKT_EXIT_DONE) {
		snprintf(place, sizeof place, "memory:%.64s",
			args->word_count == 2 ? args->words[1] : res.session);
		status = finish(args, server, &res, place);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

static int save_there(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, unsigned deadline_ms)
{
	char stage[CKT_CONTROL_NAME_MAX + 1] = "";
	ckt_control_save_res res = {0};
	int status = ckt_ctl_stage_make(server, stage);
	ckt_control_save_args call = save_args(args, stage, deadline_ms);
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(args, server, args->words[0]);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_save(server, &call, -1, -1, &res);
	ckt_ctl_progress_end(progress);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_stage_keep(server, stage, args->server_side);
	if (status == CKT_EXIT_DONE)
		status = finish(args, server, &res, args->server_side);
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	return status;
}

static int refuse_options(const char *message)
{
	fprintf(stderr, "cricketctl: %s\n", message);
	return CKT_EXIT_USAGE;
}

/* Whether the options go together, and the image can be put in its place. */
static int check_options(const struct ckt_ctl_args *args)
{
	bool chain = args->every || args->incremental;
	if (args->to_memory && (args->server_side || chain))
		return refuse_options("--to-memory makes one complete image in memory: leave out "
				      "--server-side, --every and --incremental");
	int status = !args->to_memory   ? ckt_ctl_check_place(args, args->word_count == 2)
		: args->word_count == 2 ? ckt_ctl_check_kept(args->words[1])
					: CKT_EXIT_DONE;
	if (status != CKT_EXIT_DONE)
		return status;
	if (chain && args->server_side)
		return refuse_options("--every and --incremental need a directory here: leave out "
				      "--server-side");
	if (args->every && (args->incremental || args->stop))
		return refuse_options("--every makes incremental images by itself and goes on: "
				      "leave out --incremental and --stop");
	if (args->keep && !args->every)
		return refuse_options("--keep says how many images --every keeps: add --every");
	if (args->with_client && (args->server_side || args->every || args->to_memory))
		return refuse_options("--with-client needs a directory here and excludes --every");
	return CKT_EXIT_DONE;
}

int ckt_ctl_checkpoint_check_keys(const struct ckt_ctl_args *args)
{
	if (args->encrypt &&
		(!args->image_key_count || args->every || args->incremental || args->with_client))
		return refuse_options("--encrypt makes complete images: add "
				      "--image-key, and leave out --every, --incremental and "
				      "--with-client");
	struct ckt_image_keys keys;
	int status = args->image_key_count && (args->server_side || args->to_memory)
		? refuse_options("--image-key needs a directory here: the server's own key vouches "
				 "for what stays there")
		: ckt_ctl_keys_read(args, &keys);
	explicit_bzero(&keys, sizeof keys);
	return status;
}

static int check_and_save(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, unsigned deadline_ms)
{
	int status = ckt_ctl_check_session(args->words[0]);
	if (status == CKT_EXIT_DONE && args->with_client)
		status = ckt_ctl_client_find(server, args->words[0], &client);
	if (status != CKT_EXIT_DONE)
		return status;
	return args->to_memory      ? save_in_memory(args, server, deadline_ms)
		: args->server_side ? save_there(args, server, deadline_ms)
				    : save_here(args, server, deadline_ms);
}

int ckt_ctl_checkpoint(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	unsigned deadline_ms;
	if (args->job)
		return ckt_ctl_job_checkpoint(args);
	int status = ckt_ctl_parse_deadline(args->deadline, &deadline_ms);
	if (status == CKT_EXIT_DONE)
		status = check_options(args);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_checkpoint_check_keys(args);
	if (status == CKT_EXIT_DONE && args->every)
		return ckt_ctl_every(args);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_connect_near(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = check_and_save(args, &server, deadline_ms);
	ckt_ctl_disconnect(&server);
	return status;
}
