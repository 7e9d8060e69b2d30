/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a long step is, with its rate and the time left: a bar on stderr where that is a terminal,
 * and else a line each five seconds, the first after five.  So what is over sooner leaves no line in a
 * log.
 */
#pragma once

#include <stdint.h>

struct ckt_ctl_args;
struct ckt_ctl_progress;
struct ckt_ctl_server;

/*
 * NULL where there is no memory, and the others take that.  The server is asked what the
 * session's worker does; an empty session: what is being restored; NULL: there is no server.
 */
struct ckt_ctl_progress *ckt_ctl_progress_begin(
	const struct ckt_ctl_args *args, const struct ckt_ctl_server *server, const char *session);
/*
 * From here on it shows the count of ckt_ctl_progress_add instead of asking the worker, until the
 * phase is empty again.
 */
void ckt_ctl_progress_phase(
	struct ckt_ctl_progress *progress, const char *phase, uint64_t total_bytes);
void ckt_ctl_progress_add(struct ckt_ctl_progress *progress, uint64_t bytes);
/* For tests: the time from one line of a log to the next. */
extern int ckt_ctl_progress_line_ms;
void ckt_ctl_progress_end(struct ckt_ctl_progress *progress);
