/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of a server at one time; see top_sample.h. */
#include "ctl/top/top_sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/print.h"
#include "rpc/net.h"
#include "rpc/worker.h"

enum { TIMEOUT_MS = 10000, NS_IN_S = 1000000000 };

/* Printable ASCII alone: some terminals obey control characters beyond it, too. */
static void take_text(char *ret_text, size_t size, const char *text)
{
	size_t i = 0;
	for (; text && text[i] && i + 1 < size; i++)
		ret_text[i] = text[i] < 32 || text[i] > 126 ? '?' : text[i];
	ret_text[i] = 0;
}

/* An exit code, with the reason in ret_problem. */
static int connect_again(struct ckt_top_source *source, char *ret_problem)
{
	char message[CKT_TOP_PROBLEM_MAX];
	int status = CKT_EXIT_DONE;
	if (source->server.fd < 0)
		status = ckt_ctl_try_connect(
			&source->args, &source->server, message, sizeof message);
	if (status != CKT_EXIT_DONE)
		take_text(ret_problem, CKT_TOP_PROBLEM_MAX, message);
	return status;
}

int ckt_ctl_top_open(const struct ckt_ctl_args *args, struct ckt_top_source *ret_source)
{
	struct ckt_ctl_server server;
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	*ret_source = (struct ckt_top_source){.args = *args, .server = server};
	snprintf(ret_source->address, sizeof ret_source->address, "%s", server.address);
	ret_source->args.server = ret_source->address;
	return CKT_EXIT_DONE;
}

void ckt_ctl_top_close(struct ckt_top_source *source)
{
	ckt_ctl_disconnect(&source->server);
}

/* ---- Reading */

static void take_session(struct ckt_top_session *to, const ckt_control_watched *from)
{
	const ckt_control_session *session = &from->session;
	bool in_between =
		session->state == CKT_STATE_STARTING || session->state == CKT_STATE_ENDING;
	*to = (struct ckt_top_session){.client_pid = session->client_pid,
		.worker_pid = session->worker_pid,
		.state = session->state,
		.answered = *from->transport || in_between,
		.gpu = session->gpu,
		.memory_bytes = session->memory_bytes,
		.started = session->started,
		.lanes = from->lanes,
		.counted = *from->transport,
		.directed = from->received_bytes >= 0 && from->sent_bytes >= 0,
		.calls = from->calls,
		.waits = from->waits,
		.received_bytes = from->received_bytes,
		.sent_bytes = from->sent_bytes,
		.share_permille = from->share_permille,
		.swapped_bytes = from->swapped_bytes,
		.waiting_ms = from->waiting_ms,
		.switches = from->switches};
	take_text(to->session, sizeof to->session, session->session);
	take_text(to->program, sizeof to->program, session->program_name);
	take_text(to->client, sizeof to->client, session->client);
	take_text(to->note, sizeof to->note, session->note);
	take_text(to->owner, sizeof to->owner, *from->owner.name ? from->owner.name : "-");
	take_text(to->project, sizeof to->project, from->owner.project);
	take_text(to->job, sizeof to->job, from->job);
	take_text(to->transport, sizeof to->transport, from->transport);
}

static bool add_page(struct ckt_top_sample *sample, const ckt_control_watch_res *page)
{
	size_t count = sample->count + page->sessions.sessions_len;
	struct ckt_top_session *more = reallocarray(sample->list, count ? count : 1, sizeof *more);
	if (!more)
		return false;
	sample->list = more;
	for (u_int i = 0; i < page->sessions.sessions_len; i++)
		take_session(&more[sample->count++], &page->sessions.sessions_val[i]);
	return true;
}

/* 0 or -errno. */
static int read_pages(struct ckt_top_source *source, struct ckt_top_sample *sample)
{
	struct ckt_ctl_pages pages = {0};
	bool more = true;
	while (more) {
		ckt_control_list_args call = {.after = pages.after};
		ckt_control_watch_res page = {0};
		int result = ckt_net_call(source->server.fd, CRICKET_CONTROL_PROG,
			CKT_CONTROL_WATCH, (xdrproc_t)xdr_ckt_control_list_args, &call,
			(xdrproc_t)xdr_ckt_control_watch_res, &page, ckt_net_now_ms() + TIMEOUT_MS,
			-1);
		u_int count = page.sessions.sessions_len;
		if (!result && !add_page(sample, &page))
			result = -ENOMEM;
		const char *last =
			count ? page.sessions.sessions_val[count - 1].session.session : NULL;
		more = !result && ckt_ctl_pages_next(&pages, page.more, last) > 0;
		xdr_free((xdrproc_t)xdr_ckt_control_watch_res, (char *)&page);
		if (result)
			return result;
	}
	return 0;
}

