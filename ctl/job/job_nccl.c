/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators of NCCL among the sessions of a job; see job.h.
 *
 * Which there are is in the images, as the calls that a restore makes again.  An identity is what
 * all ranks of a communicator agree on, and stays; the unique id serves once, so a restore needs a
 * new one of which all ranks are told.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/format/store.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/ipc.h"
#include "rpc/library_step.h"
#include "rpc/session.h"

enum { ANSWER_MS = 90000, MEMBERS_MAX = 1 << 20, NEEDS_MAX = 4096 };

/* ---- Reading */

static bool is_communicator(const ckt_image *image, const ckt_image_library_step *step)
{
	return step->kind == CKT_LIB_CREATE && step->life != CKT_LIB_PAST &&
		step->proc == CKT_NCCL_COMM_PROC &&
		step->library < image->libraries.libraries_len &&
		image->libraries.libraries_val[step->library].number == CKT_LIB_NCCL;
}

static int add(struct ckt_ctl_members *members, const struct ckt_nccl_member *member,
	unsigned session, size_t *room)
{
	if (members->count == *room) {
		size_t more = *room + *room / 2 + 64;
		struct ckt_ctl_member *list = members->count < MEMBERS_MAX
			? reallocarray(members->list, more, sizeof *list)
			: NULL;
		if (!list)
			return -ENOMEM;
		members->list = list;
		*room = more;
	}
	members->list[members->count++] =
		(struct ckt_ctl_member){.nccl = *member, .session = session};
	return 0;
}

/* Each owner once. */
static int add_needs(struct ckt_ctl_members *members, const ckt_image *image, unsigned session)
{
	for (u_int i = 0; i < image->shared_imports.shared_imports_len; i++) {
		struct ckt_ipc_handle handle;
		struct ckt_ctl_need need = {.session = session};
		bool known = false;
		memcpy(&handle, image->shared_imports.shared_imports_val[i].handle, sizeof handle);
		memcpy(need.owner, handle.session, sizeof handle.session);
		for (size_t k = members->need_count;
			k > 0 && members->needs[k - 1].session == session && !known; k--)
			known = strcmp(members->needs[k - 1].owner, need.owner) == 0;
		if (known)
			continue;
		struct ckt_ctl_need *list = members->need_count < NEEDS_MAX
			? reallocarray(members->needs, members->need_count + 1, sizeof *list)
			: NULL;
		if (!list)
			return -ENOMEM;
		members->needs = list;
		members->needs[members->need_count++] = need;
	}
	return 0;
}

int ckt_ctl_members_read(struct ckt_ctl_members *members, int dir_fd, unsigned session,
	char *ret_message, size_t message_size)
{
	ckt_image image = {0};
	struct ckt_nccl_member member;
	size_t room = members->count;
	int error = ckt_image_read(dir_fd, &image, ret_message, message_size);
	if (error)
		return error;
	for (u_int i = 0; i < image.library_steps.library_steps_len && !error; i++) {
		const ckt_image_library_step *step = &image.library_steps.library_steps_val[i];
		/* Communicators whose creation failed need no recreation. */
		if (is_communicator(&image, step) &&
			ckt_nccl_member_read(
				(const uint8_t *)step->args.args_val, step->args.args_len, &member))
			error = add(members, &member, session, &room);
	}
	if (!error)
		error = add_needs(members, &image, session);
	if (error)
		snprintf(ret_message, message_size, "no memory for the list of its communicators");
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return error;
}

void ckt_ctl_members_free(struct ckt_ctl_members *members)
{
	free(members->list);
	free(members->needs);
	*members = (struct ckt_ctl_members){0};
}

/* ---- Checking */

static int by_communicator(const void *a, const void *b)
{
	const struct ckt_ctl_member *x = a, *y = b;
	int order = memcmp(x->nccl.identity, y->nccl.identity, CKT_NCCL_ID_BYTES);
	if (order)
		return order;
	return x->nccl.rank != y->nccl.rank ? (x->nccl.rank < y->nccl.rank ? -1 : 1) : 0;
}

