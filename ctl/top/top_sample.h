/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cricketctl top shows: the sessions of a server at one time, with what their workers have
 * counted, and what that is a second.
 *
 * Texts of peers are printable ASCII here: they go to a terminal.
 *
 * Threading: one thread reads a source; samples have no shared state.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/job.h"
#include "rpc/session.h"

enum { CKT_TOP_OWNER_MAX = 64, CKT_TOP_PROBLEM_MAX = 1200 };

struct ckt_top_session {
	char session[CKT_SESSION_ID_SIZE + 1];
	char program[CKT_NAME_MAX + 1], client[CKT_ADDRESS_MAX + 1], note[CKT_MESSAGE_MAX + 1];
	char owner[CKT_TOP_OWNER_MAX + 1], project[CKT_TOP_OWNER_MAX + 1]; /* "-", "": none */
	char job[CKT_JOB_NAME_MAX + 1];                                    /* "": none */
	char transport[CKT_CONTROL_TRANSPORT + 1];                         /* "": not known */
	unsigned lanes, client_pid, worker_pid, state;
	bool answered; /* its worker did, or the server knows the state without it; else that was it once */
	int gpu;
	uint64_t memory_bytes;
	int64_t started; /* seconds since the epoch */
	bool counted;    /* its worker said what it has counted: calls and waits, and */
	bool directed; /* the bytes each way, which a worker of an earlier version does not know */
	uint64_t calls, waits;
	int64_t received_bytes, sent_bytes;
	bool rated; /* the sample before has the same counts of the same worker; a second: */
	double calls_rate, waits_rate, received_rate, sent_rate;
	double switches_rate; /* below 0: not known */
	/* Of a scheduler and of swapped memory; below 0: the server does not tell. */
	int share_permille;
	int64_t swapped_bytes, waiting_ms, switches;
};

struct ckt_top_sample {
	int64_t when_ns; /* CLOCK_MONOTONIC */
	struct ckt_top_session *list;
	size_t count;
	char problem[CKT_TOP_PROBLEM_MAX]; /* why there is none; "": there is */
};

struct ckt_top_source {
	struct ckt_ctl_args args; /* with the address below */
	char address[CKT_ADDRESS_TEXT_MAX];
	struct ckt_ctl_server server;
};

/* Connects; an exit code, with the error printed.  ret_source is used in place, not copied. */
int ckt_ctl_top_open(const struct ckt_ctl_args *args, struct ckt_top_source *ret_source);
void ckt_ctl_top_close(struct ckt_top_source *source);
/*
 * Reads one sample, and connects again if it must.  An exit code; the reason is in
 * ret_sample->problem.  before: the sample that rates are measured against; NULL: none.  The caller
 * frees ret_sample, also after an error.
 */
int ckt_ctl_top_read(struct ckt_top_source *source, const struct ckt_top_sample *before,
	struct ckt_top_sample *ret_sample);
void ckt_ctl_top_free(struct ckt_top_sample *sample);
/* What --json prints; the caller owns it. */
json_t *ckt_ctl_top_json(const struct ckt_top_sample *sample);
