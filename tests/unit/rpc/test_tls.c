/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/transport/tls*.c: TLS between two ends of a socket pair, and what hostile peers do. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/transport/tls.h"
#include "rpc/transport/tls_relay.h"
#include "rpc/transport/tls_state.h"
#include "tests/unit/suite.h"

enum { TIMEOUT_MS = 60000, STREAM_BYTES = 3 << 20 };

/* ---- Certificates: an authority, a server of the name "here", and a client */

static char directory[] = "/tmp/ckt-tls-XXXXXX";
static char paths[8][64];

static char *path_of(unsigned slot, const char *name)
{
	snprintf(paths[slot], sizeof paths[slot], "%s/%s", directory, name);
	return paths[slot];
}

static void add(X509 *certificate, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

static X509 *make_certificate(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key)
{
	X509 *certificate = X509_new();
	X509_NAME *subject = X509_get_subject_name(certificate);
	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), issuer ? 2 : 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(
		subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : subject);
	if (issuer)
		add(certificate, NID_subject_alt_name, "DNS:here");
	else
		add(certificate, NID_basic_constraints, "critical,CA:TRUE");
	X509_sign(certificate, issuer_key, NULL);
	return certificate;
}

static void write_files(unsigned slot, const char *name, X509 *certificate, EVP_PKEY *key)
{
	char file[32];
	snprintf(file, sizeof file, "%s.pem", name);
	FILE *f = fopen(path_of(slot, file), "we");
	PEM_write_X509(f, certificate);
	fclose(f);
	snprintf(file, sizeof file, "%s.key", name);
	f = fopen(path_of(slot + 1, file), "we");
	fchmod(fileno(f), 0600);
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
}

/* Paths 0, 1: the authority; 2, 3: the server; 4, 5: the client; 6, 7: another authority. */
static void make_files(void)
{
	if (*paths[0])
		return;
	MUST(mkdtemp(directory) != NULL, 1);
	EVP_PKEY *keys[4];
	for (int i = 0; i < 4; i++)
		keys[i] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	X509 *ca = make_certificate(keys[0], "ca", NULL, keys[0]);
	X509 *server = make_certificate(keys[1], "server", ca, keys[0]);
	X509 *client = make_certificate(keys[2], "client", ca, keys[0]);
	X509 *other = make_certificate(keys[3], "other", NULL, keys[3]);
	X509 *all[] = {ca, server, client, other};
	static const char *const names[] = {"ca", "server", "client", "other"};
	for (unsigned i = 0; i < 4; i++) {
		write_files(2 * i, names[i], all[i], keys[i]);
		X509_free(all[i]);
		EVP_PKEY_free(keys[i]);
	}
}

static void remove_files(void)
{
	for (unsigned i = 0; i < COUNT(paths); i++)
		unlink(paths[i]);
	rmdir(directory);
}

static struct ckt_tls_settings settings_of(unsigned own, unsigned ca)
{
	make_files();
	return (struct ckt_tls_settings){
		.certificate = paths[own], .key = paths[own + 1], .ca = paths[ca]};
}

/* ---- Two ends */

static struct ckt_transport ends[2]; /* client, server */
static char messages[2][400];

struct accepting {
	const struct ckt_tls_settings *settings;
	int result;
};

static void *accept_main(void *opaque)
{
	struct accepting *accepting = opaque;
	struct ckt_tls_context *context;
	accepting->result = ckt_tls_context_make(
		accepting->settings, true, &context, messages[1], sizeof messages[1]);
	if (!accepting->result) {
		accepting->result = ckt_tls_accept(&ends[1], context, ckt_net_now_ms() + TIMEOUT_MS,
			messages[1], sizeof messages[1]);
		ckt_tls_context_free(context);
	}
	/* A refusal must reach the other end. */
	if (accepting->result)
		ckt_transport_finish(&ends[1]);
	return NULL;
}

static void open_sockets(int buffer_bytes)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++) {
		if (buffer_bytes)
			setsockopt(
				fds[i], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
		ckt_transport_init_socket(&ends[i], fds[i]);
	}
}

