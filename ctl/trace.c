/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl trace SESSION -o FILE: reads what the session's worker records, until a number of
 * seconds is over, a signal comes or the session ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "ctl/trace_file.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { PERIOD_MS = 100, TIMEOUT_MS = 20000, SECONDS_MAX = 7 * 24 * 3600 };

struct tracer {
	struct ckt_ctl_server server;
	struct ckt_ctl_trace_file file;
	ckt_control_trace_args call;
	int64_t until_ms; /* 0: no end */
	bool ended;       /* the session has, or the worker has ended the trace */
};

static int parse_seconds(const char *text, int64_t *ret_until_ms)
{
	char *end;
	*ret_until_ms = 0;
	if (!text)
		return CKT_EXIT_DONE;
	errno = 0;
	long seconds = strtol(text, &end, 10);
	if (errno || *end || seconds < 1 || seconds > SECONDS_MAX) {
		fprintf(stderr, "cricketctl: --seconds %s: expected a number from 1 to %d\n", text,
			SECONDS_MAX);
		return CKT_EXIT_USAGE;
	}
	*ret_until_ms = ckt_net_now_ms() + seconds * 1000;
	return CKT_EXIT_DONE;
}

/* One call; what it brings goes to the file. ret_more: there is more to read at once. */
static int ask(struct tracer *tracer, uint32_t proc, bool *ret_more)
{
	ckt_control_trace_res res = {0};
	*ret_more = false;
	int status = ckt_ctl_call(&tracer->server, proc, (xdrproc_t)xdr_ckt_control_trace_args,
		&tracer->call, (xdrproc_t)xdr_ckt_control_trace_res, &res, TIMEOUT_MS, -1);
	if (status != CKT_EXIT_DONE)
		return status;
	bool begins = proc == CKT_CONTROL_TRACE && tracer->call.action == CKT_TRACE_ACTION_START;
	if (res.result.status && !begins) {
		/* Not an error: a session that ends ends its trace. */
		tracer->ended = true;
		tracer->file.dropped += res.dropped;
		fprintf(stderr, "cricketctl: the trace ends here: %s\n", res.result.message);
	} else {
		status = ckt_ctl_result(&res.result);
	}
	if (status == CKT_EXIT_DONE && begins)
		tracer->call.trace = res.trace;
	else if (status == CKT_EXIT_DONE && !tracer->ended)
		status = ckt_ctl_trace_file_put(&tracer->file, &res);
	*ret_more = res.more;
	xdr_free((xdrproc_t)xdr_ckt_control_trace_res, (char *)&res);
	return status;
}

/* True if the trace shall go on; signals are handled here alone. */
static bool wait_a_period(const struct tracer *tracer, const sigset_t *set)
{
	struct timespec timeout = {.tv_nsec = PERIOD_MS * 1000000L};
	if (tracer->until_ms && ckt_net_now_ms() >= tracer->until_ms)
		return false;
	return sigtimedwait(set, NULL, &timeout) < 0;
}

static int follow(struct tracer *tracer, const sigset_t *set)
{
	bool more = true;
	int status = CKT_EXIT_DONE;
	while (status == CKT_EXIT_DONE && !tracer->ended && wait_a_period(tracer, set))
		for (more = true; more && status == CKT_EXIT_DONE && !tracer->ended;)
			status = ask(tracer, CKT_CONTROL_TRACE_READ, &more);
	if (status != CKT_EXIT_DONE || tracer->ended)
		return status;
	tracer->call.action = CKT_TRACE_ACTION_STOP;
	status = ask(tracer, CKT_CONTROL_TRACE, &more);
	while (status == CKT_EXIT_DONE && more && !tracer->ended)
		status = ask(tracer, CKT_CONTROL_TRACE_READ, &more);
	return status;
}

static int record(const struct ckt_ctl_args *args, struct tracer *tracer)
{
	sigset_t set;
	bool more;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int status = ckt_ctl_trace_file_open(args->output, args->words[0], &tracer->file);
	if (status != CKT_EXIT_DONE)
		return status;
	tracer->call = (ckt_control_trace_args){.session = args->words[0],
		.action = CKT_TRACE_ACTION_START,
		.gpu_time = args->gpu_time};
	status = ask(tracer, CKT_CONTROL_TRACE, &more);
	bool began = status == CKT_EXIT_DONE;
	if (began)
		status = follow(tracer, &set);
	bool cut = began && status == CKT_EXIT_NO_SERVER;
	if (status != CKT_EXIT_DONE && !cut) {
		ckt_ctl_trace_file_drop(&tracer->file);
		return status;
	}
	if (cut)
		fprintf(stderr,
			"cricketctl: the trace ends here: its last records are missing, and nobody "
			"counts them\n");
	int kept = ckt_ctl_trace_file_keep(&tracer->file);
	if (kept == CKT_EXIT_DONE)
		printf("session %s: %llu records in %s, %llu dropped\n", args->words[0],
			(unsigned long long)tracer->file.calls, args->output,
			(unsigned long long)tracer->file.dropped);
	return cut ? status : kept;
}

int ckt_ctl_trace(const struct ckt_ctl_args *args)
{
	static struct tracer tracer;
	tracer = (struct tracer){0};
	if (!args->output) {
		fprintf(stderr, "cricketctl: trace needs the file to write: -o FILE\n");
		return CKT_EXIT_USAGE;
	}
	int status = parse_seconds(args->seconds, &tracer.until_ms);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_connect_for(args, args->words[0], &tracer.server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = record(args, &tracer);
	ckt_ctl_disconnect(&tracer.server);
	return status;
}
