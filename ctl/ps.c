/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl ps */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/drain/drain_state.h"
#include "ctl/durable.h"
#include "ctl/listing.h"
#include "ctl/owners.h"
#include "ctl/print.h"
#include "ctl/quanta.h"
#include "ctl/server.h"
#include "ctl/sharing.h"
#include "ctl/subcommands.h"
#include "ctl/turns.h"
#include "ctl/waits.h"
#include "ctl/watched.h"
#include "rpc/control.h"
#include "rpc/job.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/worker.h"

enum { TIMEOUT_MS = 15000 };

/* Which sessions belong to a job. */
static void jobs_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_jobs)
{
	static const struct ckt_ctl_listing_kind kind =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_JOBS, ckt_control_jobs_res, sessions);
	ckt_ctl_listing_read(args, &kind, ret_jobs);
}

/* NULL: none. */
static const char *job_of(const struct ckt_ctl_listing *jobs, const char *session)
{
	const ckt_control_job *one = ckt_ctl_listing_next(jobs, session, NULL);
	return one ? one->job : NULL;
}

/* What the sessions' connections run over, of one page; empty: a server of an older version. */
static void connections_read(const struct ckt_ctl_args *args, const char *after,
	ckt_control_connections_res *ret_connections)
{
	struct ckt_ctl_server server;
	ckt_control_list_args call = {.after = (char *)after};
	*ret_connections = (ckt_control_connections_res){0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	if (ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_CONNECTIONS,
		    (xdrproc_t)xdr_ckt_control_list_args, &call,
		    (xdrproc_t)xdr_ckt_control_connections_res, ret_connections,
		    ckt_net_now_ms() + TIMEOUT_MS, -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_connections_res, (char *)ret_connections);
		*ret_connections = (ckt_control_connections_res){0};
	}
	ckt_ctl_disconnect(&server);
}

/* NULL: its worker did not say. */
static const ckt_control_connection *connection_of(
	const ckt_control_connections_res *connections, const char *session)
{
	for (u_int i = 0; i < connections->sessions.sessions_len; i++)
		if (strcmp(connections->sessions.sessions_val[i].session, session) == 0)
			return &connections->sessions.sessions_val[i];
	return NULL;
}

/* What the listing knows of a session beside what LIST tells. */
struct beside {
	const char *job; /* NULL: none */
	const char *owner, *project;
	const bool_t *answered;                   /* whether its worker did; NULL: not known */
	const ckt_control_connection *connection; /* NULL: not known */
	const ckt_control_connections_res *connections;
	const struct ckt_ctl_listing *turns, *quanta, *watched;
	const struct ckt_ctl_sharings *sharings;
	const struct ckt_ctl_waits *waits;
	const struct ckt_ctl_durable *durable;
};

static json_t *session_json(const ckt_control_session *session, const struct beside *beside)
{
	const char *job = beside->job, *owner = beside->owner, *project = beside->project;
	const ckt_control_connection *connection = beside->connection;
	char started[64];
	json_t *object = json_object();
	json_object_set_new(object, "session", ckt_ctl_json_text(session->session));
	json_object_set_new(object, "program", ckt_ctl_json_text(session->program_name));
	json_object_set_new(object, "client", ckt_ctl_json_text(session->client));
	json_object_set_new(object, "pid", json_integer(session->client_pid));
	json_object_set_new(object, "gpu", json_integer(session->gpu));
	json_object_set_new(
		object, "memory_bytes", json_integer((json_int_t)session->memory_bytes));
	json_object_set_new(object, "state", json_string(ckt_ctl_state_name(session->state)));
	json_object_set_new(object, "answered",
		beside->answered ? json_boolean(*beside->answered) : json_null());
	json_object_set_new(object, "started",
		json_string(ckt_ctl_time_text(session->started, started, sizeof started)));
	json_object_set_new(object, "job", job ? ckt_ctl_json_text(job) : json_null());
	json_object_set_new(
		object, "owner", *owner == '-' ? json_null() : ckt_ctl_json_text(owner));
	json_object_set_new(object, "project", *project ? ckt_ctl_json_text(project) : json_null());
	json_object_set_new(object, "transport",
		connection ? ckt_ctl_json_text(connection->transport) : json_null());
	json_object_set_new(
		object, "lanes", connection ? json_integer(connection->lanes) : json_null());
	json_object_set_new(object, "turns", ckt_ctl_turns_json(beside->turns, session->session));
	json_object_set_new(
		object, "sharing", ckt_ctl_sharings_json(beside->sharings, session->session));
	json_object_set_new(object, "waits", ckt_ctl_waits_json(beside->waits, session->session));
	bool asleep = session->state == CKT_STATE_ASLEEP;
	json_t *durable = asleep ? ckt_ctl_asleep_json(beside->durable, session->session)
				 : ckt_ctl_durable_json(beside->durable, session->session);
	if (durable)
		json_object_set_new(object, asleep ? "asleep" : "automatic_image", durable);
	json_object_set_new(
		object, "swapping", ckt_ctl_quanta_json(beside->quanta, session->session));
	ckt_ctl_watched_json(beside->watched, session->session, object);
	if (*session->note)
		json_object_set_new(object, "note", ckt_ctl_json_text(session->note));
	return object;
}

