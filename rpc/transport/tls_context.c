/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates, keys and authorities from their files; see tls.h. */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rpc/transport/tls.h"
#include "rpc/transport/tls_state.h"

static const unsigned char alpn[] = {6, 's', 'u', 'n', 'r', 'p', 'c'};

bool ckt_tls_begin(void)
{
	return OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
}

void ckt_tls_reason(const char *otherwise, char *ret_text, size_t text_size)
{
	unsigned long error = ERR_peek_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;
	snprintf(ret_text, text_size, "%s",
		reason                                     ? reason
			: error && ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error))
							   : otherwise);
	ERR_clear_error();
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
	const unsigned char *in, unsigned in_size, void *context)
{
	unsigned char *chosen, size;
	(void)ssl;
	(void)context;
	if (SSL_select_next_proto(&chosen, &size, alpn, sizeof alpn, in, in_size) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	*out_size = size;
	return SSL_TLSEXT_ERR_OK;
}

static int file_error(const char *path, char *ret_message, size_t message_size)
{
	char reason[CKT_TLS_FAILURE_MAX];
	ckt_tls_reason("it has nothing of that kind", reason, sizeof reason);
	snprintf(ret_message, message_size, "%s: %s", path, reason);
	return -EINVAL;
}

/* Whoever can read the key can be this side. */
static int check_key_file(const char *path, char *ret_message, size_t message_size)
{
	struct stat st;
	if (stat(path, &st)) {
		int error = errno;
		snprintf(ret_message, message_size, "%s: %s", path, strerror(error));
		return -error;
	}
	if (st.st_mode & (S_IRWXO | S_IWGRP)) {
		snprintf(ret_message, message_size,
			"%s: others can read the key: give it mode 0600", path);
		return -EACCES;
	}
	return 0;
}

static int load_own(SSL_CTX *ssl, const struct ckt_tls_settings *settings, char *ret_message,
	size_t message_size)
{
	if (!settings->certificate && !settings->key)
		return 0;
	if (!settings->certificate || !settings->key) {
		snprintf(ret_message, message_size, "%s without %s: give both",
			settings->certificate ? "a certificate" : "a key",
			settings->certificate ? "its key" : "its certificate");
		return -EINVAL;
	}
	int result = check_key_file(settings->key, ret_message, message_size);
	if (result)
		return result;
	if (SSL_CTX_use_certificate_chain_file(ssl, settings->certificate) != 1)
		return file_error(settings->certificate, ret_message, message_size);
	if (SSL_CTX_use_PrivateKey_file(ssl, settings->key, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_check_private_key(ssl) != 1)
		return file_error(settings->key, ret_message, message_size);
	return 0;
}

static int load_authority(SSL_CTX *ssl, const struct ckt_tls_settings *settings, bool server,
	char *ret_message, size_t message_size)
{
	if (!settings->ca)
		return 0;
	if (SSL_CTX_load_verify_file(ssl, settings->ca) != 1)
		return file_error(settings->ca, ret_message, message_size);
	if (server) {
		STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(settings->ca);
		if (names)
			SSL_CTX_set_client_CA_list(ssl, names);
	}
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (!settings->crl)
		return 0;
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
	if (!lookup || X509_load_crl_file(lookup, settings->crl, X509_FILETYPE_PEM) < 1)
		return file_error(settings->crl, ret_message, message_size);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	return 0;
}

static bool set_up(SSL_CTX *ssl, bool server)
{
	SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_options(
		ssl, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	if (server)
		SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, NULL);
	return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
		SSL_CTX_set_num_tickets(ssl, 0) == 1 &&
		(server || SSL_CTX_set_alpn_protos(ssl, alpn, sizeof alpn) == 0);
}

int ckt_tls_context_make(const struct ckt_tls_settings *settings, bool server,
	struct ckt_tls_context **ret_context, char *ret_message, size_t message_size)
{
	struct ckt_tls_context *context = calloc(1, sizeof *context);
	int result = 0;
	SSL_CTX *ssl = NULL;
	if (!context || !ckt_tls_begin() ||
		!(ssl = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())) ||
		!set_up(ssl, server)) {
		snprintf(ret_message, message_size, "OpenSSL cannot start: no memory");
		result = -ENOMEM;
	}
	if (!result)
		result = load_own(ssl, settings, ret_message, message_size);
	if (!result)
		result = load_authority(ssl, settings, server, ret_message, message_size);
	if (result) {
		ERR_clear_error();
		SSL_CTX_free(ssl);
		free(context);
		return result;
	}
	*context = (struct ckt_tls_context){.ssl = ssl,
		.server = server,
		.has_ca = settings->ca,
		.has_certificate = settings->certificate};
	*ret_context = context;
	return 0;
}

void ckt_tls_context_free(struct ckt_tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}
