/* SPDX-License-Identifier: Apache-2.0 */
/* Greeting and TLS of a client; see secure.h. */
#include "rpc/secure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/starttls.h"
#include "rpc/transport/known_servers.h"
#include "rpc/transport/tls_relay.h"

enum { STARTTLS_XID = 7, CAUSE_MAX = 400, PATH_SIZE = 1024 };

static struct {
	char certificate[PATH_SIZE], key[PATH_SIZE], ca[PATH_SIZE], crl[PATH_SIZE];
} paths;

/* Empty: there is none. */
static void find(const char *variable, const char *name, char ret_path[PATH_SIZE])
{
	const char *given = getenv(variable), *config = getenv("XDG_CONFIG_HOME"),
		   *home = getenv("HOME");
	*ret_path = 0;
	if (given && *given) {
		snprintf(ret_path, PATH_SIZE, "%s", given);
		return;
	}
	if (config && *config == '/')
		snprintf(ret_path, PATH_SIZE, "%s/cricket/tls/%s", config, name);
	else if (home && *home == '/')
		snprintf(ret_path, PATH_SIZE, "%s/.config/cricket/tls/%s", home, name);
	if (*ret_path && access(ret_path, F_OK))
		*ret_path = 0;
}

static void find_all(void)
{
	find("CRICKET_TLS_CERTIFICATE", "cert.pem", paths.certificate);
	find("CRICKET_TLS_KEY", "key.pem", paths.key);
	find("CRICKET_TLS_CA", "ca.pem", paths.ca);
	const char *slash = strrchr(paths.ca, '/');
	int length = slash ? (int)(slash - paths.ca) + 1 : 0;
	if (*paths.ca &&
		snprintf(paths.crl, PATH_SIZE, "%.*scrl.pem", length, paths.ca) < PATH_SIZE &&
		access(paths.crl, F_OK))
		*paths.crl = 0;
	/* A test may have set its own. */
	if (!ckt_tls_unknown_authority)
		ckt_tls_unknown_authority = ckt_known_servers_decide;
}

void ckt_secure_settings(struct ckt_tls_settings *ret_settings)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_all);
	*ret_settings = (struct ckt_tls_settings){
		.certificate = *paths.certificate ? paths.certificate : NULL,
		.key = *paths.key ? paths.key : NULL,
		.ca = *paths.ca ? paths.ca : NULL,
		.crl = *paths.crl ? paths.crl : NULL};
}

void ckt_secure_server_name(const char *address_text, char ret_name[CKT_SECURE_NAME_MAX])
{
	struct ckt_address address, from_file;
	char message[CAUSE_MAX];
	*ret_name = 0;
	if (ckt_address_parse(address_text, &address, message, sizeof message))
		return;
	if (address.type == CKT_ADDRESS_FILE) {
		if (ckt_net_read_address_file(address.host, &from_file, message, sizeof message))
			return;
		address = from_file;
	}
	if (address.type == CKT_ADDRESS_TCP)
		snprintf(ret_name, CKT_SECURE_NAME_MAX, "%s",
			*address.host ? address.host : "localhost");
}

/* Whether this client has remembered its key: then it never talks in the clear any more. */
static bool was_secure(const char *server)
{
	const uint8_t none[CKT_FINGERPRINT_SIZE] = {0};
	uint8_t kept[CKT_FINGERPRINT_SIZE];
	enum ckt_known_server known = CKT_KNOWN_NOT;
	char ignored[CAUSE_MAX];
	return !ckt_known_servers_look(server, none, &known, kept, ignored, sizeof ignored) &&
		known != CKT_KNOWN_NOT;
}

static int ask_for_tls(
	struct ckt_transport *t, int64_t deadline_ms, char *ret_message, size_t message_size)
{
	uint8_t call[CKT_STARTTLS_CALL_SIZE], *data;
	size_t size;
	ckt_starttls_call_put(call, STARTTLS_XID);
	int result = ckt_record_write(t, call, sizeof call, deadline_ms, -1);
	if (!result)
		result = ckt_record_read(t, CKT_HELLO_MAX, deadline_ms, &data, &size, NULL);
	if (result) {
		snprintf(ret_message, message_size, "it does not begin TLS: %s", strerror(-result));
		return result;
	}
	if (!ckt_starttls_reply_get(data, size, STARTTLS_XID)) {
		snprintf(ret_message, message_size, "it does not begin TLS, though it offers it");
		result = -EACCES;
	}
	free(data);
	return result;
}

