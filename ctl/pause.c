/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl pause SESSION [--for 30m | --until 18:00], resume SESSION */
#include "ctl/pause.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/checkpoint.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

enum { DAYS_MAX = 366 };

/* "90", "90s", "30m", "2h", "1d"; seconds. */
static bool parse_duration(const char *text, int64_t *ret_seconds)
{
	static const char units[] = "smhd";
	static const int64_t factors[] = {1, 60, 3600, 86400};
	char *end;
	long value = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
	if (value <= 0 || value > DAYS_MAX * 86400L || (*end && (!strchr(units, *end) || end[1])))
		return false;
	*ret_seconds = value * (*end ? factors[strchr(units, *end) - units] : 1);
	return *ret_seconds <= DAYS_MAX * INT64_C(86400);
}

bool ckt_ctl_parse_duration(const char *text, int64_t *ret_seconds)
{
	return parse_duration(text, ret_seconds);
}

/* The next time that the clock here shows that. */
static bool parse_clock(const char *text, int64_t *ret_when)
{
	unsigned hour, minute;
	int used = 0;
	time_t now = time(NULL);
	struct tm tm;
	if (sscanf(text, "%2u:%2u%n", &hour, &minute, &used) != 2 || text[used] || hour > 23 ||
		minute > 59 || !localtime_r(&now, &tm))
		return false;
	tm.tm_hour = (int)hour;
	tm.tm_min = (int)minute;
	tm.tm_sec = 0;
	tm.tm_isdst = -1;
	time_t when = mktime(&tm);
	if (when <= now) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		when = mktime(&tm);
	}
	*ret_when = when;
	return when > now;
}

static int parse_until(const struct ckt_ctl_args *args, int64_t *ret_until)
{
	int64_t seconds;
	*ret_until = 0;
	if (args->pause_for && args->until) {
		fprintf(stderr,
			"cricketctl: pause: --for and --until exclude each other: give one\n");
		return CKT_EXIT_USAGE;
	}
	if (args->pause_for && parse_duration(args->pause_for, &seconds)) {
		*ret_until = time(NULL) + seconds;
	} else if (args->pause_for) {
		fprintf(stderr,
			"cricketctl: --for: '%s' is not valid: write a number with s, m, h or d, such as 30m\n",
			args->pause_for);
		return CKT_EXIT_USAGE;
	} else if (args->until && !parse_clock(args->until, ret_until)) {
		fprintf(stderr,
			"cricketctl: --until: '%s' is not valid: write a time of day such as 18:00\n",
			args->until);
		return CKT_EXIT_USAGE;
	}
	return CKT_EXIT_DONE;
}

static int run(const struct ckt_ctl_args *args, uint32_t proc, xdrproc_t xdr_args, void *call,
	const char *done, int64_t until)
{
	struct ckt_ctl_server server;
	ckt_control_bytes_res res = {0};
	char size[32], when[64] = "";
	int status = ckt_ctl_connect_for(args, args->words[0], &server);
	if (status != CKT_EXIT_DONE)
		return status;
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(args, &server, args->words[0]);
	status = ckt_ctl_call(
		&server, proc, xdr_args, call, (xdrproc_t)xdr_ckt_control_bytes_res, &res, -1, -1);
	ckt_ctl_progress_end(progress);
	ckt_ctl_disconnect(&server);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (until)
		ckt_ctl_time_text(until, when, sizeof when);
	if (status == CKT_EXIT_DONE && args->json) {
		status = ckt_ctl_json_print(json_pack("{s:o, s:s, s:I, s:s*}", "session",
			ckt_ctl_json_text(res.session), "state", done, "bytes",
			(json_int_t)res.bytes, "until", until ? when : NULL));
	} else if (status == CKT_EXIT_DONE) {
		printf("session %s %s, %s%s%s\n", res.session, done,
			ckt_ctl_size_text(res.bytes, size, sizeof size), until ? ", until " : "",
			when);
		status = ckt_ctl_flush();
	}
	xdr_free((xdrproc_t)xdr_ckt_control_bytes_res, (char *)&res);
	return status;
}

int ckt_ctl_pause(const struct ckt_ctl_args *args)
{
	ckt_control_pause_args call = {.session = (char *)args->words[0]};
	int64_t until;
	int status = parse_until(args, &until);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_parse_deadline(args->deadline, &call.deadline_ms);
	call.until = until;
	return status == CKT_EXIT_DONE
		? run(args, CKT_CONTROL_PAUSE, (xdrproc_t)xdr_ckt_control_pause_args, &call,
			  "paused", until)
		: status;
}

int ckt_ctl_resume(const struct ckt_ctl_args *args)
{
	ckt_control_session_args call = {.session = (char *)args->words[0]};
	return run(args, CKT_CONTROL_UNPAUSE, (xdrproc_t)xdr_ckt_control_session_args, &call,
		"resumed", 0);
}
