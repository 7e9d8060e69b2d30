/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves and saves units; see drain.h.
 *
 * Each is moved by `cricketctl migrate` in a process of its own: it has one migration in it, and
 * cleans up when a signal ends it.  Such a process ends with us, and its session then goes on where
 * it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/drain/drain.h"
#include "ctl/place.h"
#include "ctl/print.h"
#include "rpc/net.h"

enum { WORDS_MAX = 16, POLL_MS = 1000 };

const char *ckt_ctl_drain_program = "/proc/self/exe";

/* ---- One process */

static bool is_running(const struct ckt_ctl_unit *unit)
{
	return unit->state == CKT_UNIT_MOVING || unit->state == CKT_UNIT_SAVING;
}

static void become(const char *const words[WORDS_MAX], int errors_fd, pid_t parent)
{
	int null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(errors_fd, 2) < 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126);
	execv(ckt_ctl_drain_program, (char *const *)words);
	_exit(127);
}

static void start(struct ckt_ctl_unit *unit, const char *const words[WORDS_MAX])
{
	int ends[2] = {-1, -1};
	pid_t self = getpid(), pid = pipe2(ends, O_CLOEXEC) ? -1 : fork();
	if (pid == 0)
		become(words, ends[1], self);
	if (ends[1] >= 0)
		close(ends[1]);
	unit->pid = pid;
	unit->errors_fd = ends[0];
	unit->reason_size = 0;
	unit->reason[0] = 0;
	if (pid > 0)
		return;
	snprintf(unit->reason, sizeof unit->reason, "cannot start a process: %s", strerror(errno));
	if (ends[0] >= 0)
		close(ends[0]);
	unit->errors_fd = -1;
	unit->state = CKT_UNIT_STAYS;
}

static unsigned begin_words(
	const struct ckt_ctl_draining *draining, const char *name, const char *words[WORDS_MAX])
{
	unsigned n = 0;
	words[n++] = "cricketctl";
	if (draining->args->server) {
		words[n++] = "--server";
		words[n++] = draining->args->server;
	}
	words[n++] = name;
	return n;
}

static void start_move(struct ckt_ctl_draining *draining, struct ckt_ctl_unit *unit)
{
	const char *words[WORDS_MAX] = {0};
	unsigned n = begin_words(draining, "migrate", words);
	if (*unit->job)
		words[n++] = "--job";
	words[n++] = *unit->job ? unit->job : unit->session;
	words[n++] = "--to";
	words[n++] = unit->target;
	if (draining->args->client_address) {
		words[n++] = "--client-address";
		words[n++] = draining->args->client_address;
	}
	unit->state = CKT_UNIT_MOVING;
	start(unit, words);
}

static void start_save(struct ckt_ctl_draining *draining, struct ckt_ctl_unit *unit)
{
	const char *words[WORDS_MAX] = {0};
	char path[4200];
	unsigned n = begin_words(draining, "checkpoint", words);
	const char *name = *unit->job ? unit->job : unit->session;
	snprintf(path, sizeof path, "%.4000s/%s", draining->save, name);
	if (*unit->job)
		words[n++] = "--job";
	words[n++] = name;
	words[n++] = path;
	words[n++] = "--stop";
	unit->state = CKT_UNIT_SAVING;
	start(unit, words);
}

/* ---- What happens to a unit */

/* The next server that would have it; NULL: none. */
static const char *choose_target(struct ckt_ctl_draining *draining, struct ckt_ctl_unit *unit)
{
	const char *left[CKT_CTL_DRAIN_TARGETS];
	unsigned count = 0;
	for (unsigned i = 0; i < draining->target_count; i++)
		if (!(unit->tried & 1u << i))
			left[count++] = draining->targets[i];
	const char *target = count ? ckt_ctl_place_least_loaded(draining->args, left, count) : NULL;
	for (unsigned i = 0; target && i < draining->target_count; i++)
		if (draining->targets[i] == target)
			unit->tried |= 1u << i;
	return target;
}

static void advance(struct ckt_ctl_draining *draining, struct ckt_ctl_unit *unit)
{
	const char *target = unit->state != CKT_UNIT_SAVING ? choose_target(draining, unit) : NULL;
	if (target) {
		unit->target = target;
		start_move(draining, unit);
	} else if (draining->save && unit->state != CKT_UNIT_SAVING) {
		start_save(draining, unit);
	} else {
		if (!*unit->reason)
			snprintf(unit->reason, sizeof unit->reason, "%s",
				draining->target_count
					? "none of the servers of --to can take it now"
					: "no other server is named: give --to, or --save");
		unit->state = CKT_UNIT_STAYS;
	}
}