/* "tcp", "tcp+4" with four lanes, "-" if not known. */
static const char *transport_text(const ckt_control_connection *connection, char *text, size_t size)
{
	char clean[CKT_CONTROL_TRANSPORT + 1];
	if (!connection)
		return "-";
	ckt_ctl_clean(connection->transport, clean, sizeof clean);
	if (connection->lanes)
		snprintf(text, size, "%s+%u", clean, connection->lanes);
	else
		snprintf(text, size, "%s", clean);
	return text;
}

static void session_line(const ckt_control_session *session, const struct beside *beside)
{
	const char *job = beside->job;
	char clean_job[CKT_JOB_NAME_MAX + 1], program[CKT_NAME_MAX + 1],
		client[CKT_ADDRESS_MAX + 1], memory[32], started[64], note[CKT_MESSAGE_MAX + 1],
		clean_owner[80], transport[32], state[32];
	snprintf(state, sizeof state, "%s%s", ckt_ctl_state_name(session->state),
		beside->answered && !*beside->answered ? "?" : "");
	printf("%-12s  %-20s %-20s %7u %3d %9s  %-9s %-20s  %-6s  %s%s%s\n", session->session,
		ckt_ctl_clean(session->program_name, program, sizeof program),
		ckt_ctl_clean(session->client, client, sizeof client), session->client_pid,
		session->gpu, ckt_ctl_size_text(session->memory_bytes, memory, sizeof memory),
		state, ckt_ctl_time_text(session->started, started, sizeof started),
		transport_text(beside->connection, transport, sizeof transport),
		ckt_ctl_clean(beside->owner, clean_owner, sizeof clean_owner), job ? "  " : "",
		job ? ckt_ctl_clean(job, clean_job, sizeof clean_job) : "");
	if (*session->note)
		printf("              note: %s\n", ckt_ctl_clean(session->note, note, sizeof note));
	ckt_ctl_sharings_print(beside->sharings, session->session);
	ckt_ctl_turns_print(beside->turns, session->session);
	ckt_ctl_waits_print(beside->waits, session->session);
	/* Its note says the same. */
	if (session->state != CKT_STATE_ASLEEP)
		ckt_ctl_durable_print(beside->durable, session->session);
	ckt_ctl_quanta_print(beside->quanta, session->session);
}

/* Prints the sessions of one answer, or adds them to the list.  beside: what is the same for all. */
static void print_page(const struct ckt_ctl_args *args, const ckt_control_list2_res *page,
	struct beside beside, const struct ckt_ctl_listing *jobs, json_t *list)
{
	const ckt_control_list_res *res = &page->list;
	struct ckt_ctl_owners owners;
	uint32_t numbers[CKT_CONTROL_LIST_MAX];
	for (u_int i = 0; i < res->sessions.sessions_len; i++)
		numbers[i] = res->sessions.sessions_val[i].uid;
	ckt_ctl_owners_read(args, numbers, res->sessions.sessions_len, &owners);
	for (u_int i = 0; i < res->sessions.sessions_len; i++) {
		const ckt_control_session *session = &res->sessions.sessions_val[i];
		beside.job = job_of(jobs, session->session);
		beside.owner = ckt_ctl_owner_name(&owners, i, session->uid);
		beside.project = ckt_ctl_owner_project(&owners, i);
		beside.answered = ckt_ctl_answered(page, i);
		beside.connection = connection_of(beside.connections, session->session);
		if (args->json)
			json_array_append_new(list, session_json(session, &beside));
		else
			session_line(session, &beside);
	}
	ckt_ctl_owners_free(&owners);
}

/* How many workers wait for a session; NULL: the server is older, and ends that connection. */
static json_t *warm_json(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	ckt_control_warm_res res = {0};
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return json_null();
	int result = ckt_net_call(server.fd, CRICKET_CONTROL_PROG, CKT_CONTROL_WARM, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_warm_res, &res, ckt_net_now_ms() + TIMEOUT_MS, -1);
	ckt_ctl_disconnect(&server);
	return result ? json_null() : json_integer(res.ready);
}