static int shake(const struct ckt_tls_settings *client, const char *name,
	const struct ckt_tls_settings *server, int *ret_server)
{
	struct accepting accepting = {.settings = server};
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, accept_main, &accepting), 0);
	int result = ckt_tls_client(&ends[0], client, name, ckt_net_now_ms() + TIMEOUT_MS,
		messages[0], sizeof messages[0]);
	if (result)
		ckt_transport_finish(&ends[0]);
	pthread_join(thread, NULL);
	*ret_server = accepting.result;
	return result;
}

static void open_tls(int buffer_bytes)
{
	struct ckt_tls_settings client = settings_of(4, 0), server = settings_of(2, 0);
	int result;
	open_sockets(buffer_bytes);
	MUST(shake(&client, "here", &server, &result), 0);
	MUST(result, 0);
	YES(ckt_transport_is_tls(&ends[0]));
	TEXT(ckt_transport_name(&ends[0]), "tls");
}

static void close_both(void)
{
	ckt_transport_close(&ends[0]);
	ckt_transport_close(&ends[1]);
}

/* ---- A reader and a writer at each end */

static uint8_t byte_at(size_t at, int end)
{
	return (uint8_t)(at * 31 + at / 251 + (size_t)end);
}

static void *write_main(void *opaque)
{
	int end = *(int *)opaque;
	uint8_t *data = malloc(STREAM_BYTES);
	for (size_t i = 0; i < STREAM_BYTES; i++)
		data[i] = byte_at(i, end);
	for (size_t at = 0, step = 1; at < STREAM_BYTES; step = step * 7 % 100003) {
		/* What is offered again may be shorter, and be in parts. */
		size_t size = step < STREAM_BYTES - at ? step : STREAM_BYTES - at;
		struct iovec parts[2] = {
			{data + at, size / 3}, {data + at + size / 3, size - size / 3}};
		ssize_t n = step & 1 ? ckt_transport_write(&ends[end], data + at, size)
				     : ckt_transport_write_fd(&ends[end], parts, 2, -1);
		if (n == -EAGAIN)
			ckt_transport_wait(&ends[end], CKT_TRANSPORT_WRITE, 1000);
		else if (n < 0)
			break;
		else
			at += (size_t)n;
		/* New keys in the middle of the stream; the peer answers with its own. */
		if (step % 97 == 0) {
			struct ckt_tls *tls = ckt_tls_of(&ends[end]);
			pthread_mutex_lock(&tls->lock);
			if (tls->out_start == tls->out_end)
				SSL_key_update(tls->ssl, SSL_KEY_UPDATE_REQUESTED);
			pthread_mutex_unlock(&tls->lock);
		}
	}
	ckt_transport_finish(&ends[end]);
	free(data);
	return NULL;
}

static void *read_main(void *opaque)
{
	int end = *(int *)opaque;
	size_t *wrong = calloc(1, sizeof *wrong);
	uint8_t data[40000];
	size_t at = 0;
	for (size_t step = 1;; step = step * 5 % 39989) {
		ssize_t n = ckt_transport_read(&ends[end], data, step);
		if (n == -EAGAIN) {
			ckt_transport_wait(&ends[end], CKT_TRANSPORT_READ, 1000);
			continue;
		}
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			*wrong += data[i] != byte_at(at++, 1 - end);
	}
	*wrong += STREAM_BYTES - at;
	return wrong;
}

