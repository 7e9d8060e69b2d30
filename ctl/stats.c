/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl stats SESSION */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

enum { TIMEOUT_MS = 20000 };

static int by_calls(const void *a, const void *b)
{
	const ckt_control_stat *x = a, *y = b;
	return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1) : strcmp(x->name, y->name);
}

static json_t *stat_json(const ckt_control_stat *stat)
{
	return json_pack("{s:o, s:I, s:I, s:I, s:I}", "name", ckt_ctl_json_text(stat->name),
		"calls", (json_int_t)stat->calls, "batched", (json_int_t)stat->batched, "waited",
		(json_int_t)stat->waited, "bytes", (json_int_t)stat->bytes);
}

/* The rows that count no calls. */
struct other_rows {
	const char *transport; /* valid as long as the list; "unknown": of an older server */
	ckt_control_stat hits, misses; /* of the cache of modules */
};

/* Takes a row out of the list.  Zeros: there is none, as of an older server. */
static ckt_control_stat take_row(ckt_control_stats_res *res, const char *prefix)
{
	ckt_control_stat *stats = res->stats.stats_val;
	for (u_int i = 0; i < res->stats.stats_len; i++) {
		if (strncmp(stats[i].name, prefix, strlen(prefix)) != 0)
			continue;
		ckt_control_stat found = stats[i];
		stats[i] = stats[--res->stats.stats_len];
		stats[res->stats.stats_len] = found;
		return found;
	}
	return (ckt_control_stat){0};
}

static struct other_rows take_rows(ckt_control_stats_res *res)
{
	ckt_control_stat transport = take_row(res, CKT_STAT_TRANSPORT);
	/* For top. */
	take_row(res, CKT_STAT_RECEIVED);
	take_row(res, CKT_STAT_SENT);
	return (struct other_rows){.transport = transport.name
			? transport.name + strlen(CKT_STAT_TRANSPORT)
			: "unknown",
		.hits = take_row(res, CKT_STAT_MODULE_HITS),
		.misses = take_row(res, CKT_STAT_MODULE_MISSES)};
}

static int print_json(const ckt_control_stats_res *res, const struct other_rows *rows)
{
	json_t *calls = json_array();
	for (u_int i = 0; i < res->stats.stats_len; i++)
		json_array_append_new(calls, stat_json(&res->stats.stats_val[i]));
	return ckt_ctl_json_print(json_pack(
		"{s:o, s:o, s:o, s:i, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o}", "session",
		ckt_ctl_json_text(res->session.session), "program",
		ckt_ctl_json_text(res->session.program_name), "transport",
		ckt_ctl_json_text(rows->transport), "worker_pid", (int)res->session.worker_pid,
		"memory_bytes", (json_int_t)res->session.memory_bytes, "generation",
		(json_int_t)res->session.generation, "executed", (json_int_t)res->session.executed,
		"module_cache", "hits", (json_int_t)rows->hits.calls, "misses",
		(json_int_t)rows->misses.calls, "bytes", (json_int_t)rows->hits.bytes, "calls",
		calls));
}

static int print_text(const ckt_control_stats_res *res, const struct other_rows *rows)
{
	char name[CKT_NAME_MAX + 1], over[CKT_NAME_MAX + 1], size[32];
	ckt_control_stat sum = {0};
	printf("session %s, %s, worker %u, %s of device memory, connected over %s\n\n",
		res->session.session, ckt_ctl_clean(res->session.program_name, name, sizeof name),
		res->session.worker_pid,
		ckt_ctl_size_text(res->session.memory_bytes, size, sizeof size),
		ckt_ctl_clean(rows->transport, over, sizeof over));
	if (rows->hits.calls || rows->misses.calls)
		printf("modules: %llu (%s) from the server's cache, %llu that it lacked\n\n",
			(unsigned long long)rows->hits.calls,
			ckt_ctl_size_text(rows->hits.bytes, size, sizeof size),
			(unsigned long long)rows->misses.calls);
	printf("%12s %12s %12s %10s  %s\n", "CALLS", "BATCHED", "WAITED", "BYTES", "NAME");
	for (u_int i = 0; i < res->stats.stats_len; i++) {
		const ckt_control_stat *stat = &res->stats.stats_val[i];
		printf("%12llu %12llu %12llu %10s  %s\n", (unsigned long long)stat->calls,
			(unsigned long long)stat->batched, (unsigned long long)stat->waited,
			ckt_ctl_size_text(stat->bytes, size, sizeof size),
			ckt_ctl_clean(stat->name, name, sizeof name));
		sum.calls += stat->calls;
		sum.batched += stat->batched;
		sum.waited += stat->waited;
		sum.bytes += stat->bytes;
	}
	printf("%12llu %12llu %12llu %10s  total\n", (unsigned long long)sum.calls,
		(unsigned long long)sum.batched, (unsigned long long)sum.waited,
		ckt_ctl_size_text(sum.bytes, size, sizeof size));
	return ckt_ctl_flush();
}

int ckt_ctl_stats(const struct ckt_ctl_args *args)
{
	ckt_control_session_args session = {.session = args->words[0]};
	ckt_control_stats_res res = {0};
	int status = ckt_ctl_ask(args, args->words[0], CKT_CONTROL_STATS,
		(xdrproc_t)xdr_ckt_control_session_args, &session,
		(xdrproc_t)xdr_ckt_control_stats_res, &res, TIMEOUT_MS);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE) {
		u_int length = res.stats.stats_len;
		const struct other_rows rows = take_rows(&res);
		if (res.stats.stats_len) /* none: no array either */
			qsort(res.stats.stats_val, res.stats.stats_len, sizeof *res.stats.stats_val,
				by_calls);
		status = args->json ? print_json(&res, &rows) : print_text(&res, &rows);
		res.stats.stats_len = length; /* to be freed */
	}
	xdr_free((xdrproc_t)xdr_ckt_control_stats_res, (char *)&res);
	return status;
}
