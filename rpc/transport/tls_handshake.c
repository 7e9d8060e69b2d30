/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake, and what the channel knows then; see tls.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/net.h"
#include "rpc/transport/tls.h"
#include "rpc/transport/tls_state.h"

int (*ckt_tls_unknown_authority)(const char *server,
	const uint8_t fingerprint[CKT_TLS_FINGERPRINT_SIZE], const uint8_t *certificate,
	size_t certificate_size, char *ret_message, size_t message_size);

/* A numeric address is no host name. */
static bool set_server_name(SSL *ssl, const char *server)
{
	unsigned char address[16];
	X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
	if (inet_pton(AF_INET, server, address) == 1)
		return X509_VERIFY_PARAM_set1_ip(parameters, address, 4) == 1;
	if (inet_pton(AF_INET6, server, address) == 1)
		return X509_VERIFY_PARAM_set1_ip(parameters, address, 16) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, server) == 1 && SSL_set_tlsext_host_name(ssl, server) == 1;
}

static struct ckt_tls *make(struct ckt_tls_context *context, int fd, const char *server)
{
	struct ckt_tls *tls = calloc(1, sizeof *tls);
	if (!tls)
		return NULL;
	tls->fd = fd;
	tls->ssl = SSL_new(context->ssl);
	BIO *bio = tls->ssl ? ckt_tls_bio(tls) : NULL;
	if (bio)
		SSL_set_bio(tls->ssl, bio, bio);
	if (!bio || (server && !set_server_name(tls->ssl, server))) {
		SSL_free(tls->ssl);
		free(tls);
		return NULL;
	}
	pthread_mutex_init(&tls->lock, NULL);
	if (context->server)
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	return tls;
}

static void destroy(struct ckt_tls *tls)
{
	SSL_free(tls->ssl);
	pthread_mutex_destroy(&tls->lock);
	free(tls);
}

/* The library refused, or the peer did. */
static int explain(struct ckt_tls *tls, char *ret_message, size_t message_size)
{
	long verified = SSL_get_verify_result(tls->ssl);
	if (verified != X509_V_OK) {
		snprintf(ret_message, message_size, "its certificate is not accepted: %s",
			X509_verify_cert_error_string(verified));
		ERR_clear_error();
		return -EACCES;
	}
	char reason[CKT_TLS_FAILURE_MAX];
	ckt_tls_reason("the peer ended the connection", reason, sizeof reason);
	snprintf(ret_message, message_size, "the TLS handshake failed: %s", reason);
	return -EPROTO;
}

/* Until the socket has accepted what the library wrote.  0 or -errno. */
static int flush_all(struct ckt_tls *tls, struct ckt_transport *socket, int64_t deadline_ms)
{
	int result;
	while ((result = ckt_tls_flush(tls)) == -EAGAIN) {
		result = ckt_transport_wait_until(socket, CKT_TRANSPORT_WRITE, deadline_ms);
		if (result)
			return result;
	}
	return result;
}

