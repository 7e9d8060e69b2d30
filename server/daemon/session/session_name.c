/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is called and whose it is; see session_parts.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/module_cache.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/restore_claim.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session_marks.h"

static void ignore_answer(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_warning("session %s: its worker does not accept its owner: %s", session->id,
			strerror(-error));
}

/* For images, which people look into. */
static int tell_owner_name(struct ckt_session *session)
{
	char name[CKT_OWNER_NAME_SIZE];
	ckt_owner_text(session->server, session->uid, name);
	struct ckt_worker_owner_name_args args = {
		.name = name, .project = (char *)ckt_tokens_project(session->server, session->uid)};
	return ckt_session_call(session, CKT_WORKER_OWNER_NAME,
		(xdrproc_t)xdr_ckt_worker_owner_name_args, &args, -1, NULL, 0,
		CKT_SESSION_CALL_TIMEOUT_MS, ignore_answer, NULL);
}

int ckt_session_tell_owner(struct ckt_session *session)
{
	struct ckt_worker_owner_args args = {.uid = session->uid};
	ckt_owner_file_write(session);
	/* An ID that only an image named must not come back with our seal. */
	if (session->proven)
		ckt_server_key_seal(session->server, session->id, session->uid,
			session->secret_hash, session->generation, &args);
	int result =
		ckt_session_call(session, CKT_WORKER_OWNER, (xdrproc_t)xdr_ckt_worker_owner_args,
			&args, -1, NULL, 0, CKT_SESSION_CALL_TIMEOUT_MS, ignore_answer, NULL);
	/* A worker that an earlier server started may not know these calls. */
	if (!result && session->child)
		result = tell_owner_name(session);
	if (!result && session->child)
		result = ckt_module_cache_open(session);
	return result;
}

void ckt_session_remove_marks(struct ckt_session *session)
{
	static const enum ckt_session_mark marks[] = {CKT_MARK_PARKED, CKT_MARK_MOVED};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		bool any = session->claimant.for_others ||
			(session->proven &&
				!ckt_session_mark_is_proven(
					session->server, session->id, marks[i]));
		ckt_session_mark_remove(
			session->server, session->id, marks[i], any ? 0 : session->uid);
	}
}

static int take_name(struct ckt_session *session, const char *id)
{
	char old_path[CKT_PATH_MAX], new_path[CKT_PATH_MAX];
	ckt_session_path(session, old_path);
	ckt_session_take_out(session);
	ckt_owner_file_remove(session->server, session->id);
	snprintf(session->id, sizeof session->id, "%s", id);
	ckt_session_insert(session);
	ckt_session_path(session, new_path);
	ckt_owner_file_write(session);
	return rename(old_path, new_path) ? -errno : 0;
}

void ckt_session_inherit_name(struct ckt_server *server, const char *id)
{
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		if (strcmp(session->successor_of, id) != 0)
			continue;
		session->successor_of[0] = 0;
		ckt_info("session %s: continues as worker %d", id, (int)session->pid);
		if (take_name(session, id))
			ckt_session_kill(session, "cannot rename its socket");
		ckt_session_tell_owner(session);
		ckt_session_remove_marks(session);
		ckt_automatic_begin(session);
		return;
	}
}

void ckt_session_restored_named(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_origin_res *origin = result;
	struct ckt_session *other = NULL;
	char message[CKT_MESSAGE_MAX];
	bool end = false;
	(void)context;
	if (session->phase != CKT_SESSION_STARTING)
		return;
	if (error || strlen(origin->session) != CKT_SESSION_ID_SIZE ||
		strspn(origin->session, "0123456789abcdef") != CKT_SESSION_ID_SIZE) {
		ckt_session_refuse(session, error ? error : -EPROTO,
			"the restored worker does not name its session");
		return;
	}
	/* Another session's worker may have written it. */
	if (*session->bond.session && strcmp(session->bond.session, origin->session) != 0) {
		ckt_session_refuse(session, -EBADMSG,
			"the image names another session than the one that its key vouches for");
		return;
	}
	memcpy(session->secret_hash, origin->secret_hash, sizeof session->secret_hash);
	session->generation = origin->generation + 1;
	if (session->chain && session->generation < session->chain->state.generation)
		session->generation = session->chain->state.generation;
	if (!ckt_automatic_fits(session, origin, message)) {
		ckt_session_refuse(session, -EBADMSG, message);
		return;
	}
	int claim = ckt_claim_check(session, origin, &other, &end, message);
	if (claim < 0) {
		session->claim_refused = true;
		ckt_session_refuse(session, claim, message);
		return;
	}
	if (claim) {
		strcpy(session->successor_of, origin->session);
		if (end)
			ckt_session_kill(other,
				session->proven && !other->proven
					? "its id belongs to another session"
					: "a newer state of the session replaces it");
	} else if (strcmp(origin->session, session->id) != 0 &&
		take_name(session, origin->session)) {
		ckt_session_refuse(session, -EIO, "cannot rename the session's socket");
		return;
	}
	if (!claim)
		ckt_session_tell_owner(session);
	ckt_session_live(session);
}