static void rate(struct ckt_top_session *now, const struct ckt_top_session *then, double seconds)
{
	/* Another worker counts from the beginning, as after a restore. */
	now->rated = now->counted && then->counted && now->worker_pid == then->worker_pid &&
		now->calls >= then->calls && now->waits >= then->waits &&
		now->received_bytes >= then->received_bytes &&
		now->sent_bytes >= then->sent_bytes && seconds > 0;
	if (!now->rated)
		return;
	now->calls_rate = (double)(now->calls - then->calls) / seconds;
	now->waits_rate = (double)(now->waits - then->waits) / seconds;
	now->received_rate = (double)(now->received_bytes - then->received_bytes) / seconds;
	now->sent_rate = (double)(now->sent_bytes - then->sent_bytes) / seconds;
	now->switches_rate = now->switches < then->switches || then->switches < 0
		? -1
		: (double)(now->switches - then->switches) / seconds;
}

/* Both are sorted by session, as the server tells them. */
static void rate_all(struct ckt_top_sample *now, const struct ckt_top_sample *before)
{
	double seconds = (double)(now->when_ns - before->when_ns) / NS_IN_S;
	for (size_t i = 0, j = 0; i < now->count && j < before->count;) {
		int order = strcmp(now->list[i].session, before->list[j].session);
		if (order == 0)
			rate(&now->list[i], &before->list[j], seconds);
		i += order <= 0;
		j += order >= 0;
	}
}

int ckt_ctl_top_read(struct ckt_top_source *source, const struct ckt_top_sample *before,
	struct ckt_top_sample *ret_sample)
{
	*ret_sample = (struct ckt_top_sample){0};
	int status = connect_again(source, ret_sample->problem);
	if (status != CKT_EXIT_DONE)
		return status;
	int result = read_pages(source, ret_sample);
	if (result) {
		ckt_ctl_disconnect(&source->server);
		snprintf(ret_sample->problem, sizeof ret_sample->problem,
			"the server at %s does not answer: %s; one of an earlier version cannot: use cricketctl ps",
			source->address, strerror(-result));
		return CKT_EXIT_NO_SERVER;
	}
	ret_sample->when_ns = ckt_now_ns();
	if (before)
		rate_all(ret_sample, before);
	return CKT_EXIT_DONE;
}

void ckt_ctl_top_free(struct ckt_top_sample *sample)
{
	free(sample->list);
	*sample = (struct ckt_top_sample){0};
}

/* ---- JSON */

static json_t *text_or_null(const char *text)
{
	return *text && strcmp(text, "-") != 0 ? json_string(text) : json_null();
}

static json_t *rate_or_null(bool known, double value)
{
	return known ? json_integer((json_int_t)(value + 0.5)) : json_null();
}

static json_t *count_or_null(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

static json_t *session_json(const struct ckt_top_session *s)
{
	bool rated = s->rated, directed = s->rated && s->directed;
	json_t *object = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:s, s:b, s:i, s:I}",
		"session", s->session, "program", s->program, "client", s->client, "pid",
		(int)s->client_pid, "owner", text_or_null(s->owner), "project",
		text_or_null(s->project), "job", text_or_null(s->job), "state",
		ckt_ctl_state_name(s->state), "answered", (int)s->answered, "gpu", s->gpu,
		"memory_bytes", (json_int_t)s->memory_bytes);
	json_object_set_new(object, "share_percent",
		s->share_permille < 0 ? json_null() : json_real(s->share_permille / 10.0));
	json_object_set_new(object, "swapped_bytes", count_or_null(s->swapped_bytes));
	json_object_set_new(object, "waiting_ms", count_or_null(s->waiting_ms));
	json_object_set_new(object, "switches", count_or_null(s->switches));
	json_object_set_new(
		object, "received_bytes_per_second", rate_or_null(directed, s->received_rate));
	json_object_set_new(object, "sent_bytes_per_second", rate_or_null(directed, s->sent_rate));
	json_object_set_new(object, "calls_per_second", rate_or_null(rated, s->calls_rate));
	json_object_set_new(object, "waits_per_second", rate_or_null(rated, s->waits_rate));
	json_object_set_new(object, "transport", text_or_null(s->transport));
	json_object_set_new(object, "lanes", *s->transport ? json_integer(s->lanes) : json_null());
	return object;
}

json_t *ckt_ctl_top_json(const struct ckt_top_sample *sample)
{
	json_t *list = json_array();
	for (size_t i = 0; i < sample->count; i++)
		json_array_append_new(list, session_json(&sample->list[i]));
	return json_pack("{s:o}", "sessions", list);
}