static int shake_hands(
	struct ckt_tls *tls, int64_t deadline_ms, char *ret_message, size_t message_size)
{
	struct ckt_transport socket;
	ckt_transport_init_socket(&socket, tls->fd);
	for (;;) {
		ERR_clear_error();
		int good = SSL_do_handshake(tls->ssl);
		int error = SSL_get_error(tls->ssl, good);
		if (good != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
			return explain(tls, ret_message, message_size);
		int result = flush_all(tls, &socket, deadline_ms);
		if (!result && good == 1)
			return 0;
		if (!result)
			result = ckt_transport_wait_until(&socket,
				error == SSL_ERROR_WANT_READ ? CKT_TRANSPORT_READ
							     : CKT_TRANSPORT_WRITE,
				deadline_ms);
		if (result) {
			snprintf(ret_message, message_size, "the TLS handshake: %s",
				strerror(-result));
			return result;
		}
	}
}

static int check_alpn(struct ckt_tls *tls, char *ret_message, size_t message_size)
{
	const unsigned char *name = NULL;
	unsigned size = 0;
	SSL_get0_alpn_selected(tls->ssl, &name, &size);
	if (size == sizeof CKT_TLS_ALPN - 1 && memcmp(name, CKT_TLS_ALPN, size) == 0)
		return 0;
	snprintf(ret_message, message_size,
		"the TLS handshake: the peer does not speak the protocol " CKT_TLS_ALPN);
	return -EPROTO;
}

/* Without an authority somebody else says whether this is the server. */
static int ask_unknown(
	const struct ckt_transport *t, const char *server, char *ret_message, size_t message_size)
{
	uint8_t fingerprint[CKT_TLS_FINGERPRINT_SIZE], *certificate;
	size_t size;
	if (!ckt_tls_unknown_authority) {
		snprintf(ret_message, message_size,
			"its certificate cannot be checked: give the authority's certificate (CRICKET_TLS_CA)");
		return -EACCES;
	}
	int result = ckt_tls_peer_certificate(t, &certificate, &size);
	if (result) {
		snprintf(ret_message, message_size, "it shows no certificate");
		return -EACCES;
	}
	result = ckt_tls_fingerprint(certificate, size, fingerprint);
	if (!result)
		result = ckt_tls_unknown_authority(
			server, fingerprint, certificate, size, ret_message, message_size);
	free(certificate);
	return result;
}

static int begin(struct ckt_transport *t, struct ckt_tls_context *context, const char *server,
	int64_t deadline_ms, char *ret_message, size_t message_size)
{
	*ret_message = 0;
	struct ckt_tls *tls =
		make(context, t->fd, !context->server && context->has_ca ? server : NULL);
	if (!tls) {
		snprintf(ret_message, message_size, "TLS: no memory");
		return -ENOMEM;
	}
	int result = shake_hands(tls, deadline_ms, ret_message, message_size);
	if (!result)
		result = check_alpn(tls, ret_message, message_size);
	struct ckt_transport shaken = {
		.operations = &ckt_tls_operations, .fd = t->fd, .state = tls};
	if (!result && !context->server && !context->has_ca)
		result = ask_unknown(&shaken, server, ret_message, message_size);
	if (result) {
		destroy(tls);
		return result;
	}
	t->operations = &ckt_tls_operations;
	t->state = tls;
	return 0;
}

int ckt_tls_connect(struct ckt_transport *t, struct ckt_tls_context *context, const char *server,
	int64_t deadline_ms, char *ret_message, size_t message_size)
{
	return begin(t, context, server, deadline_ms, ret_message, message_size);
}

int ckt_tls_accept(struct ckt_transport *t, struct ckt_tls_context *context, int64_t deadline_ms,
	char *ret_message, size_t message_size)
{
	return begin(t, context, NULL, deadline_ms, ret_message, message_size);
}

int ckt_tls_client(struct ckt_transport *t, const struct ckt_tls_settings *settings,
	const char *server, int64_t deadline_ms, char *ret_message, size_t message_size)
{
	struct ckt_tls_context *context;
	int result = ckt_tls_context_make(settings, false, &context, ret_message, message_size);
	if (result)
		return result;
	result = ckt_tls_connect(t, context, server, deadline_ms, ret_message, message_size);
	ckt_tls_context_free(context);
	return result;
}

/* ---- What the channel knows */

int ckt_tls_peer_certificate(
	const struct ckt_transport *t, uint8_t **ret_certificate, size_t *ret_size)
{
	X509 *certificate = SSL_get0_peer_certificate(ckt_tls_of(t)->ssl);
	unsigned char *der = NULL;
	int size = certificate ? i2d_X509(certificate, &der) : 0;
	if (size <= 0)
		return certificate ? -ENOMEM : -ENOENT;
	uint8_t *copy = malloc((size_t)size);
	if (copy)
		memcpy(copy, der, (size_t)size);
	OPENSSL_free(der);
	*ret_certificate = copy;
	*ret_size = (size_t)size;
	return copy ? 0 : -ENOMEM;
}

static int fingerprint_of(X509 *certificate, uint8_t ret_fingerprint[CKT_TLS_FINGERPRINT_SIZE])
{
	unsigned char *der = NULL;
	unsigned hash_size = 0;
	int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
	bool good = size > 0 &&
		EVP_Digest(der, (size_t)size, ret_fingerprint, &hash_size, EVP_sha256(), NULL) == 1;
	OPENSSL_free(der);
	return good ? 0 : -ENOMEM;
}

int ckt_tls_peer_fingerprint(
	const struct ckt_transport *t, uint8_t ret_fingerprint[CKT_TLS_FINGERPRINT_SIZE])
{
	X509 *certificate = SSL_get0_peer_certificate(ckt_tls_of(t)->ssl);
	return certificate ? fingerprint_of(certificate, ret_fingerprint) : -ENOENT;
}

int ckt_tls_fingerprint(const uint8_t *certificate, size_t certificate_size,
	uint8_t ret_fingerprint[CKT_TLS_FINGERPRINT_SIZE])
{
	const unsigned char *p = certificate;
	X509 *parsed = ckt_tls_begin() && certificate_size <= LONG_MAX
		? d2i_X509(NULL, &p, (long)certificate_size)
		: NULL;
	if (!parsed) {
		ERR_clear_error();
		return -EINVAL;
	}
	int result = fingerprint_of(parsed, ret_fingerprint);
	X509_free(parsed);
	return result;
}

int ckt_tls_exporter(const struct ckt_transport *t, uint8_t ret_exporter[CKT_TLS_EXPORTER_SIZE])
{
	static const char label[] = CKT_TLS_EXPORTER_LABEL;
	return SSL_export_keying_material(ckt_tls_of(t)->ssl, ret_exporter, CKT_TLS_EXPORTER_SIZE,
		       label, sizeof label - 1, NULL, 0, 0) == 1
		? 0
		: -ENOMEM;
}