static void test_streams(void)
{
	static int numbers[2] = {0, 1};
	pthread_t writers[2], readers[2];
	open_tls(8192);
	for (int i = 0; i < 2; i++) {
		MUST(pthread_create(&readers[i], NULL, read_main, &numbers[i]), 0);
		MUST(pthread_create(&writers[i], NULL, write_main, &numbers[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		void *wrong;
		pthread_join(writers[i], NULL);
		pthread_join(readers[i], &wrong);
		IS(*(size_t *)wrong, 0);
		free(wrong);
	}
	for (int i = 0; i < 2; i++) {
		char why[CKT_TLS_FAILURE_MAX];
		YES(ckt_tls_ended(&ends[i]));
		ckt_tls_failure(&ends[i], why, sizeof why);
		TEXT(why, "");
	}
	close_both();
}

enum { TINY = 3, TINY_WRITES = 4000 };

static void *write_tiny(void *opaque)
{
	struct ckt_tls *tls = ckt_tls_of(&ends[0]);
	(void)opaque;
	for (size_t at = 0; at < TINY * TINY_WRITES;) {
		uint8_t data[TINY];
		size_t left = TINY - at % TINY;
		for (size_t i = 0; i < left; i++)
			data[i] = byte_at(at + i, 0);
		ssize_t n = ckt_transport_write(&ends[0], data, left);
		if (n == -EAGAIN)
			ckt_transport_wait(&ends[0], CKT_TRANSPORT_WRITE, 1000);
		else if (n < 0)
			break;
		else
			at += (size_t)n;
		pthread_mutex_lock(&tls->lock);
		if (at % 5)
			SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
		pthread_mutex_unlock(&tls->lock);
	}
	ckt_transport_finish(&ends[0]);
	return NULL;
}

/* New keys that the socket has no room for, before a write that is shorter than their message. */
static void test_tiny(void)
{
	char why[CKT_TLS_FAILURE_MAX];
	pthread_t writer;
	size_t at = 0, wrong = 0;
	uint8_t data[64];
	ssize_t n;
	open_tls(4608);
	MUST(pthread_create(&writer, NULL, write_tiny, NULL), 0);
	while ((n = ckt_transport_read(&ends[1], data, sizeof data)) >= 0 || n == -EAGAIN) {
		for (ssize_t i = 0; i < n; i++)
			wrong += data[i] != byte_at(at++, 0);
		if (n == -EAGAIN)
			ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, 1000);
	}
	pthread_join(writer, NULL);
	IS(at, TINY * TINY_WRITES);
	IS(wrong, 0);
	for (int i = 0; i < 2; i++) {
		ckt_tls_failure(&ends[i], why, sizeof why);
		TEXT(why, "");
	}
	close_both();
}

/* ---- Ends, and what lies in the library */

static void test_ends(void)
{
	char data[64], why[200];
	open_tls(0);
	IS(ckt_transport_write(&ends[0], "abcdef", 6), 6);
	IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1), CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[1], data, 2), 2);
	/* The socket is silent. */
	IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, 0), CKT_TRANSPORT_READ);
	IS(ckt_transport_read(&ends[1], data, sizeof data), 4);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -EAGAIN);
	IS(ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, 0), 0);
	/* No descriptor crosses, and none is lost. */
	struct iovec part = {data, 1};
	int fd = 5;
	IS(ckt_transport_write_fd(&ends[0], &part, 1, 0), -EOPNOTSUPP);
	IS(ckt_transport_read_fd(&ends[1], data, sizeof data, &fd), -EAGAIN);
	IS(fd, -1);
	/* One side is done; the other one goes on. */
	ckt_transport_finish(&ends[0]);
	ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -ECONNRESET);
	YES(ckt_tls_ended(&ends[1]));
	YES(ckt_transport_wait(&ends[1], CKT_TRANSPORT_ENDED, -1) & CKT_TRANSPORT_ENDED);
	IS(ckt_transport_write(&ends[1], "late", 4), 4);
	ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1);
	IS(ckt_transport_read(&ends[0], data, sizeof data), 4);
	close_both();
	/* Cut: the same error, and another reason. */
	open_tls(0);
	shutdown(ends[0].fd, SHUT_WR);
	ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -ECONNRESET);
	NO(ckt_tls_ended(&ends[1]));
	ckt_tls_failure(&ends[1], why, sizeof why);
	YES(*why);
	IS(ckt_transport_read(&ends[1], data, sizeof data), -ECONNRESET);
	close_both();
	/* Bytes that are no record, and one that was changed on its way. */
	for (int i = 0; i < 2; i++) {
		static const char records[2][26] = {"nonsense, and more of it", "\x17\3\3\0\x14"};
		open_tls(0);
		IS(write(ends[0].fd, records[i], 25), 25);
		ckt_transport_wait(&ends[1], CKT_TRANSPORT_READ, -1);
		YES(ckt_transport_read(&ends[1], data, sizeof data) < 0);
		NO(ckt_tls_ended(&ends[1]));
		close_both();
	}
}

