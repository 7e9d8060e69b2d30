/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic images; see durable.h. */
#include "ctl/durable.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/net.h"

enum { TIMEOUT_MS = 15000 };

static bool read_replicas(struct ckt_ctl_server *server, const char *after, bool held,
	struct ckt_ctl_durable *durable)
{
	ckt_control_replicas_args args = {.after = (char *)after, .held = held};
	ckt_control_replicas_res *more =
		reallocarray(durable->replicas, durable->replica_count + 1, sizeof *more);
	if (!more)
		return false;
	durable->replicas = more;
	more += durable->replica_count;
	*more = (ckt_control_replicas_res){0};
	if (ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_REPLICAS,
		    (xdrproc_t)xdr_ckt_control_replicas_args, &args,
		    (xdrproc_t)xdr_ckt_control_replicas_res, more, ckt_net_now_ms() + TIMEOUT_MS,
		    -1)) {
		xdr_free((xdrproc_t)xdr_ckt_control_replicas_res, (char *)more);
		return false;
	}
	durable->replica_count++;
	return true;
}

/* Both kinds; an older server ends the connection at the first question. */
static void read_all_replicas(const struct ckt_ctl_args *args, struct ckt_ctl_durable *durable)
{
	struct ckt_ctl_server server;
	if (ckt_ctl_connect(args, &server) != CKT_EXIT_DONE)
		return;
	bool good = true;
	for (int held = 0; held < 2 && good; held++) {
		struct ckt_ctl_pages pages = {0};
		durable->held_from = durable->replica_count;
		for (bool more = true; good && more;) {
			good = read_replicas(&server, pages.after, held, durable);
			const ckt_control_replicas_res *page =
				good ? &durable->replicas[durable->replica_count - 1] : NULL;
			u_int count = page ? page->replicas.replicas_len : 0;
			more = count &&
				ckt_ctl_pages_next(&pages, page->more,
					page->replicas.replicas_val[count - 1].session) > 0;
		}
	}
	ckt_ctl_disconnect(&server);
}

void ckt_ctl_durable_read(const struct ckt_ctl_args *args, struct ckt_ctl_durable *ret_durable)
{
	static const struct ckt_ctl_listing_kind kind =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_DURABLE, ckt_control_durable_res, sessions);
	*ret_durable = (struct ckt_ctl_durable){0};
	ckt_ctl_listing_read(args, &kind, &ret_durable->images);
	if (ret_durable->images.count)
		read_all_replicas(args, ret_durable);
}

void ckt_ctl_durable_free(struct ckt_ctl_durable *durable)
{
	ckt_ctl_listing_free(&durable->images);
	for (size_t i = 0; i < durable->replica_count; i++)
		xdr_free((xdrproc_t)xdr_ckt_control_replicas_res, (char *)&durable->replicas[i]);
	free(durable->replicas);
	*durable = (struct ckt_ctl_durable){0};
}

static const ckt_control_durable *find(const struct ckt_ctl_durable *durable, const char *session)
{
	return ckt_ctl_listing_next(&durable->images, session, NULL);
}

/* ---- Replicas */

/* The one of a session of that server. */
static const ckt_control_replica *find_replica(
	const struct ckt_ctl_durable *durable, const char *session)
{
	for (size_t page = 0; page < durable->held_from; page++)
		for (u_int i = 0; i < durable->replicas[page].replicas.replicas_len; i++)
			if (strcmp(durable->replicas[page].replicas.replicas_val[i].session,
				    session) == 0)
				return &durable->replicas[page].replicas.replicas_val[i];
	return NULL;
}

static const char *state_of(const ckt_control_replica *one)
{
	return !one->executed ? "none" : one->behind ? "behind" : "whole";
}

static json_t *replica_json(const ckt_control_replica *one)
{
	char when[64];
	int64_t age = (int64_t)time(NULL) - one->when;
	return json_pack("{s:o, s:s, s:I, s:I, s:o, s:o, s:i, s:o}", "server",
		ckt_ctl_json_text(one->server), "state", state_of(one), "executed",
		(json_int_t)one->executed, "behind", (json_int_t)one->behind, "when",
		one->when ? json_string(ckt_ctl_time_text(one->when, when, sizeof when))
			  : json_null(),
		"renewed_s", one->when ? json_integer(age > 0 ? age : 0) : json_null(), "lease_s",
		(int)one->lease_s, "problem",
		*one->problem ? ckt_ctl_json_text(one->problem) : json_null());
}

