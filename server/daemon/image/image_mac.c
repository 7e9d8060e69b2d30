/* SPDX-License-Identifier: Apache-2.0 */
/* The server's keys for images; see image_mac.h. */
#include "server/daemon/image/image_mac.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/image_key.h"
#include "rpc/control.h"
#include "server/daemon/image/stage.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/server.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

enum { ANSWER_TIMEOUT_MS = 10000 };

_Static_assert((int)CKT_BOND_HASH == CKT_IMAGE_HASH, "a bond is the hash of a manifest");
_Static_assert((int)CKT_CONTROL_MAC_MAX >= CKT_IMAGE_MAC_FILE_MAX, "a call carries a file");

/* ---- Keys */

/* The word names a key that follows from the one that the server has anyway (server_key.h). */
static int add_own(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_image_keys *keys = server->image_keys;
	uint8_t bytes[CKT_SEAL_SIZE];
	if (keys->count == CKT_IMAGE_KEYS_MAX) {
		snprintf(ret_message, message_size, "--image-key: at most %d keys",
			CKT_IMAGE_KEYS_MAX);
		return -E2BIG;
	}
	ckt_server_key_mac(server, "image key", "", 0, bytes);
	ckt_image_key_init(&keys->keys[keys->count++], bytes);
	explicit_bzero(bytes, sizeof bytes);
	return 0;
}

int ckt_image_mac_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const struct ckt_list *list = &server->options.image_key;
	int result = 0;
	if (!list->count)
		return 0;
	server->image_keys = calloc(1, sizeof *server->image_keys);
	if (!server->image_keys)
		return -ENOMEM;
	for (unsigned i = 0; i < list->count && !result; i++)
		result = strcmp(list->items[i], "server-key") == 0
			? add_own(server, ret_message, message_size)
			: ckt_image_keys_add(
				  server->image_keys, list->items[i], ret_message, message_size);
	char text[2 * CKT_IMAGE_KEY_ID + 1];
	if (result)
		return result;
	ckt_image_key_text(server->image_keys->keys[0].id, text);
	ckt_info("images: key %s vouches for what is saved here, and %u key%s for what is restored",
		text, server->image_keys->count, server->image_keys->count == 1 ? "" : "s");
	return 0;
}

void ckt_image_mac_fini(struct ckt_server *server)
{
	if (server->image_keys)
		explicit_bzero(server->image_keys, sizeof *server->image_keys);
	free(server->image_keys);
	server->image_keys = NULL;
}

const char *ckt_image_mac_saved_text(const struct ckt_server *server)
{
	return server->image_keys ? CKT_CONTROL_KEYED : "";
}

/* ---- Images that were written here */

struct ask {
	ckt_image_mac_done done;
	void *context;
	int directory; /* -1: none */
};

static void ask_end(struct ask *ask, const uint8_t *data, size_t size, const char *problem)
{
	ask->done(ask->context, data, size, problem);
	if (ask->directory >= 0)
		close(ask->directory);
	free(ask);
}

static void answered(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ask *ask = context;
	const struct ckt_worker_manifest_res *res = answer;
	const struct ckt_image_keys *keys = session->server->image_keys;
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	struct ckt_image_macs macs = {0};
	ckt_image_mac mac = {
		.session = session->id, .uid = session->uid, .made = (int64_t)time(NULL)};
	if (error || res->status) {
		ask_end(ask, NULL, 0,
			error ? ckt_daemon_request_problem(error)
			      : "its worker does not know that image: another checkpoint may have "
				"come in between");
		return;
	}
	memcpy(mac.manifest, res->hash, sizeof mac.manifest);
	int result = ckt_image_mac_make(&keys->keys[0], &mac);
	if (!result)
		result = ckt_image_macs_add(&macs, &mac);
	if (!result && ask->directory >= 0)
		result = ckt_image_macs_write(ask->directory, &macs);
	int size = result ? result : ckt_image_macs_encode(&macs, data);
	ask_end(ask, data, size > 0 ? (size_t)size : 0, size < 0 ? strerror(-size) : NULL);
}

static int ask_worker(struct ckt_session *session, const char *image, int directory,
	ckt_image_mac_done done, void *context)
{
	struct ckt_worker_manifest_args args = {0};
	struct ask *ask = calloc(1, sizeof *ask);
	if (!ask)
		return -ENOMEM;
	*ask = (struct ask){.done = done, .context = context, .directory = directory};
	memcpy(args.image, image, sizeof args.image);
	int result = ckt_session_call(session, CKT_WORKER_MANIFEST,
		(xdrproc_t)xdr_ckt_worker_manifest_args, &args, -1,
		(xdrproc_t)xdr_ckt_worker_manifest_res, sizeof(struct ckt_worker_manifest_res),
		ANSWER_TIMEOUT_MS, answered, ask);
	if (result)
		free(ask);
	return result;
}