/* The greeting in the channel.  A server that does not accept the client ends it here. */
static int greet_inside(struct ckt_transport *t, int64_t deadline_ms, ckt_greeting *ret_greeting,
	char *ret_message, size_t message_size)
{
	uint8_t exporter[CKT_TLS_EXPORTER_SIZE];
	char why[CAUSE_MAX];
	int result = ckt_tls_exporter(t, exporter);
	if (!result)
		result = ckt_greeting_read_from(t, deadline_ms, ret_greeting);
	if (!result) {
		ckt_starttls_bind((uint8_t *)ret_greeting->nonce, exporter);
		return 0;
	}
	ckt_tls_failure(t, why, sizeof why);
	snprintf(ret_message, message_size,
		result == -EACCES
			? "it does not accept this client's certificate (%s): set CRICKET_TLS_CERTIFICATE and CRICKET_TLS_KEY to files that its authority issued"
			: "it ended the connection after the TLS handshake (%s); its log says why",
		*why ? why : strerror(-result));
	return result;
}

static int go_secure(struct ckt_transport *t, const struct ckt_tls_settings *settings,
	const char *server, int64_t deadline_ms, ckt_greeting *ret_greeting, char *ret_message,
	size_t message_size)
{
	int result = ask_for_tls(t, deadline_ms, ret_message, message_size);
	if (!result)
		result =
			ckt_tls_client(t, settings, server, deadline_ms, ret_message, message_size);
	if (!result)
		result = greet_inside(t, deadline_ms, ret_greeting, ret_message, message_size);
	return result;
}

int ckt_secure_greeting(struct ckt_transport *t, const char *server, int64_t deadline_ms,
	ckt_greeting *ret_greeting, char *ret_message, size_t message_size)
{
	struct ckt_tls_settings settings;
	char why[CAUSE_MAX] = "";
	int result = ckt_greeting_read_from(t, deadline_ms, ret_greeting);
	if (result || !server || ckt_net_is_local(t->fd))
		return result;
	ckt_secure_settings(&settings);
	bool offered = ckt_greeting_offers(ret_greeting, CKT_AUTH_TLS);
	if (settings.ca && !offered) {
		snprintf(ret_message, message_size,
			"the server %.100s offers no TLS, and this client has an authority (%.200s): start it with --tls-certificate and --tls-key; "
			"if it has them, somebody changes what it says; unset CRICKET_TLS_CA to talk in the clear",
			server, settings.ca);
		result = -EACCES;
	}
	if (!result && !offered && was_secure(server)) {
		snprintf(ret_message, message_size,
			"the server %.100s offers no TLS, and it did before (known_servers): somebody may change what it says; "
			"if it really has none now, remove its line from ~/.config/cricket/known_servers",
			server);
		result = -EACCES;
	}
	if (!result && !offered)
		return 0;
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)ret_greeting);
	memset(ret_greeting, 0, sizeof *ret_greeting);
	if (result)
		return result;
	result = go_secure(t, &settings, server, deadline_ms, ret_greeting, why, sizeof why);
	if (result && *why)
		snprintf(ret_message, message_size, "the server %.100s: %s", server, why);
	return result;
}

int ckt_secure_greeting_fd(int *fd, const char *server, int64_t deadline_ms,
	ckt_greeting *ret_greeting, char *ret_message, size_t message_size)
{
	struct ckt_transport t;
	ckt_transport_init_socket(&t, *fd);
	int result = ckt_secure_greeting(
		&t, server, deadline_ms, ret_greeting, ret_message, message_size);
	if (!ckt_transport_is_tls(&t))
		return result;
	*fd = -1;
	if (!result) {
		result = ckt_tls_relay_start(&t, fd);
		if (result)
			xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)ret_greeting);
	}
	if (result)
		ckt_transport_close(&t);
	return result;
}