/* ---- Who the peer is */

static void test_peers(void)
{
	struct {
		unsigned client, client_ca, server, server_ca;
		const char *name;
		int client_result;
		const char *words;
	} rows[] = {{4, 0, 2, 0, "here", 0, ""}, {4, 0, 2, 0, "there", -EACCES, "mismatch"},
		{4, 0, 2, 0, "127.0.0.1", -EACCES, "mismatch"},
		{4, 6, 2, 0, "here", -EACCES, "its certificate is not accepted"},
		{4, 0, 6, 0, "here", -EACCES, "its certificate is not accepted"},
		/* The client notices only when it reads. */
		{6, 0, 2, 0, "here", 0, ""}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_tls_settings client = settings_of(rows[i].client, rows[i].client_ca),
					server = settings_of(rows[i].server, rows[i].server_ca);
		int result;
		char data[16];
		open_sockets(0);
		IS(shake(&client, rows[i].name, &server, &result), rows[i].client_result);
		HAS(messages[0], rows[i].words);
		IS(!result, i == 0);
		NO(ckt_transport_is_tls(&ends[1]) && result);
		if (i == 5) {
			ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1);
			IS(ckt_transport_read(&ends[0], data, sizeof data), -EACCES);
			ckt_tls_failure(&ends[0], messages[0], sizeof messages[0]);
			HAS(messages[0], "unknown ca");
		}
		close_both();
	}
}

static int judged;

static int judge(const char *server, const uint8_t fingerprint[CKT_TLS_FINGERPRINT_SIZE],
	const uint8_t *certificate, size_t certificate_size, char *ret_message, size_t message_size)
{
	uint8_t again[CKT_TLS_FINGERPRINT_SIZE];
	TEXT(server, "anywhere");
	IS(ckt_tls_fingerprint(certificate, certificate_size, again), 0);
	IS(memcmp(again, fingerprint, sizeof again), 0);
	IS(ckt_tls_fingerprint(certificate, certificate_size - 1, again), -EINVAL);
	snprintf(ret_message, message_size, "the judge says no");
	return judged;
}

/* Without an authority. */
static void test_unknown(void)
{
	struct ckt_tls_settings none = {0}, server = settings_of(2, 0);
	int result;
	server.ca = NULL;
	for (int i = 0; i < 3; i++) {
		ckt_tls_unknown_authority = i ? judge : NULL;
		judged = i == 1 ? -EACCES : 0;
		open_sockets(0);
		IS(shake(&none, "anywhere", &server, &result), i == 2 ? 0 : -EACCES);
		if (i < 2)
			HAS(messages[0], i ? "the judge says no" : "CRICKET_TLS_CA");
		close_both();
	}
	ckt_tls_unknown_authority = NULL;
}

static void test_facts(void)
{
	uint8_t exporters[3][CKT_TLS_EXPORTER_SIZE], fingerprints[2][CKT_TLS_FINGERPRINT_SIZE];
	uint8_t *certificate;
	size_t size;
	open_tls(0);
	IS(ckt_tls_exporter(&ends[0], exporters[0]), 0);
	IS(ckt_tls_exporter(&ends[1], exporters[1]), 0);
	IS(memcmp(exporters[0], exporters[1], sizeof exporters[0]), 0);
	MUST(ckt_tls_peer_certificate(&ends[1], &certificate, &size), 0);
	IS(ckt_tls_fingerprint(certificate, size, fingerprints[0]), 0);
	IS(ckt_tls_peer_fingerprint(&ends[1], fingerprints[1]), 0);
	IS(memcmp(fingerprints[0], fingerprints[1], sizeof fingerprints[0]), 0);
	free(certificate);
	close_both();
	open_tls(0);
	IS(ckt_tls_exporter(&ends[0], exporters[2]), 0);
	YES(memcmp(exporters[0], exporters[2], sizeof exporters[0]) != 0);
	close_both();
}

