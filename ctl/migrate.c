/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl migrate SESSION --to ADDRESS [--gpu N], or --gpu N alone for another GPU of the same
 * server.
 *
 *	whole image, session runs on -> increments, until they stop shrinking -> frozen: the last increment -> the source ends and tells the
 *	client where to go
 *
 * The target takes each round as it comes: its worker is started, has its modules and memory, and
 * lacks what changed since.  So the program stands still for the last increment alone.
 *
 * The two servers never speak to each other: images pass through a directory of ours, whose files
 * we open for servers of this host (checkpoint/format/broker.h) and others get over the network,
 * and so neither needs the other's token.  Until the source is told to end, any failure lets the
 * session run on there, for the server lets go what it froze for a connection that is gone; the
 * copy at the target is ended, or ends unclaimed.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "checkpoint/format/store.h"
#include "ctl/brokers.h"
#include "ctl/checkpoint.h"
#include "ctl/cleanup.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/restore.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "ctl/transfer.h"
#include "ctl/vouch.h"
#include "rpc/control.h"
#include "rpc/session.h"

enum { ROUNDS_MAX = 8, ANSWER_MS = 30000, ENOUGH_PERCENT = 1 };

struct round {
	int fd;
	char name[16];
	char stage[CKT_CONTROL_NAME_MAX +
		1]; /* at the target; empty: the target gets the descriptor */
	unsigned char image[CKT_CONTROL_IMAGE_ID];
};

struct migration {
	const struct ckt_ctl_args *args;
	struct ckt_ctl_args target_args;
	struct ckt_ctl_server source, target;
	unsigned deadline_ms;
	int gpu;
	char directory[256];
	int lock_fd;
	struct round rounds[ROUNDS_MAX + 2];
	unsigned count;
	char session[CKT_SESSION_ID_SIZE + 1], copy[CKT_SESSION_ID_SIZE + 1];
	uint64_t memory_bytes, changed_bytes, sent_bytes;
	double stopped_ms;
	struct ckt_ctl_progress *progress;
};

/* The first place with room for the whole session; memory before disks. */
static int make_directory(struct migration *m, uint64_t bytes)
{
	const char *places[] = {getenv("TMPDIR"), "/dev/shm", "/tmp"};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		struct statvfs fs;
		if (!places[i] || places[i][0] != '/' || statvfs(places[i], &fs) ||
			fs.f_bavail * (uint64_t)fs.f_frsize < bytes + bytes / 4 ||
			snprintf(m->directory, sizeof m->directory, "%s/cricket-migrate-XXXXXX",
				places[i]) >= (int)sizeof m->directory)
			continue;
		ckt_ctl_stale_remove(places[i], "cricket-migrate-");
		if (ckt_ctl_directory_make(m->directory, &m->lock_fd) == 0)
			return CKT_EXIT_DONE;
	}
	m->directory[0] = 0;
	return ckt_ctl_refuse("migrate",
		"found no room for the session's memory: set TMPDIR to a directory "
		"with enough space");
}

static int session_memory(struct ckt_ctl_server *server, char *session, uint64_t *ret_bytes)
{
	ckt_control_session_args call = {.session = session};
	ckt_control_stats_res res = {0};
	int status =
		ckt_ctl_call(server, CKT_CONTROL_STATS, (xdrproc_t)xdr_ckt_control_session_args,
			&call, (xdrproc_t)xdr_ckt_control_stats_res, &res, ANSWER_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE) {
		*ret_bytes = res.session.memory_bytes;
		snprintf(session, CKT_SESSION_ID_SIZE + 1, "%s", res.session.session);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_stats_res, (char *)&res);
	return status;
}

static int round_open(struct migration *m, struct round *round)
{
	char path[300];
	snprintf(round->name, sizeof round->name, "%02u", m->count);
	snprintf(path, sizeof path, "%s/%s", m->directory, round->name);
	round->fd = mkdir(path, 0700) ? -1
				      : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return round->fd < 0 ? ckt_ctl_refuse(path, strerror(errno)) : CKT_EXIT_DONE;
}