/* The end of the ranks of the communicator that begins there. */
static size_t end_of(const struct ckt_ctl_members *members, size_t first)
{
	size_t end = first + 1;
	while (end < members->count &&
		!memcmp(members->list[end].nccl.identity, members->list[first].nccl.identity,
			CKT_NCCL_ID_BYTES))
		end++;
	return end;
}

static int refuse_missing(
	const struct ckt_ctl_member *one, int rank, const char *job, const char *const *sessions)
{
	char message[700];
	snprintf(message, sizeof message,
		"session %s is rank %d of an NCCL communicator with %d ranks, but no "
		"session of the job is rank %d, so the communicator could not be "
		"recreated: start all ranks with CRICKET_JOB=%s and name the servers "
		"of all, or try again if a rank is just ending",
		sessions[one->session], one->nccl.rank, one->nccl.ranks, rank, job);
	return ckt_ctl_refuse(job, message);
}

static int check_one(struct ckt_ctl_members *members, size_t first, size_t end, const char *job,
	const char *const *sessions)
{
	struct ckt_ctl_member *list = members->list;
	char message[300];
	for (size_t i = first; i < end; i++) {
		int wanted = (int)(i - first);
		bool twice = i > first && list[i].nccl.rank == list[i - 1].nccl.rank;
		if (twice || list[i].nccl.ranks != list[first].nccl.ranks) {
			snprintf(message, sizeof message,
				"the images of sessions %s and %s do not match: an "
				"NCCL communicator %s; restore the images of one "
				"checkpoint",
				sessions[list[first].session], sessions[list[i].session],
				twice ? "has two members with one rank"
				      : "has different numbers of ranks");
			return ckt_ctl_refuse(job, message);
		}
		if (list[i].nccl.rank != wanted)
			return refuse_missing(&list[i], wanted, job, sessions);
		list[first].shared |= list[i].session != list[first].session;
	}
	if ((size_t)list[first].nccl.ranks != end - first)
		return refuse_missing(&list[first], (int)(end - first), job, sessions);
	for (size_t i = first; i < end; i++)
		list[i].shared = list[first].shared;
	return CKT_EXIT_DONE;
}

int ckt_ctl_members_check(
	struct ckt_ctl_members *members, const char *job, const char *const *sessions)
{
	int status = CKT_EXIT_DONE;
	if (members->count)
		qsort(members->list, members->count, sizeof *members->list, by_communicator);
	for (size_t i = 0, end; i < members->count && status == CKT_EXIT_DONE; i = end) {
		end = end_of(members, i);
		status = check_one(members, i, end, job, sessions);
	}
	return status;
}

bool ckt_ctl_members_shared(const struct ckt_ctl_members *members)
{
	for (size_t i = 0; i < members->count; i++)
		if (members->list[i].shared)
			return true;
	return members->need_count > 0;
}

int ckt_ctl_members_place(const struct ckt_ctl_members *members, const char *job,
	const char *const *sessions, const char *const *servers, unsigned count)
{
	char message[512], clean[CKT_MESSAGE_MAX + 1];
	for (size_t i = 0; i < members->need_count; i++) {
		const struct ckt_ctl_need *need = &members->needs[i];
		const char *here = servers[need->session];
		unsigned owner = 0;
		while (owner < count && strcmp(sessions[owner], need->owner) != 0)
			owner++;
		if (owner == count)
			snprintf(message, sizeof message,
				"session %.12s had opened memory or events of session "
				"%.64s, which the job's images do not include",
				sessions[need->session],
				ckt_ctl_clean(need->owner, clean, sizeof clean));
		else if (here && servers[owner] && strcmp(here, servers[owner]) != 0)
			snprintf(message, sizeof message,
				"sessions %.12s and %.12s share memory or events, "
				"which works within one host only, but %.100s and "
				"%.100s are two servers: place both sessions at one "
				"server with --place",
				sessions[need->session], sessions[owner], here, servers[owner]);
		else
			continue;
		return ckt_ctl_refuse(job, message);
	}
	return CKT_EXIT_DONE;
}

/* ---- New ids */

/* Calls a server about communicators of a copy; `result` lies in ret_answer. */
static int ask(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *call,
	xdrproc_t xdr_answer, void *ret_answer, const ckt_control_result *result)
{
	int status =
		ckt_ctl_call(server, proc, xdr_args, call, xdr_answer, ret_answer, ANSWER_MS, -1);
	return status == CKT_EXIT_DONE ? ckt_ctl_result(result) : status;
}