/* What the process says first is the reason, if it fails. */
static void read_errors(struct ckt_ctl_unit *unit)
{
	char text[1024];
	ssize_t n = read(unit->errors_fd, text, sizeof text);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close(unit->errors_fd);
		unit->errors_fd = -1;
		return;
	}
	for (ssize_t i = 0; i < n && unit->reason_size < sizeof unit->reason - 1; i++)
		unit->reason[unit->reason_size++] = text[i];
	unit->reason[unit->reason_size] = 0;
}

static void settle_reason(struct ckt_ctl_unit *unit, int status)
{
	static const char prefix[] = "cricketctl: ";
	char clean[sizeof unit->reason];
	unit->reason[strcspn(unit->reason, "\n")] = 0;
	const char *text = unit->reason;
	if (strncmp(text, prefix, sizeof prefix - 1) == 0)
		text += sizeof prefix - 1;
	ckt_ctl_clean(text, clean, sizeof clean);
	strcpy(unit->reason, clean);
	if (WIFSIGNALED(status))
		snprintf(unit->reason, sizeof unit->reason, "its cricketctl was ended by signal %d",
			WTERMSIG(status));
	else if (!*unit->reason)
		snprintf(unit->reason, sizeof unit->reason, "its cricketctl ended with status %d",
			WEXITSTATUS(status));
}

static void settle(struct ckt_ctl_draining *draining, struct ckt_ctl_unit *unit, bool in_time)
{
	int status = 0;
	while (waitpid(unit->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CKT_EXIT_DONE) {
		unit->state = unit->state == CKT_UNIT_MOVING ? CKT_UNIT_MOVED : CKT_UNIT_SAVED;
		unit->reason[0] = 0;
		ckt_fault(CKT_FAULT_CTL_DRAIN_MOVED);
	} else if (in_time) {
		settle_reason(unit, status);
		/* It ended by itself meanwhile: the listing tells. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == CKT_EXIT_NO_SESSION)
			unit->state = CKT_UNIT_STAYS;
		else
			advance(draining, unit);
	} else {
		snprintf(unit->reason, sizeof unit->reason, "%s", "the deadline came first");
		unit->state = CKT_UNIT_STAYS;
	}
}

/* ---- All of them */

static unsigned running(const struct ckt_ctl_draining *draining)
{
	unsigned count = 0;
	for (size_t i = 0; i < draining->unit_count; i++)
		count += is_running(&draining->units[i]);
	return count;
}

static void start_some(struct ckt_ctl_draining *draining)
{
	for (size_t i = 0; i < draining->unit_count && running(draining) < draining->jobs; i++)
		if (draining->units[i].state == CKT_UNIT_NEW)
			advance(draining, &draining->units[i]);
}

/* Reads what the processes say, and settles those that have ended. */
static void look(struct ckt_ctl_draining *draining, bool in_time, int timeout_ms)
{
	struct pollfd fds[CKT_CTL_DRAIN_JOBS_MAX];
	struct ckt_ctl_unit *units[CKT_CTL_DRAIN_JOBS_MAX];
	unsigned count = 0;
	for (size_t i = 0; i < draining->unit_count && count < CKT_CTL_DRAIN_JOBS_MAX; i++)
		if (is_running(&draining->units[i])) {
			units[count] = &draining->units[i];
			fds[count] = (struct pollfd){units[count]->errors_fd, POLLIN, 0};
			count++;
		}
	if (poll(fds, count, timeout_ms) <= 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		if (!fds[i].revents)
			continue;
		read_errors(units[i]);
		if (units[i]->errors_fd < 0)
			settle(draining, units[i], in_time);
	}
}

static void end_all(struct ckt_ctl_draining *draining)
{
	for (size_t i = 0; i < draining->unit_count; i++) {
		struct ckt_ctl_unit *unit = &draining->units[i];
		if (is_running(unit))
			kill(unit->pid, SIGTERM);
		if (unit->state != CKT_UNIT_NEW)
			continue;
		unit->state = CKT_UNIT_STAYS;
		snprintf(unit->reason, sizeof unit->reason, "%s", "the deadline came first");
	}
	while (running(draining))
		look(draining, false, -1);
}

bool ckt_ctl_drain_run(struct ckt_ctl_draining *draining)
{
	start_some(draining);
	while (running(draining)) {
		int64_t left = draining->deadline_ms < 0 ? POLL_MS
							 : draining->deadline_ms - ckt_net_now_ms();
		if (left <= 0) {
			end_all(draining);
			return false;
		}
		look(draining, true, left < POLL_MS ? (int)left : POLL_MS);
		start_some(draining);
	}
	return true;
}
