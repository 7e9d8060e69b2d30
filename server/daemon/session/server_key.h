/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's key, and what it signs: marks (session_marks.h) and the seals of images.
 *
 * The key is 32 random bytes in a file of mode 0600, made at the first start:
 * $STATE_DIRECTORY/server-key where systemd gives such a directory, else
 * /var/lib/cricket/server-key for root and $XDG_STATE_HOME/cricket/server-key (~/.local/state) for
 * others, and beside the sessions' sockets where none of these can be written.  So the servers of
 * one user on a host have one key.  It never leaves them: workers carry seals and cannot make any.
 *
 * A session's id is a stretched hash of the SHA-256 of its secret.  So only who has the secret, or
 * an image, which holds that SHA-256, can name the session in an image of its own making; a
 * stranger who saw the id would have to try 2^58 hashes.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/worker.h"

struct ckt_server;

enum {
	CKT_KEY_SIZE = 32,
	/*
	 * ids that a secret may have: a client that asks again after a lost reply gets the next one
	 */
	CKT_SESSION_ID_TRIES = 4,
};

/* Reads the key or makes it.  -errno with the reason. */
int ckt_server_key_load(struct ckt_server *server, char *ret_message, size_t message_size);
/* HMAC-SHA256 of the bytes, for one purpose. */
void ckt_server_key_mac(const struct ckt_server *server, const char *purpose, const void *data,
	size_t size, uint8_t ret_mac[CKT_SEAL_SIZE]);

/* attempt < CKT_SESSION_ID_TRIES */
void ckt_server_key_session_id(const uint8_t secret_hash[CKT_SECRET_HASH_SIZE], unsigned attempt,
	char ret_id[CKT_SESSION_ID_SIZE + 1]);
/* Whether it is one of the ids that this secret gives. */
bool ckt_server_key_fits(const char *id, const uint8_t secret_hash[CKT_SECRET_HASH_SIZE]);

/*
 * "This session of this user was here at this generation": goes into the images that its worker
 * writes.
 */
void ckt_server_key_seal(const struct ckt_server *server, const char *session, uint32_t uid,
	const uint8_t secret_hash[CKT_SECRET_HASH_SIZE], uint64_t generation,
	struct ckt_worker_owner_args *ret_owner);
/*
 * 1: the image's seal is ours and right; 0: it has none, or another server's; -EBADMSG: it claims
 * to be ours but is wrong.
 */
int ckt_server_key_seal_check(
	const struct ckt_server *server, const struct ckt_worker_origin_res *origin);