static void print_replica(const ckt_control_replica *one)
{
	char server[CKT_ADDRESS_MAX + 1];
	int64_t age = (int64_t)time(NULL) - one->when;
	printf("              replica at %s: ", ckt_ctl_clean(one->server, server, sizeof server));
	if (!one->executed)
		printf("nothing yet\n");
	else
		printf("up to command %llu, %llu behind, renewed %lld s ago, lease %u s\n",
			(unsigned long long)one->executed, (unsigned long long)one->behind,
			(long long)(one->when && age > 0 ? age : 0), one->lease_s);
}

json_t *ckt_ctl_replicas_json(const struct ckt_ctl_durable *durable)
{
	json_t *list = json_array();
	char when[64];
	for (size_t page = durable->held_from; page < durable->replica_count; page++)
		for (u_int i = 0; i < durable->replicas[page].replicas.replicas_len; i++) {
			const ckt_control_replica *one =
				&durable->replicas[page].replicas.replicas_val[i];
			json_array_append_new(list,
				json_pack("{s:o, s:I, s:I, s:o, s:i}", "session",
					ckt_ctl_json_text(one->session), "executed",
					(json_int_t)one->executed, "bytes", (json_int_t)one->bytes,
					"when",
					one->when ? json_string(ckt_ctl_time_text(
							    one->when, when, sizeof when))
						  : json_null(),
					"lease_s", (int)one->lease_s));
		}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

void ckt_ctl_replicas_print(const struct ckt_ctl_durable *durable)
{
	char size[32], session[CKT_SESSION_ID_SIZE + 1];
	for (size_t page = durable->held_from; page < durable->replica_count; page++)
		for (u_int i = 0; i < durable->replicas[page].replicas.replicas_len; i++) {
			const ckt_control_replica *one =
				&durable->replicas[page].replicas.replicas_val[i];
			printf("%-12s  replica of another server's session, up to command %llu: "
			       "%s, lease %u s\n",
				ckt_ctl_clean(one->session, session, sizeof session),
				(unsigned long long)one->executed,
				ckt_ctl_size_text(one->bytes, size, sizeof size), one->lease_s);
		}
}

/* ---- Images */

json_t *ckt_ctl_durable_json(const struct ckt_ctl_durable *durable, const char *session)
{
	const ckt_control_durable *one = find(durable, session);
	char when[64];
	if (!one)
		return NULL;
	json_t *json = json_pack("{s:o, s:I, s:I, s:i, s:I, s:I, s:i, s:o}", "when",
		one->when ? json_string(ckt_ctl_time_text(one->when, when, sizeof when))
			  : json_null(),
		"executed", (json_int_t)one->executed, "bytes", (json_int_t)one->bytes, "images",
		(int)one->images, "taken", (json_int_t)one->taken, "behind",
		(json_int_t)one->behind, "restores", (int)one->restores, "problem",
		*one->problem ? ckt_ctl_json_text(one->problem) : json_null());
	const ckt_control_replica *replica = find_replica(durable, session);
	if (json && replica)
		json_object_set_new(json, "replica", replica_json(replica));
	return json;
}

json_t *ckt_ctl_asleep_json(const struct ckt_ctl_durable *durable, const char *session)
{
	const ckt_control_durable *one = find(durable, session);
	char since[64];
	return one ? json_pack("{s:s, s:I}", "since",
			     ckt_ctl_time_text(one->when, since, sizeof since), "bytes",
			     (json_int_t)one->bytes)
		   : NULL;
}

void ckt_ctl_durable_print(const struct ckt_ctl_durable *durable, const char *session)
{
	const ckt_control_durable *one = find(durable, session);
	char size[32], problem[CKT_CONTROL_REASON + 1];
	if (!one)
		return;
	int64_t age = (int64_t)time(NULL) - one->when;
	if (one->when)
		printf("              automatic image %lld s old, up to command %llu: %u image%s, %s",
			(long long)(age > 0 ? age : 0), (unsigned long long)one->executed,
			one->images, one->images == 1 ? "" : "s",
			ckt_ctl_size_text(one->bytes, size, sizeof size));
	else
		printf("              no automatic image yet");
	if (*one->problem)
		printf("; %s: %s", one->when ? "no newer one" : "why",
			ckt_ctl_clean(one->problem, problem, sizeof problem));
	printf("\n");
	const ckt_control_replica *replica = find_replica(durable, session);
	if (replica)
		print_replica(replica);
}
