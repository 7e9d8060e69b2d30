/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers whose certificate comes from no known authority, and the keys that they showed first: the
 * file ~/.config/cricket/known_servers (below XDG_CONFIG_HOME if that is set), one line a server:
 *
 *	gpunode SHA256:uN3v... 2026-11-28
 *
 * What is known passes, another key of a known server is refused, and CRICKET_TLS_FIRST says what
 * happens to a server that is not known:
 *
 *	ask (default)	a question on the terminal; without a terminal it is refused
 *	accept		it is remembered and passes
 *	refuse		it is refused
 *
 * A server is known by the name or address by which the client looks for it, whatever the port.
 *
 * Errors: 0 or -errno with a sentence; -EACCES: the server is not to be trusted.
 * Threading: any.  Processes and threads that ask at one time wait for each other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rpc/fingerprint.h"

enum { CKT_KNOWN_SERVER_MAX = 255, CKT_KNOWN_SERVERS_PATH = 4096 };

enum ckt_known_server { CKT_KNOWN_NOT, CKT_KNOWN_SAME, CKT_KNOWN_OTHER };

/* The path of a file of Cricket's in the user's configuration.  -ENOENT: no home; -ENAMETOOLONG. */
int ckt_known_servers_configuration(const char *name, char *ret_path, size_t path_size);
/* ret_kept: the fingerprint that is known; only with CKT_KNOWN_OTHER and CKT_KNOWN_SAME. */
int ckt_known_servers_look(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	enum ckt_known_server *ret_known, uint8_t ret_kept[CKT_FINGERPRINT_SIZE], char *ret_message,
	size_t message_size);
/* Remembers it instead of what was known.  The file is replaced at once. */
int ckt_known_servers_keep(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	char *ret_message, size_t message_size);
/*
 * Whether to go on with a server, as said above; may wait up to two minutes for the user.  Its type
 * is that of ckt_tls_unknown_authority; the certificate itself is not looked at.
 */
int ckt_known_servers_decide(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	const uint8_t *certificate, size_t certificate_size, char *ret_message,
	size_t message_size);
