/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 as a transport, by OpenSSL; see transport.h.  rpc/secure.h begins it (RFC 9289).
 *
 *	owner of the transport  --read, write-->  struct ckt_tls (its lock)  --records-->  TCP socket
 *
 * Both sides check each other's certificate against the authority of `ca`.  A client checks the
 * server's name, too.  A server with `ca` demands a certificate of its clients; without it, it takes
 * any client.  The protocol is TLS 1.3 with ALPN "sunrpc", without tickets and early data.
 *
 * A stream that ends without the peer's close_notify was cut: read returns -ECONNRESET in both cases,
 * as all transports do, and ckt_tls_ended says which one it was.
 *
 * Errors: 0 or -errno, with a sentence in ret_message: -EACCES: the peer is not who it must be, or
 * this side is not who the peer accepts; -EINVAL: a file; -EPROTO: not TLS; -ETIMEDOUT.
 *
 * Threading: contexts may be shared by threads; a transport as in transport.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/transport.h"

#define CKT_TLS_ALPN "sunrpc"
#define CKT_TLS_EXPORTER_LABEL "EXPORTER-cricket-hello"

enum {
	CKT_TLS_EXPORTER_SIZE = 32,
	CKT_TLS_FINGERPRINT_SIZE = 32,  /* SHA-256 of a certificate's SubjectPublicKeyInfo */
	CKT_TLS_CERTIFICATE_MAX = 8192, /* bytes of a peer's certificate (DER) that are kept */
};

/* Paths of PEM files; NULL: none.  The strings are the caller's. */
struct ckt_tls_settings {
	const char *certificate; /* the own one, then its chain */
	const char *key;
	const char *ca;  /* authorities that the peer's certificate must come from */
	const char *crl; /* what they revoked */
};

struct ckt_tls_context;

/* Reads the files.  The caller frees *ret_context; transports that use it may outlive it. */
int ckt_tls_context_make(const struct ckt_tls_settings *settings, bool server,
	struct ckt_tls_context **ret_context, char *ret_message, size_t message_size);
void ckt_tls_context_free(struct ckt_tls_context *context);

/*
 * The handshake on an open socket transport, which becomes the TLS transport on success and stays
 * what it is on failure.  server: the name or numeric address that the server's certificate must
 * have.  deadline_ms: CLOCK_MONOTONIC milliseconds.  A client without `ca` asks
 * ckt_tls_unknown_authority.
 */
int ckt_tls_connect(struct ckt_transport *t, struct ckt_tls_context *context, const char *server,
	int64_t deadline_ms, char *ret_message, size_t message_size);
int ckt_tls_accept(struct ckt_transport *t, struct ckt_tls_context *context, int64_t deadline_ms,
	char *ret_message, size_t message_size);
/* The same with a context for this one connection. */
int ckt_tls_client(struct ckt_transport *t, const struct ckt_tls_settings *settings,
	const char *server, int64_t deadline_ms, char *ret_message, size_t message_size);

/*
 * Asked by a client that has no authority, after the handshake: whether the server of that name may
 * have this certificate.  0: go on; -errno with a sentence: no.  NULL: no.  Set before the first
 * connection.
 */
extern int (*ckt_tls_unknown_authority)(const char *server,
	const uint8_t fingerprint[CKT_TLS_FINGERPRINT_SIZE], const uint8_t *certificate,
	size_t certificate_size, char *ret_message, size_t message_size);

/* ---- Of a TLS transport */
bool ckt_transport_is_tls(const struct ckt_transport *t);
/*
 * The peer's certificate (DER); malloc'd, the caller's.  0, -ENOENT: it showed none, or -ENOMEM.
 */
int ckt_tls_peer_certificate(
	const struct ckt_transport *t, uint8_t **ret_certificate, size_t *ret_size);
int ckt_tls_peer_fingerprint(
	const struct ckt_transport *t, uint8_t ret_fingerprint[CKT_TLS_FINGERPRINT_SIZE]);
/* The same of a certificate (DER). -EINVAL: it is none. */
int ckt_tls_fingerprint(const uint8_t *certificate, size_t certificate_size,
	uint8_t ret_fingerprint[CKT_TLS_FINGERPRINT_SIZE]);
/* What only the two ends of this channel know: label CKT_TLS_EXPORTER_LABEL, no context. */
int ckt_tls_exporter(const struct ckt_transport *t, uint8_t ret_exporter[CKT_TLS_EXPORTER_SIZE]);
/* Whether the peer said that its stream ends. */
bool ckt_tls_ended(struct ckt_transport *t);
/*
 * As ckt_transport_finish, which waits for it up to two seconds: 0, or -EAGAIN: the socket takes nothing
 * now, try again when it does.
 */
int ckt_tls_say_end(struct ckt_transport *t);
/* What broke the channel, in words, such as the peer's alert; empty: nothing did. */
void ckt_tls_failure(struct ckt_transport *t, char *ret_text, size_t text_size);
