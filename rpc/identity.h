/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is the peer of a connection: the shared token, and the user behind a UNIX socket.  Errors: 0
 * or -errno, the cause and the remedy in ret_message.  Threading: no shared state. (Not auth.h:
 * libtirpc has a <rpc/auth.h>.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CKT_TOKEN_MIN =
		16, /* an attacker can guess shorter tokens off line from one recorded hello */
	CKT_TOKEN_MAX = 1024,
	CKT_AUTH_NONCE_SIZE = 32,
	CKT_AUTH_HMAC_SIZE = 32,
	CKT_AUTH_HASH_SIZE = 32,
};

#define CKT_UID_UNKNOWN 0xffffffffu

struct ckt_token {
	uint8_t bytes[CKT_TOKEN_MAX];
	size_t size_bytes; /* 0: there is none */
};

/*
 * The file's contents without trailing white space.  Refuses a file that others than owner and
 * group may read or write.
 */
int ckt_auth_token_load(
	const char *path, struct ckt_token *ret_token, char *ret_message, size_t message_size);
/* HMAC-SHA256(token, nonce || args). */
void ckt_auth_hmac(const struct ckt_token *token, const uint8_t nonce[CKT_AUTH_NONCE_SIZE],
	const void *args, size_t args_bytes, uint8_t ret_hmac[CKT_AUTH_HMAC_SIZE]);
/* SHA-256: the server keeps this hash of a session's secret. */
void ckt_auth_hash(const void *data, size_t size_bytes, uint8_t ret_hash[CKT_AUTH_HASH_SIZE]);
/* Compares in constant time. */
bool ckt_auth_equal(const void *a, const void *b, size_t size_bytes);

struct ckt_auth_peer {
	enum { CKT_PEER_UNIX, CKT_PEER_LOOPBACK, CKT_PEER_REMOTE } kind;
	uint32_t uid;        /* UNIX only; CKT_UID_UNKNOWN otherwise */
	int pid;             /* UNIX only; 0 otherwise */
	uint8_t address[16]; /* TCP only: IPv6, or IPv4 as ::ffff:a.b.c.d; zero otherwise */
	char text[128];      /* for listings: "local" or a numeric address */
};

/*
 * Asks the kernel about a connected socket.  A TCP peer never has a uid, not even on this host: it
 * may be a forwarder.
 */
int ckt_auth_peer_get(int fd, struct ckt_auth_peer *ret_peer);
/* Whether the address is ::ffff:a.b.c.d. */
bool ckt_auth_address_is_v4(const uint8_t address[16]);

/*
 * The default path of this user's UNIX socket: /run/cricket/socket for root, else
 * $XDG_RUNTIME_DIR/cricket/socket, else /tmp/cricket-UID/socket in a directory that must belong to
 * the user.
 */
int ckt_local_socket_path(char *ret_path, size_t path_size, char *ret_message, size_t message_size);