static int make_some(struct ckt_ctl_member *const *roots, unsigned count,
	struct ckt_ctl_server *server, const char *copy)
{
	ckt_control_nccl_make_args call = {.copy = (char *)copy, .count = count};
	ckt_control_nccl_make_res res = {0};
	int status = ask(server, CKT_CONTROL_NCCL_MAKE, (xdrproc_t)xdr_ckt_control_nccl_make_args,
		&call, (xdrproc_t)xdr_ckt_control_nccl_make_res, &res, &res.result);
	if (status == CKT_EXIT_DONE && res.ids.ids_len != count)
		status = ckt_ctl_refuse(server->address,
			"returned another number of IDs for communicators than "
			"requested");
	for (unsigned i = 0; i < count && status == CKT_EXIT_DONE; i++)
		memcpy(roots[i]->id, res.ids.ids_val[i].id, CKT_NCCL_ID_BYTES);
	xdr_free((xdrproc_t)xdr_ckt_control_nccl_make_res, (char *)&res);
	return status;
}

/* The next communicators after *at whose rank 0 is that session. */
static unsigned next_roots(struct ckt_ctl_members *members, unsigned session, size_t *at,
	struct ckt_ctl_member **roots)
{
	unsigned count = 0;
	for (; *at < members->count && count < CKT_CONTROL_NCCL_IDS_MAX; ++*at) {
		struct ckt_ctl_member *one = &members->list[*at];
		if (one->shared && !one->nccl.rank && one->session == session)
			roots[count++] = one;
	}
	return count;
}

int ckt_ctl_members_make(struct ckt_ctl_members *members, struct ckt_ctl_server *const *servers,
	const char *const *copies)
{
	struct ckt_ctl_member *roots[CKT_CONTROL_NCCL_IDS_MAX];
	unsigned sessions = 0, count;
	int status = CKT_EXIT_DONE;
	for (size_t i = 0; i < members->count; i++)
		sessions = members->list[i].session >= sessions ? members->list[i].session + 1
								: sessions;
	for (unsigned s = 0; s < sessions; s++)
		for (size_t at = 0;
			status == CKT_EXIT_DONE && (count = next_roots(members, s, &at, roots));)
			status = make_some(roots, count, servers[s], copies[s]);
	/* The first of each is its rank 0. */
	for (size_t i = 1; i < members->count && status == CKT_EXIT_DONE; i++)
		if (members->list[i].nccl.rank)
			memcpy(members->list[i].id, members->list[i - 1].id, CKT_NCCL_ID_BYTES);
	return status;
}

static int tell_some(struct ckt_ctl_server *server, const char *copy, ckt_control_nccl_pair *pairs,
	unsigned count)
{
	ckt_control_nccl_ids_args call = {.copy = (char *)copy, .pairs = {count, pairs}};
	ckt_control_result result = {0};
	int status = ask(server, CKT_CONTROL_NCCL_IDS, (xdrproc_t)xdr_ckt_control_nccl_ids_args,
		&call, (xdrproc_t)xdr_ckt_control_result, &result, &result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

int ckt_ctl_members_tell(const struct ckt_ctl_members *members, struct ckt_ctl_server *server,
	const char *copy, unsigned session)
{
	ckt_control_nccl_pair pairs[CKT_CONTROL_NCCL_IDS_MAX];
	unsigned count = 0;
	int status = CKT_EXIT_DONE;
	for (size_t i = 0; i < members->count && status == CKT_EXIT_DONE; i++) {
		const struct ckt_ctl_member *one = &members->list[i];
		if (!one->shared || one->session != session)
			continue;
		memcpy(pairs[count].identity, one->nccl.identity, CKT_NCCL_ID_BYTES);
		memcpy(pairs[count++].id, one->id, CKT_NCCL_ID_BYTES);
		if (count < CKT_CONTROL_NCCL_IDS_MAX)
			continue;
		status = tell_some(server, copy, pairs, count);
		count = 0;
	}
	return status == CKT_EXIT_DONE && count ? tell_some(server, copy, pairs, count) : status;
}