/* From the source to our directory, and on to a target that cannot get descriptors. */
static int round_save(struct migration *m, bool hold)
{
	struct round *round = &m->rounds[m->count];
	char stage[CKT_CONTROL_NAME_MAX + 1] = "";
	ckt_control_save_res res = {0};
	int status = round_open(m, round);
	if (status != CKT_EXIT_DONE)
		return status;
	m->count++;
	if (!m->source.is_unix)
		status = ckt_ctl_stage_make(&m->source, stage);
	if (status == CKT_EXIT_DONE && !m->target.is_unix)
		status = ckt_ctl_stage_make(&m->target, round->stage);
	ckt_control_save_args call = {.session = m->session,
		.stage = stage,
		.deadline_ms = m->deadline_ms,
		.incremental = m->count > 1,
		.hold = hold,
		.keep_hashes = !hold};
	if (m->count > 1)
		memcpy(call.base, m->rounds[m->count - 2].image, sizeof call.base);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_save(&m->source, &call, m->source.is_unix ? round->fd : -1,
			m->count > 1 ? m->rounds[m->count - 2].fd : -1, &res);
	if (status == CKT_EXIT_DONE && *stage)
		status = ckt_ctl_fetch(m->args, &m->source, stage, round->fd, false, m->progress);
	/* The last stage is removed with the connection, while nobody waits for that. */
	if (status == CKT_EXIT_DONE && *stage && !hold)
		status = ckt_ctl_stage_remove(&m->source, stage);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_vouch(m->args, &m->source, &res, round->fd);
	if (status == CKT_EXIT_DONE && *round->stage)
		status = ckt_ctl_send(
			&m->target_args, &m->target, round->stage, round->fd, m->progress);
	memcpy(round->image, res.image, sizeof round->image);
	m->memory_bytes = res.memory_bytes;
	m->changed_bytes = res.changed_bytes;
	m->sent_bytes += res.bytes;
	xdr_free((xdrproc_t)xdr_ckt_control_save_res, (char *)&res);
	ckt_fault(hold ? CKT_FAULT_CTL_MIGRATE_HELD : CKT_FAULT_CTL_MIGRATE_ROUND);
	return status;
}

static int pass_rounds(struct migration *m, bool last);

static int copy_round(struct migration *m)
{
	int status = round_save(m, false);
	if (status == CKT_EXIT_DONE)
		status = pass_rounds(m, false);
	ckt_fault(CKT_FAULT_CTL_MIGRATE_AHEAD);
	return status;
}

static int copy_rounds(struct migration *m)
{
	int status = copy_round(m);
	uint64_t before = m->memory_bytes;
	for (unsigned i = 1; status == CKT_EXIT_DONE && i < ROUNDS_MAX; i++) {
		status = copy_round(m);
		if (m->changed_bytes >= before ||
			m->changed_bytes <= m->memory_bytes / 100 * ENOUGH_PERCENT)
			break;
		before = m->changed_bytes;
	}
	return status;
}

/* The last round and those it builds on, newest first, without rounds that hold nothing useful. */
static unsigned choose_rounds(struct migration *m, struct round *ret_rounds[ROUNDS_MAX + 2])
{
	ckt_image image = {0};
	char message[512];
	unsigned count = 0;
	ret_rounds[count++] = &m->rounds[m->count - 1];
	bool known =
		ckt_image_read(m->rounds[m->count - 1].fd, &image, message, sizeof message) == 0;
	for (unsigned i = m->count - 1; i > 0; i--) {
		struct round *round = &m->rounds[i - 1];
		bool needed = !known;
		for (u_int k = 0; k < image.ancestors.ancestors_len; k++)
			needed |= memcmp(image.ancestors.ancestors_val[k].id, round->image,
					  sizeof round->image) == 0;
		if (needed)
			ret_rounds[count++] = round;
	}
	if (known)
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return count;
}

/* The target takes the last round and those it builds on. */
static int pass_rounds(struct migration *m, bool last)
{
	ckt_control_stage_args stages[ROUNDS_MAX + 2];
	struct round *rounds[ROUNDS_MAX + 2];
	struct ckt_broker *broker = NULL;
	int directories[ROUNDS_MAX + 2];
	unsigned count = choose_rounds(m, rounds);
	ckt_control_restore_res res = {0};
	int status = CKT_EXIT_DONE;
	for (unsigned i = 0; i < count; i++) {
		stages[i].stage = rounds[i]->stage;
		directories[i] = rounds[i]->fd;
	}
	struct ckt_ctl_voucher voucher;
	status = ckt_ctl_voucher_read(
		m->args, m->directory, rounds[0]->fd, m->session, false, &voucher);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_voucher_show(&m->target_args, &m->target, &voucher);
	if (status == CKT_EXIT_DONE && m->target.is_unix)
		status = ckt_ctl_chain_pass(&m->target, directories, count, &broker);
	ckt_control_preload_args call = {.copy = m->copy,
		.gpu = m->gpu,
		.last = last,
		.stages = {m->target.is_unix ? 0 : count, stages}};
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_call(&m->target, CKT_CONTROL_PRELOAD,
			(xdrproc_t)xdr_ckt_control_preload_args, &call,
			(xdrproc_t)xdr_ckt_control_restore_res, &res, -1, -1);
	ckt_broker_stop(broker);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE)
		snprintf(m->copy, sizeof m->copy, "%s", res.session);
	xdr_free((xdrproc_t)xdr_ckt_control_restore_res, (char *)&res);
	return status;
}

static void kill_copy(struct migration *m)
{
	ckt_control_session_args call = {.session = m->copy};
	ckt_control_result result = {0};
	ckt_ctl_call(&m->target, CKT_CONTROL_KILL, (xdrproc_t)xdr_ckt_control_session_args, &call,
		(xdrproc_t)xdr_ckt_control_result, &result, ANSWER_MS, -1);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
}

