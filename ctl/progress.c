/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a long step is: a bar on stderr where that is a terminal, and else a line now and then, but
 * none for what is over soon. What a worker does is asked over a connection of its own, what this
 * process moves is counted.
 *
 * Threading: a thread draws; counting is atomic.
 */
#include "ctl/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timed_wait.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum { PERIOD_MS = 200, ANSWER_MS = 2000, WIDTH = 30, LINE_MS = 5000 };

int ckt_ctl_progress_line_ms = LINE_MS;

struct ckt_ctl_progress {
	struct ckt_ctl_args args;
	char address[CKT_ADDRESS_TEXT_MAX], session[CKT_SESSION_ID_SIZE + 1];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool stop, drawn;
	bool terminal;
	int64_t next_line_ms;         /* where it is no terminal */
	char phase[CKT_NAME_MAX + 1]; /* empty: the worker is asked */
	int64_t since_ms;
	_Atomic uint64_t done, total;
	/* what was counted when the phase was last drawn; UINT64_MAX: never */
	uint64_t shown;
};

/* ", 40 s left"; empty where nobody can say. */
static const char *left_text(
	uint64_t done, uint64_t total, double seconds, char *buffer, size_t size)
{
	double left = done ? (double)(total - done) * seconds / (double)done : 0;
	*buffer = 0;
	/* Of the first moments no rate can be told. */
	if (!done || done >= total || seconds < 1)
		return buffer;
	if (left < 120)
		snprintf(buffer, size, ", %.0f s left", left);
	else
		snprintf(buffer, size, ", %.0f min left", left / 60);
	return buffer;
}

static void draw(struct ckt_ctl_progress *progress, const char *phase, uint64_t done,
	uint64_t total, int64_t since_ms)
{
	char bar[WIDTH + 1], size[32], all[32], clean[32], left[32];
	double seconds = (double)(ckt_net_now_ms() - since_ms) / 1000,
	       rate = seconds > 0 ? (double)done / seconds / 1e9 : 0;
	unsigned filled = total ? (unsigned)((done > total ? total : done) * WIDTH / total) : 0;
	ckt_ctl_clean(phase, clean, sizeof clean);
	ckt_ctl_size_text(done, size, sizeof size);
	left_text(done, total, seconds, left, sizeof left);
	if (!progress->terminal) {
		fprintf(stderr, "cricketctl: %s: %s of %s, %.1f GB/s%s\n", clean, size,
			ckt_ctl_size_text(total, all, sizeof all), rate, left);
		return;
	}
	memset(bar, '.', WIDTH);
	memset(bar, '#', filled);
	bar[WIDTH] = 0;
	fprintf(stderr, "\r\033[K%-8s [%s] %s, %.1f GB/s%s", clean, bar, size, rate, left);
	progress->drawn = true;
}

/* The phase is the worker's word; a new one starts the clock. */
static void ask(struct ckt_ctl_progress *progress, struct ckt_ctl_server *server, char *phase,
	int64_t *since_ms)
{
	ckt_control_session_args call = {.session = progress->session};
	ckt_control_progress_res res = {0};
	char message[1200];
	if (server->fd < 0) {
		struct ckt_ctl_args args = progress->args;
		args.server = progress->address;
		if (ckt_ctl_try_connect(&args, server, message, sizeof message) != CKT_EXIT_DONE)
			return;
	}
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_PROGRESS,
		    (xdrproc_t)xdr_ckt_control_session_args, &call,
		    (xdrproc_t)xdr_ckt_control_progress_res, &res, ckt_net_now_ms() + ANSWER_MS,
		    -1)) {
		ckt_ctl_disconnect(server);
		return;
	}
	if (res.result.status == CKT_CONTROL_OK && *res.phase) {
		if (strcmp(phase, res.phase) != 0) {
			snprintf(phase, CKT_NAME_MAX + 1, "%s", res.phase);
			*since_ms = ckt_net_now_ms();
		}
		draw(progress, phase, res.done_bytes, res.total_bytes, *since_ms);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&res);
}

/* Of what is counted here.  Precondition: locked. */
static void draw_counted(struct ckt_ctl_progress *progress)
{
	progress->shown = atomic_load(&progress->done);
	draw(progress, progress->phase, progress->shown, atomic_load(&progress->total),
		progress->since_ms);
}

static void *progress_thread(void *opaque)
{
	struct ckt_ctl_progress *progress = opaque;
	struct ckt_ctl_server server = {.fd = -1};
	char phase[CKT_NAME_MAX + 1] = "";
	int64_t since_ms = ckt_net_now_ms();
	pthread_mutex_lock(&progress->lock);
	while (!progress->stop) {
		ckt_cond_wait_until(&progress->cond, &progress->lock,
			ckt_now_ns() + PERIOD_MS * INT64_C(1000000));
		if (progress->stop)
			break;
		if (!progress->terminal && ckt_net_now_ms() < progress->next_line_ms)
			continue;
		progress->next_line_ms = ckt_net_now_ms() + ckt_ctl_progress_line_ms;
		if (*progress->phase) {
			draw_counted(progress);
		} else if (*progress->address) {
			pthread_mutex_unlock(&progress->lock);
			ask(progress, &server, phase, &since_ms);
			pthread_mutex_lock(&progress->lock);
		}
	}
	pthread_mutex_unlock(&progress->lock);
	ckt_ctl_disconnect(&server);
	return NULL;
}

struct ckt_ctl_progress *ckt_ctl_progress_begin(
	const struct ckt_ctl_args *args, const struct ckt_ctl_server *server, const char *session)
{
	struct ckt_ctl_progress *progress = calloc(1, sizeof *progress);
	if (!progress)
		return NULL;
	progress->terminal = isatty(STDERR_FILENO);
	progress->next_line_ms = ckt_net_now_ms() + ckt_ctl_progress_line_ms;
	progress->args = *args;
	if (server)
		snprintf(progress->address, sizeof progress->address, "%s", server->address);
	snprintf(progress->session, sizeof progress->session, "%s", session);
	pthread_mutex_init(&progress->lock, NULL);
	pthread_cond_init(&progress->cond, NULL);
	if (pthread_create(&progress->thread, NULL, progress_thread, progress)) {
		free(progress);
		return NULL;
	}
	return progress;
}

/* How a phase ends is seen, also of one that was shorter than a period. */
static void draw_last(struct ckt_ctl_progress *progress)
{
	if (progress->terminal && *progress->phase &&
		progress->shown != atomic_load(&progress->done))
		draw_counted(progress);
}

void ckt_ctl_progress_phase(
	struct ckt_ctl_progress *progress, const char *phase, uint64_t total_bytes)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	draw_last(progress);
	snprintf(progress->phase, sizeof progress->phase, "%s", phase);
	progress->since_ms = ckt_net_now_ms();
	progress->shown = UINT64_MAX;
	atomic_store(&progress->done, 0);
	atomic_store(&progress->total, total_bytes);
	pthread_mutex_unlock(&progress->lock);
}

void ckt_ctl_progress_add(struct ckt_ctl_progress *progress, uint64_t bytes)
{
	if (progress)
		atomic_fetch_add(&progress->done, bytes);
}

void ckt_ctl_progress_end(struct ckt_ctl_progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->stop = true;
	pthread_cond_signal(&progress->cond);
	pthread_mutex_unlock(&progress->lock);
	pthread_join(progress->thread, NULL);
	draw_last(progress);
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	pthread_mutex_destroy(&progress->lock);
	pthread_cond_destroy(&progress->cond);
	free(progress);
}
