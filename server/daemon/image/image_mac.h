/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's keys for images (--image-key): it vouches for what its workers write, and restores
 * nothing for which none of its keys vouches.
 *
 *	SAVE -> "keyed" -> IMAGE_MAC session -> worker: MANIFEST -> HMAC here -> manifest-mac
 *	IMAGE_MAC "" -> checked here -> RESTORE2 -> worker: MANIFEST expect, then START
 *
 * The keys stay in this process.  A worker says which manifest it wrote; a worker that lies vouches
 * for a manifest of its own making, under its own session's name, as it could have written it.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_image_keys;
struct ckt_peer;
struct ckt_server;
struct ckt_session;
struct ckt_stage;

enum { CKT_BOND_HASH = 32 };

/* The manifest that a restore must find. */
struct ckt_image_bond {
	bool set;
	bool keyed; /* one of the server's keys vouches for it */
	uint8_t hash[CKT_BOND_HASH];
	/* whose image it is; empty: not known */
	char session[CKT_SESSION_ID_SIZE + 1];
};

/* Reads the key files.  -errno with the reason. */
int ckt_image_mac_init(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_image_mac_fini(struct ckt_server *server);
/* What SAVE answers to cricketctl when it went well. */
const char *ckt_image_mac_saved_text(const struct ckt_server *server);

/*
 * Takes what IMAGE_MAC said of this peer's next restore, or what the stage's manifest-mac says
 * (NULL: there is none).  False with a sentence in buffer if the server has keys, and none vouches.
 */
bool ckt_image_mac_take(struct ckt_peer *peer, const struct ckt_stage *stage,
	struct ckt_image_bond *ret_bond, char buffer[CKT_MESSAGE_MAX]);

/*
 * Asks the session's worker for the hash of that image, and calls done with the statement of the
 * server's first key: its bytes, or 0 bytes and the reason.  0 or -errno; then done is not called.
 */
typedef void (*ckt_image_mac_done)(
	void *context, const uint8_t *data, size_t size, const char *problem);
int ckt_image_mac_ask(
	struct ckt_session *session, const char *image, ckt_image_mac_done done, void *context);
/* The same, into a manifest-mac in that directory, which is duplicated.  done gets no bytes. */
int ckt_image_mac_write(struct ckt_session *session, const char *image, int directory,
	ckt_image_mac_done done, void *context);

/* A call of control.x. */
void ckt_control_image_mac(struct ckt_peer *peer, void *decoded, int *passed_fd);
