/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a server for its key; see certificate_trust.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/certificate/certificate_trust.h"
#include "rpc/net.h"
#include "rpc/secure.h"

enum { CONNECT_MS = 5000, GREETING_MS = 10000 };

static struct {
	bool done;
	uint8_t fingerprint[CKT_FINGERPRINT_SIZE];
} seen;

/* As ckt_tls_unknown_authority: whoever it is, its key is looked at, and nothing more is said. */
static int look(const char *server, const uint8_t fingerprint[CKT_TLS_FINGERPRINT_SIZE],
	const uint8_t *certificate, size_t certificate_size, char *ret_message, size_t message_size)
{
	(void)server, (void)certificate, (void)certificate_size;
	snprintf(ret_message, message_size, "seen");
	memcpy(seen.fingerprint, fingerprint, sizeof seen.fingerprint);
	seen.done = true;
	return -EACCES;
}

static int connect_to(const char *text, int *ret_fd, char *ret_message, size_t message_size)
{
	struct ckt_address address;
	int result = ckt_address_parse(text, &address, ret_message, message_size);
	if (!result && address.type != CKT_ADDRESS_TCP) {
		snprintf(ret_message, message_size,
			"%s: only a server over TCP has a key; write HOST or HOST:PORT", text);
		result = -EINVAL;
	}
	return result ? result
		      : ckt_net_connect(&address, CONNECT_MS, ret_fd, ret_message, message_size);
}

int ckt_ctl_ask_fingerprint_by_tls(const char *address,
	uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE], char *ret_message, size_t message_size)
{
	struct ckt_tls_settings settings;
	ckt_greeting greeting = {0};
	char name[CKT_SECURE_NAME_MAX];
	int fd = -1;
	ckt_secure_settings(&settings);
	if (settings.ca) {
		snprintf(ret_message, message_size,
			"this user has an authority, %s, which says who a server is; nothing needs to be trusted",
			settings.ca);
		return -EEXIST;
	}
	int result = connect_to(address, &fd, ret_message, message_size);
	if (result)
		return result;
	ckt_secure_server_name(address, name);
	ckt_tls_unknown_authority = look;
	struct ckt_transport t;
	ckt_transport_init_socket(&t, fd);
	result = ckt_secure_greeting(
		&t, name, ckt_net_now_ms() + GREETING_MS, &greeting, ret_message, message_size);
	ckt_tls_unknown_authority = NULL;
	ckt_transport_close(&t);
	if (!result) {
		xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
		snprintf(ret_message, message_size,
			"%s: it offers no TLS; start it with --tls-certificate and --tls-key",
			address);
	}
	if (!seen.done)
		return result ? result : -EPROTO;
	memcpy(ret_fingerprint, seen.fingerprint, CKT_FINGERPRINT_SIZE);
	return 0;
}
