/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greeting as every kind of client reads it, and TLS after it.
 *
 *	the client has	the server offers TLS		it does not
 *	an authority	TLS				an error: somebody may have removed the offer
 *	none		TLS, if its key is known or	in the clear, as without TLS; an error
 *			accepted (known_servers.h)	if its key is known
 *
 * A UNIX socket has no TLS: the kernel knows both ends.
 *
 * The files are CRICKET_TLS_CERTIFICATE, CRICKET_TLS_KEY and CRICKET_TLS_CA, by default cert.pem,
 * key.pem and ca.pem in ~/.config/cricket/tls, where they exist.  crl.pem beside the authority's file
 * is read, too.  The environment is read once; the files are read for each connection.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"
#include "rpc/transport/tls.h"
#include "rpc/transport/transport.h"

enum { CKT_SECURE_NAME_MAX = 256 };

/* What the environment says; the strings stay. */
void ckt_secure_settings(struct ckt_tls_settings *ret_settings);
/* The host of an address, also of one that a file holds; empty: a UNIX socket, or no address. */
void ckt_secure_server_name(const char *address_text, char ret_name[CKT_SECURE_NAME_MAX]);
/*
 * Reads the greeting on a new connection, which *t is, and begins TLS: then *t is a TLS transport,
 * and the nonce is bound to the channel.  server: see above, not NULL over TCP.  xdr_free() the
 * greeting on success.  0 or -errno; -EACCES and -EINVAL with a sentence in ret_message.
 */
int ckt_secure_greeting(struct ckt_transport *t, const char *server, int64_t deadline_ms,
	ckt_greeting *ret_greeting, char *ret_message, size_t message_size);
/*
 * The same for a caller that needs a descriptor: with TLS *fd becomes the plain end of a relay in a
 * thread (rpc/transport/tls_relay.h), or -1 after an error.
 */
int ckt_secure_greeting_fd(int *fd, const char *server, int64_t deadline_ms,
	ckt_greeting *ret_greeting, char *ret_message, size_t message_size);