static double now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The session's last moments at the source. */
static int switch_over(struct migration *m)
{
	const char *address = m->args->client_address ? m->args->client_address
		: m->args->to                         ? m->args->to
						      : "";
	double begun_ms = now_ms();
	int status = round_save(m, true);
	if (status == CKT_EXIT_DONE)
		status = pass_rounds(m, true);
	ckt_fault(CKT_FAULT_CTL_MIGRATE_RESTORED);
	if (status != CKT_EXIT_DONE) {
		/* Where it was frozen already; the end of our connection does the same. */
		ckt_ctl_disconnect(&m->source);
		return status;
	}
	status = ckt_ctl_release(&m->source, m->session, true, false, address);
	ckt_fault(CKT_FAULT_CTL_MIGRATE_RELEASED);
	m->stopped_ms = now_ms() - begun_ms;
	if (status == CKT_EXIT_NO_SERVER)
		fprintf(stderr,
			"cricketctl: cannot tell whether session %s ended at its old "
			"server; its copy at %s waits for the client\n",
			m->session, m->target.address);
	else if (status != CKT_EXIT_DONE)
		kill_copy(m);
	return status;
}

static int print(const struct migration *m)
{
	char size[32];
	if (m->args->json)
		return ckt_ctl_json_print(json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:f}",
			"session", m->session, "to", m->target.address, "rounds", (int)m->count,
			"bytes", (json_int_t)m->sent_bytes, "memory_bytes",
			(json_int_t)m->memory_bytes, "changed_bytes", (json_int_t)m->changed_bytes,
			"frozen_ms", (json_int_t)m->stopped_ms, "stopped_ms", m->stopped_ms));
	printf("session %s moved to %s in %u rounds, %s, stopped for %.1f ms\n", m->session,
		m->target.address, m->count, ckt_ctl_size_text(m->sent_bytes, size, sizeof size),
		m->stopped_ms);
	return ckt_ctl_flush();
}

static void clean_up(struct migration *m)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->rounds[i].fd >= 0)
			close(m->rounds[i].fd);
	ckt_ctl_disconnect(&m->source);
	ckt_ctl_disconnect(&m->target);
	if (*m->directory)
		ckt_ctl_tree_remove(AT_FDCWD, m->directory, 0);
	if (m->lock_fd >= 0)
		close(m->lock_fd);
	ckt_ctl_cleanup_drop(m->directory);
}

static int connect_both(struct migration *m)
{
	struct ckt_address address;
	char message[1200];
	if (m->args->to &&
		(ckt_address_parse(m->args->to, &address, message, sizeof message) ||
			address.type == CKT_ADDRESS_FILE)) {
		fprintf(stderr, "cricketctl: --to: '%s' is not valid: %s\n", m->args->to,
			"write host, host:port or unix:/path");
		return CKT_EXIT_USAGE;
	}
	int status = ckt_ctl_connect_near(m->args, &m->source);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_check_session(m->session);
	m->target_args = *m->args;
	if (m->args->to)
		m->target_args.server = m->args->to;
	return status == CKT_EXIT_DONE ? ckt_ctl_connect_near(&m->target_args, &m->target) : status;
}

int ckt_ctl_migrate(const struct ckt_ctl_args *args)
{
	static struct migration m;
	uint64_t bytes = 0;
	if (args->job)
		return ckt_ctl_job_migrate(args);
	if (!args->word_count) {
		fprintf(stderr, "cricketctl: migrate: give SESSION, or --job NAME\n");
		return CKT_EXIT_USAGE;
	}
	m = (struct migration){
		.args = args, .source = {.fd = -1}, .target = {.fd = -1}, .lock_fd = -1};
	snprintf(m.session, sizeof m.session, "%s", args->words[0]);
	int status = ckt_ctl_parse_deadline(args->deadline, &m.deadline_ms);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_parse_gpu(args->gpu, &m.gpu);
	if (status == CKT_EXIT_DONE && !args->to && !args->gpu) {
		fprintf(stderr,
			"cricketctl: migrate: give --to ADDRESS, or --gpu N for "
			"another GPU of the same server\n");
		return CKT_EXIT_USAGE;
	}
	if (status == CKT_EXIT_DONE)
		status = connect_both(&m);
	if (status == CKT_EXIT_DONE)
		status = session_memory(&m.source, m.session, &bytes);
	if (status == CKT_EXIT_DONE)
		status = make_directory(&m, bytes);
	if (status == CKT_EXIT_DONE) {
		m.progress = ckt_ctl_progress_begin(args, &m.source, m.session);
		status = copy_rounds(&m);
		if (status == CKT_EXIT_DONE)
			status = switch_over(&m);
		ckt_ctl_progress_end(m.progress);
	}
	clean_up(&m);
	return status == CKT_EXIT_DONE ? print(&m) : status;
}