int ckt_image_mac_ask(
	struct ckt_session *session, const char *image, ckt_image_mac_done done, void *context)
{
	return ask_worker(session, image, -1, done, context);
}

int ckt_image_mac_write(struct ckt_session *session, const char *image, int directory,
	ckt_image_mac_done done, void *context)
{
	int fd = fcntl(directory, F_DUPFD_CLOEXEC, 3);
	int result = fd < 0 ? -errno : ask_worker(session, image, fd, done, context);
	if (result && fd >= 0)
		close(fd);
	return result;
}

/* ---- Images that come back */

/* 0: the statement is one of ours, or the server has no key. */
static int check_macs(const struct ckt_server *server, const uint8_t *data, size_t size,
	struct ckt_image_bond *ret_bond, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_image_macs macs = {0};
	const ckt_image_mac *mac;
	if (!server->image_keys)
		return 0;
	if (size && ckt_image_macs_decode(data, size, &macs)) {
		snprintf(buffer, CKT_MESSAGE_MAX,
			"%s is damaged: restore the image from another copy", CKT_IMAGE_MAC_FILE);
		return -EBADMSG;
	}
	int result = ckt_image_macs_check(
		&macs, server->image_keys, NULL, &mac, buffer, CKT_MESSAGE_MAX);
	if (result)
		return result;
	if (ret_bond->set && memcmp(ret_bond->hash, mac->manifest, sizeof ret_bond->hash) != 0) {
		snprintf(buffer, CKT_MESSAGE_MAX,
			"the keys of the caller and of the server vouch for different manifests");
		return -EBADMSG;
	}
	ret_bond->set = ret_bond->keyed = true;
	memcpy(ret_bond->hash, mac->manifest, sizeof ret_bond->hash);
	snprintf(ret_bond->session, sizeof ret_bond->session, "%s", mac->session);
	return 0;
}

bool ckt_image_mac_take(struct ckt_peer *peer, const struct ckt_stage *stage,
	struct ckt_image_bond *ret_bond, char buffer[CKT_MESSAGE_MAX])
{
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	size_t size = 0;
	*ret_bond = peer->bond;
	peer->bond = (struct ckt_image_bond){0};
	if (!peer->server->image_keys || ret_bond->keyed)
		return true;
	if (stage && ckt_image_macs_read(ckt_stage_fd(stage), data, &size, NULL))
		size = 0;
	return check_macs(peer->server, data, size, ret_bond, buffer) == 0;
}

static void reply(struct ckt_peer *peer, const uint8_t *data, size_t size, const char *problem)
{
	ckt_control_image_mac_res res = {.result = {problem ? CKT_CONTROL_REFUSED : CKT_CONTROL_OK,
						 (char *)(problem ? problem : "")},
		.mac = {.mac_len = (u_int)size, .mac_val = (char *)data}};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_image_mac_res, &res);
}

static void made(void *context, const uint8_t *data, size_t size, const char *problem)
{
	struct ckt_peer *peer = context;
	char buffer[CKT_MESSAGE_MAX];
	if (problem)
		snprintf(buffer, sizeof buffer,
			"cannot vouch for the image: %.400s: checkpoint the session again",
			problem);
	if (ckt_peer_release(peer))
		reply(peer, data, size, problem ? buffer : NULL);
}

static void call_made_here(struct ckt_peer *peer, const ckt_control_image_mac_args *args)
{
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	struct ckt_decision decision = {0};
	/* Who holds it has asked already. */
	if (session && session->holder != peer)
		ckt_ask_save(session, peer, false, &decision);
	if (session && decision.answer)
		snprintf(buffer, sizeof buffer, "%s", decision.reason);
	else if (session && !peer->server->image_keys)
		snprintf(buffer, sizeof buffer,
			"this server has no key for images: start it with --image-key");
	if (!session || *buffer) {
		ckt_control_image_mac_res res = {.result = result};
		if (session)
			res.result = (ckt_control_result){CKT_CONTROL_REFUSED, buffer};
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_image_mac_res, &res);
		return;
	}
	int error = ckt_image_mac_ask(session, args->image, made, peer);
	if (error)
		reply(peer, NULL, 0, strerror(-error));
	else
		ckt_peer_hold(peer);
}

void ckt_control_image_mac(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_image_mac_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	struct ckt_image_bond bond = {.set = args->bind};
	(void)passed_fd;
	if (*args->session) {
		call_made_here(peer, args);
		return;
	}
	memcpy(bond.hash, args->hash, sizeof bond.hash);
	peer->bond = (struct ckt_image_bond){0};
	int result = check_macs(
		peer->server, (const uint8_t *)args->mac.mac_val, args->mac.mac_len, &bond, buffer);
	if (!result)
		peer->bond = bond;
	reply(peer, NULL, 0, result ? buffer : NULL);
}