/* All that is listed beside what LIST tells. */
struct listing {
	struct ckt_ctl_listing jobs, turns, quanta, watched;
	struct ckt_ctl_sharings sharings;
	struct ckt_ctl_waits waits;
	struct ckt_ctl_drain drain;
	struct ckt_ctl_durable durable;
	bool draining;
	json_t *list; /* for --json */
};

static void listing_read(const struct ckt_ctl_args *args, struct listing *listing)
{
	listing->draining = ckt_ctl_drain_look(args, &listing->drain);
	if (listing->draining && !args->json)
		fprintf(stderr,
			"cricketctl: the server is drained for maintenance: it takes no new sessions\n");
	jobs_read(args, &listing->jobs);
	ckt_ctl_turns_read(args, &listing->turns);
	ckt_ctl_sharings_read(args, &listing->sharings);
	ckt_ctl_waits_read(args, &listing->waits);
	ckt_ctl_durable_read(args, &listing->durable);
	ckt_ctl_quanta_read(args, &listing->quanta);
	ckt_ctl_watched_read(args, &listing->watched);
}

static void listing_free(struct listing *listing)
{
	json_decref(listing->list);
	ckt_ctl_listing_free(&listing->jobs);
	ckt_ctl_listing_free(&listing->turns);
	ckt_ctl_sharings_free(&listing->sharings);
	ckt_ctl_waits_free(&listing->waits);
	ckt_ctl_durable_free(&listing->durable);
	ckt_ctl_listing_free(&listing->quanta);
	ckt_ctl_listing_free(&listing->watched);
}

static void print_head(const struct ckt_ctl_args *args)
{
	if (!args->json)
		printf("%-12s  %-20s %-20s %7s %3s %9s  %-9s %-20s  %-6s  %s  %s\n", "SESSION",
			"PROGRAM", "CLIENT", "PID", "GPU", "MEMORY", "STATE", "STARTED", "OVER",
			"OWNER", "JOB");
}

/* Lists the sessions page by page. */
static int print_pages(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct listing *listing)
{
	struct ckt_ctl_pages pages = {0};
	bool more = true;
	for (unsigned page = 0; more; page++) {
		ckt_control_list2_res res = {0};
		ckt_control_connections_res connections;
		int status = ckt_ctl_list(server, pages.after, TIMEOUT_MS, &res);
		if (status != CKT_EXIT_DONE)
			return status;
		if (!page)
			print_head(args);
		connections_read(args, pages.after, &connections);
		print_page(args, &res,
			(struct beside){.connections = &connections,
				.turns = &listing->turns,
				.sharings = &listing->sharings,
				.waits = &listing->waits,
				.durable = &listing->durable,
				.quanta = &listing->quanta,
				.watched = &listing->watched},
			&listing->jobs, listing->list);
		xdr_free((xdrproc_t)xdr_ckt_control_connections_res, (char *)&connections);
		u_int count = res.list.sessions.sessions_len;
		status = ckt_ctl_pages_turn(&pages, server, res.list.more,
			count ? res.list.sessions.sessions_val[count - 1].session : NULL, &more);
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&res);
		if (status != CKT_EXIT_DONE)
			return status;
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_ps(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server = {.fd = -1};
	struct listing listing = {0};
	const char *token = getenv("CRICKET_TOKEN_FILE");
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	if (!server.is_unix && (!token || !*token))
		fprintf(stderr,
			"cricketctl: the server at %s lists no sessions over TCP "
			"without a token: use its UNIX socket, or set "
			"CRICKET_TOKEN_FILE\n",
			server.address);
	listing.list = json_array();
	listing_read(args, &listing);
	status = print_pages(args, &server, &listing);
	if (status == CKT_EXIT_DONE && args->json) {
		status = ckt_ctl_json_print(json_pack("{s:o, s:o, s:o*, s:o*}", "sessions",
			json_incref(listing.list), "warm", warm_json(args), "draining",
			listing.draining ? ckt_ctl_drain_json(&listing.drain) : NULL, "replicas",
			ckt_ctl_replicas_json(&listing.durable)));
	} else if (status == CKT_EXIT_DONE) {
		ckt_ctl_replicas_print(&listing.durable);
		status = ckt_ctl_flush();
	}
	listing_free(&listing);
	ckt_ctl_disconnect(&server);
	return status;
}