static void test_bad_handshake(void)
{
	struct ckt_tls_settings server = settings_of(2, 0);
	struct ckt_tls_context *context;
	MUST(ckt_tls_context_make(&server, true, &context, messages[1], sizeof messages[1]), 0);
	for (int i = 0; i < 3; i++) {
		open_sockets(0);
		if (i == 0)
			IS(write(ends[0].fd, "GET / HTTP/1.0\r\n\r\n", 18), 18);
		if (i == 1)
			shutdown(ends[0].fd, SHUT_WR);
		int result = ckt_tls_accept(&ends[1], context,
			ckt_net_now_ms() + (i == 2 ? 20 : TIMEOUT_MS), messages[1],
			sizeof messages[1]);
		IS(result, i == 2 ? -ETIMEDOUT : -EPROTO);
		HAS(messages[1], "TLS handshake");
		NO(ckt_transport_is_tls(&ends[1]));
		close_both();
	}
	ckt_tls_context_free(context);
	/* Files. */
	struct ckt_tls_settings bad[] = {{.certificate = paths[2]},
		{.certificate = paths[2], .key = paths[5]}, {.ca = paths[3]}, {.ca = "/nowhere"},
		{.certificate = paths[2], .key = paths[3], .ca = paths[0], .crl = paths[0]}};
	for (size_t i = 0; i < COUNT(bad); i++) {
		*messages[1] = 0;
		IS(ckt_tls_context_make(&bad[i], true, &context, messages[1], sizeof messages[1]),
			-EINVAL);
		YES(*messages[1]);
	}
	chmod(paths[3], 0644);
	IS(ckt_tls_context_make(&server, true, &context, messages[1], sizeof messages[1]), -EACCES);
	chmod(paths[3], 0600);
}

/* ---- The relay */

static void test_relay(void)
{
	uint8_t data[1000];
	struct ckt_transport plain;
	int fd;
	open_tls(0);
	MUST(ckt_tls_relay_start(&ends[1], &fd), 0);
	NO(ckt_net_is_local(fd));
	YES(ckt_net_is_pair(fd));
	ckt_transport_init_socket(&plain, fd);
	TEXT(ckt_transport_name(&plain), "tls");
	IS(ckt_transport_write_all(&ends[0], "request", 7, -1), 0);
	IS(ckt_transport_read_all(&plain, data, 7), 0);
	IS(memcmp(data, "request", 7), 0);
	/* Both ends of stream, one after the other. */
	ckt_transport_finish(&plain);
	ckt_transport_wait(&ends[0], CKT_TRANSPORT_READ, -1);
	IS(ckt_transport_read(&ends[0], data, sizeof data), -ECONNRESET);
	YES(ckt_tls_ended(&ends[0]));
	IS(ckt_transport_write_all(&ends[0], "last", 4, -1), 0);
	IS(ckt_transport_read_all(&plain, data, 4), 0);
	ckt_transport_finish(&ends[0]);
	IS(ckt_transport_read_all(&plain, data, 1), -ECONNRESET);
	ckt_transport_close(&plain);
	ckt_transport_close(&ends[0]);
	/* The plain end goes away: what it wrote still arrives. */
	open_tls(0);
	MUST(ckt_tls_relay_start(&ends[1], &fd), 0);
	ckt_transport_init_socket(&plain, fd);
	IS(ckt_transport_write_all(&plain, "rest", 4, -1), 0);
	ckt_transport_close(&plain);
	IS(ckt_transport_read_all(&ends[0], data, 4), 0);
	IS(ckt_transport_read_all(&ends[0], data, 1), -ECONNRESET);
	ckt_transport_close(&ends[0]);
	/* The TLS side is cut. */
	open_tls(0);
	MUST(ckt_tls_relay_start(&ends[1], &fd), 0);
	ckt_transport_init_socket(&plain, fd);
	ckt_transport_shutdown(&ends[0]);
	IS(ckt_transport_read_all(&plain, data, 1), -ECONNRESET);
	ckt_transport_close(&plain);
	ckt_transport_close(&ends[0]);
}

UNIT_SUITE(tls, {"streams", test_streams}, {"tiny", test_tiny}, {"ends", test_ends},
	{"peers", test_peers}, {"unknown authority", test_unknown}, {"facts", test_facts},
	{"bad handshakes", test_bad_handshake}, {"relay", test_relay}, {"end", remove_files})
