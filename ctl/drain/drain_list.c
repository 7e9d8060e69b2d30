/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has that must move; see drain.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/drain/drain.h"
#include "ctl/files.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/worker.h"

enum { TIMEOUT_MS = 15000 };

/* One session, and its job. */
struct listed {
	char session[CKT_SESSION_ID_SIZE + 1], job[CKT_JOB_NAME_MAX + 1];
	char program[CKT_NAME_MAX + 1];
	uint32_t owner;
	bool ready; /* it can be asked to move */
};

struct listing {
	struct listed *list;
	size_t count;
};

/* answered: NULL if the server does not tell. */
static bool add(struct listing *listing, const ckt_control_session *session, const bool_t *answered)
{
	/* If its worker does not answer, the command that moves it says so. */
	bool known = !answered || *answered;
	struct listed *more = reallocarray(listing->list, listing->count + 1, sizeof *more);
	if (!more)
		return false;
	listing->list = more;
	struct listed *one = &more[listing->count++];
	*one = (struct listed){.owner = session->uid,
		.ready = !known ||
			(session->state != CKT_STATE_STARTING &&
				session->state != CKT_STATE_ENDING)};
	snprintf(one->session, sizeof one->session, "%s", session->session);
	ckt_ctl_clean(session->program_name, one->program, sizeof one->program);
	return true;
}

static int read_sessions(struct ckt_ctl_server *server, struct listing *listing)
{
	struct ckt_ctl_pages pages = {0};
	bool more = true;
	int status = CKT_EXIT_DONE;
	while (more && status == CKT_EXIT_DONE) {
		ckt_control_list2_res page = {0};
		const ckt_control_list_res *res = &page.list;
		status = ckt_ctl_list(server, pages.after, TIMEOUT_MS, &page);
		for (u_int i = 0; i < res->sessions.sessions_len && status == CKT_EXIT_DONE; i++) {
			if (!add(listing, &res->sessions.sessions_val[i],
				    ckt_ctl_answered(&page, i)))
				status = ckt_ctl_refuse("drain", "out of memory");
		}
		u_int count = res->sessions.sessions_len;
		if (status == CKT_EXIT_DONE)
			status = ckt_ctl_pages_turn(&pages, server, res->more,
				count ? res->sessions.sessions_val[count - 1].session : NULL,
				&more);
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&page);
	}
	return status;
}

static struct listed *find(struct listing *listing, const char *session)
{
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->list[i].session, session) == 0)
			return &listing->list[i];
	return NULL;
}

static int read_jobs(struct ckt_ctl_server *server, struct listing *listing)
{
	struct ckt_ctl_pages pages = {0};
	bool more = true;
	int status = CKT_EXIT_DONE;
	while (more && status == CKT_EXIT_DONE) {
		ckt_control_list_args call = {.after = pages.after};
		ckt_control_jobs_res res = {0};
		status =
			ckt_ctl_call(server, CKT_CONTROL_JOBS, (xdrproc_t)xdr_ckt_control_list_args,
				&call, (xdrproc_t)xdr_ckt_control_jobs_res, &res, TIMEOUT_MS, -1);
		for (u_int i = 0; i < res.sessions.sessions_len && status == CKT_EXIT_DONE; i++) {
			const ckt_control_job *job = &res.sessions.sessions_val[i];
			struct listed *one = find(listing, job->session);
			/* A name that cannot be asked for is none. */
			if (one && ckt_job_name_good(job->job))
				snprintf(one->job, sizeof one->job, "%s", job->job);
		}
		u_int count = res.sessions.sessions_len;
		if (status == CKT_EXIT_DONE)
			status = ckt_ctl_pages_turn(&pages, server, res.more,
				count ? res.sessions.sessions_val[count - 1].session : NULL, &more);
		xdr_free((xdrproc_t)xdr_ckt_control_jobs_res, (char *)&res);
	}
	return status;
}

/* ---- Units */

static unsigned sessions_of_job(const struct listing *listing, const struct listed *one)
{
	unsigned count = 0;
	for (size_t i = 0; *one->job && i < listing->count; i++)
		count += listing->list[i].owner == one->owner &&
			strcmp(listing->list[i].job, one->job) == 0;
	return count;
}

static bool is_known(const struct ckt_ctl_draining *draining, const struct listed *one, bool of_job)
{
	for (size_t i = 0; i < draining->unit_count; i++) {
		const struct ckt_ctl_unit *unit = &draining->units[i];
		if (strcmp(unit->session, one->session) == 0 ||
			(of_job && unit->owner == one->owner && strcmp(unit->job, one->job) == 0))
			return true;
	}
	return false;
}

static int add_unit(
	struct ckt_ctl_draining *draining, const struct listing *listing, const struct listed *one)
{
	unsigned count = sessions_of_job(listing, one);
	if (is_known(draining, one, count > 1))
		return CKT_EXIT_DONE;
	struct ckt_ctl_unit *more =
		reallocarray(draining->units, draining->unit_count + 1, sizeof *more);
	if (!more)
		return ckt_ctl_refuse("drain", "out of memory");
	draining->units = more;
	struct ckt_ctl_unit *unit = &more[draining->unit_count++];
	*unit = (struct ckt_ctl_unit){
		.owner = one->owner, .sessions = count > 1 ? count : 1, .errors_fd = -1};
	strcpy(unit->session, one->session);
	strcpy(unit->program, one->program);
	if (count > 1)
		strcpy(unit->job, one->job);
	return CKT_EXIT_DONE;
}

int ckt_ctl_drain_list(struct ckt_ctl_draining *draining, unsigned *ret_left)
{
	struct listing listing = {0};
	struct ckt_ctl_server server;
	int status = ckt_ctl_connect(draining->args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = read_sessions(&server, &listing);
	if (status == CKT_EXIT_DONE)
		status = read_jobs(&server, &listing);
	for (size_t i = 0; i < listing.count && status == CKT_EXIT_DONE; i++)
		if (listing.list[i].ready)
			status = add_unit(draining, &listing, &listing.list[i]);
	for (size_t i = 0; i < draining->unit_count && status == CKT_EXIT_DONE; i++) {
		struct ckt_ctl_unit *unit = &draining->units[i];
		if (unit->state == CKT_UNIT_STAYS && !find(&listing, unit->session))
			unit->state = CKT_UNIT_ENDED;
	}
	*ret_left = (unsigned)listing.count;
	free(listing.list);
	ckt_ctl_disconnect(&server);
	return status;
}
