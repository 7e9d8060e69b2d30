/* SPDX-License-Identifier: Apache-2.0 */
/* What a new session is to be, from its spec; see session_parts.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session_marks.h"

/* Copies what is listed of a session; without memory it stays as it was. */
static void replace(char **text, const char *by)
{
	char *new = strdup(by ? by : "");
	if (!new)
		return;
	free(*text);
	*text = new;
}

/* Random, or the secret's next ID. */
static int make_id(
	struct ckt_server *server, const uint8_t *secret_hash, char ret_id[CKT_SESSION_ID_SIZE + 1])
{
	uint8_t bytes[CKT_SESSION_ID_SIZE / 2];
	for (unsigned i = 0; secret_hash && i < CKT_SESSION_ID_TRIES; i++) {
		ckt_server_key_session_id(secret_hash, i, ret_id);
		if (!ckt_session_find(server, ret_id) && !ckt_session_mark_exists(server, ret_id))
			return 0;
	}
	if (secret_hash)
		return -EADDRINUSE;
	do {
		if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
			return -EIO;
		for (size_t i = 0; i < sizeof bytes; i++)
			snprintf(ret_id + 2 * i, 3, "%02x", bytes[i]);
	} while (ckt_session_find(server, ret_id));
	return 0;
}

/* Belongs to the session and the process from here on: the caller's wishes. */
static void take_spec(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	struct ckt_share share;
	session->uid = spec->uid;
	session->identity = spec->identity;
	session->claimant = spec->claimant;
	session->proven = spec->hello != NULL;
	session->generation = spec->afresh ? spec->hello->generation + 1 : 1;
	session->restore = spec->image_fd >= 0 || spec->kept;
	session->chain = spec->chain;
	if (spec->chain)
		spec->chain->session = session;
	session->child = true;
	session->gpu = spec->gpu;
	if (spec->hello)
		ckt_daemon_job_of_hello(spec->hello, session->job);
	snprintf(session->container, sizeof session->container, "%s",
		spec->container ? spec->container : "");
	ckt_session_ask_share(session, &share);
	session->status.gpu = spec->gpu >= 0 ? spec->gpu : share.gpu_count ? (int)share.gpus[0] : 0;
}

/* What the client says about itself.  0, or as ckt_session_narrow() with the reason. */
static int take_hello(struct ckt_session *session, const ckt_hello_args *hello, char *ret_message,
	size_t message_size)
{
	int result = ckt_session_narrow(session, hello);
	if (result) {
		snprintf(ret_message, message_size,
			result == -ENODEV ? "CUDA_VISIBLE_DEVICES leaves none of the GPUs of %s"
					  : "CUDA_VISIBLE_DEVICES names a GPU of %s twice",
			session->server->host);
		return result;
	}
	if (session->visible_count)
		session->status.gpu = (int)session->visible[0];
	session->asks_for_images = ckt_automatic_is_asked(hello);
	replace(&session->status.program_name, hello->program_name);
	replace(&session->status.client, hello->host);
	session->status.client_pid = hello->pid;
	return 0;
}

int ckt_session_from_spec(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	char id[CKT_SESSION_ID_SIZE + 1] = "";
	uint8_t secret_hash[CKT_SECRET_HASH_SIZE] = {0};
	if (spec->hello)
		ckt_auth_hash(spec->hello->secret, CKT_SECRET_SIZE, secret_hash);
	if (spec->afresh)
		snprintf(id, sizeof id, "%s", spec->hello->session);
	int result = spec->afresh ? 0 : make_id(server, spec->hello ? secret_hash : NULL, id);
	if (result == -EADDRINUSE) {
		snprintf(ret_message, message_size,
			"%d sessions already have this client's secret: choose another "
			"one",
			CKT_SESSION_ID_TRIES);
		return result;
	}
	struct ckt_session *session = result ? NULL : ckt_session_new(server, id);
	if (!session) {
		if (spec->chain)
			ckt_automatic_leave(spec->chain);
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	memcpy(session->secret_hash, secret_hash, sizeof secret_hash);
	take_spec(session, spec);
	result = spec->hello ? take_hello(session, spec->hello, ret_message, message_size) : 0;
	if (result)
		ckt_session_free(session, false);
	else
		*ret_session = session;
	return result;
}
