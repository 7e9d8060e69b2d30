/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over a socket as a transport; see tls.h.
 *
 * The library is called under the state's lock and never waits, so a reader and a writer exclude each
 * other for the time of one record.
 */
#include "rpc/transport/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/net.h"
#include "rpc/transport/tls_state.h"

enum { FINISH_MS = 2000 };

/* ---- The socket under the library */

/*
 * The library asks for a record's head, then for its body.  A recv for the body takes the next head
 * with it, and a recv for a head takes small records whole: one call a record, and no large copy.
 * (The library's own read-ahead moves all that it has for each record.)
 */
static int bio_read(BIO *bio, char *data, int size)
{
	struct ckt_tls *tls = BIO_get_data(bio);
	struct iovec parts[] = {{data, (size_t)size}, {tls->ahead, sizeof tls->ahead}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	size_t left = tls->ahead_end - tls->ahead_start;
	ssize_t n;
	BIO_clear_retry_flags(bio);
	if (left) {
		size_t taken = left < (size_t)size ? left : (size_t)size;
		memcpy(data, tls->ahead + tls->ahead_start, taken);
		tls->ahead_start += taken;
		return (int)taken;
	}
	do
		n = recvmsg(tls->fd, &message, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	tls->ahead_start = 0;
	tls->ahead_end = n > size ? (size_t)(n - size) : 0;
	return (int)(n < size ? n : size);
}

/* What the socket takes of it; 0: nothing now; -1 with errno. */
static ssize_t send_some(struct ckt_tls *tls, const void *data, size_t size)
{
	ssize_t n;
	do
		n = send(tls->fd, data, size,
			MSG_NOSIGNAL | MSG_DONTWAIT | (tls->more ? MSG_MORE : 0));
	while (n < 0 && errno == EINTR);
	return n < 0 && errno == EAGAIN ? 0 : n;
}

int ckt_tls_flush(struct ckt_tls *tls)
{
	while (tls->out_start < tls->out_end) {
		ssize_t n =
			send_some(tls, tls->out + tls->out_start, tls->out_end - tls->out_start);
		if (n <= 0)
			return n ? -errno : -EAGAIN;
		tls->out_start += (size_t)n;
	}
	tls->out_start = tls->out_end = 0;
	return 0;
}

/*
 * The library is never left with a record that it has to write again: if it then reads new keys of the
 * peer while it owes some itself, it writes these into the middle of that record, and fails.  So what the
 * socket does not accept is kept here.
 */
static int bio_write(BIO *bio, const char *data, int size)
{
	struct ckt_tls *tls = BIO_get_data(bio);
	ssize_t n = 0;
	BIO_clear_retry_flags(bio);
	/* A read may answer the peer's new keys, when nobody listens any more. */
	if (tls->finished_socket)
		return size;
	if (tls->out_end == tls->out_start)
		n = send_some(tls, data, (size_t)size);
	if (n < 0)
		return -1;
	size_t rest = (size_t)(size - n);
	if (rest > sizeof tls->out - tls->out_end) {
		if (!n)
			BIO_set_retry_write(bio);
		return n ? (int)n : -1;
	}
	memcpy(tls->out + tls->out_end, data + n, rest);
	tls->out_end += rest;
	return size;
}

/* What is kept goes with the next call; the library need not wait for it. */
static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)number;
	(void)pointer;
	if (command != BIO_CTRL_FLUSH)
		return 0;
	BIO_clear_retry_flags(bio);
	int result = ckt_tls_flush(BIO_get_data(bio));
	return result && result != -EAGAIN ? -1 : 1;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(
		BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "cricket");
	if (method && BIO_meth_set_read(method, bio_read) &&
		BIO_meth_set_write(method, bio_write) && BIO_meth_set_ctrl(method, bio_control))
		bio_method = method;
	else
		BIO_meth_free(method);
}

BIO *ckt_tls_bio(struct ckt_tls *tls)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_bio_method);
	BIO *bio = bio_method ? BIO_new(bio_method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return bio;
}

/* ---- Bytes */

static bool is_about_certificate(unsigned long error)
{
	int reason = ERR_GET_REASON(error);
	/* An alert that the peer sent is its number above this. */
	int alert = reason - SSL_AD_REASON_OFFSET;
	return ERR_GET_LIB(error) == ERR_LIB_SSL &&
		(alert == SSL_AD_CERTIFICATE_REQUIRED || alert == SSL_AD_BAD_CERTIFICATE ||
			alert == SSL_AD_UNSUPPORTED_CERTIFICATE ||
			alert == SSL_AD_CERTIFICATE_REVOKED ||
			alert == SSL_AD_CERTIFICATE_EXPIRED ||
			alert == SSL_AD_CERTIFICATE_UNKNOWN || alert == SSL_AD_UNKNOWN_CA ||
			alert == SSL_AD_ACCESS_DENIED);
}

/* The library said that the call failed.  -EAGAIN, or the error that ends the channel. */
static int failed(struct ckt_tls *tls, int returned, bool *ret_wants_other, int other)
{
	int saved = errno, error = SSL_get_error(tls->ssl, returned);
	*ret_wants_other = error == other;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	unsigned long first = ERR_peek_error();
	if (error == SSL_ERROR_ZERO_RETURN) {
		/* The other direction goes on. */
		tls->ended = true;
		return -ECONNRESET;
	}
	if (error == SSL_ERROR_SYSCALL && saved)
		snprintf(tls->failure, sizeof tls->failure, "%s", strerror(saved));
	else
		ckt_tls_reason("the stream was cut", tls->failure, sizeof tls->failure);
	tls->error = is_about_certificate(first)                        ? -EACCES
		: error == SSL_ERROR_SYSCALL && saved && saved != EPIPE ? -saved
		: error == SSL_ERROR_SYSCALL && saved                   ? -EPIPE
									: -ECONNRESET;
	ERR_clear_error();
	return tls->error;
}

static ssize_t read_record(struct ckt_tls *tls, void *data, size_t size)
{
	ssize_t result = -ECONNRESET;
	pthread_mutex_lock(&tls->lock);
	if (tls->error || tls->ended) {
		result = tls->error ? tls->error : -ECONNRESET;
	} else {
		size_t done = 0;
		ERR_clear_error();
		errno = 0;
		int good = SSL_read_ex(tls->ssl, data, size, &done);
		tls->read_wants_write = false;
		result = good ? (ssize_t)done
			      : failed(tls, good, &tls->read_wants_write, SSL_ERROR_WANT_WRITE);
		tls->read_empty = result == -EAGAIN;
		/* What answers the peer may wait for the next call. */
		ckt_tls_flush(tls);
	}
	pthread_mutex_unlock(&tls->lock);
	return result;
}

/* All records that are there, as far as there is room. */
static ssize_t tls_read(struct ckt_transport *t, void *data, size_t size)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	size_t done = 0;
	while (done < size) {
		ssize_t n = read_record(tls, (uint8_t *)data + done, size - done);
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Encrypts a record, and sends what the socket takes.  0, or -errno; the credit says how many bytes. */
static int encrypt_record(struct ckt_tls *tls, const void *data, size_t size)
{
	size_t done = 0;
	ERR_clear_error();
	errno = 0;
	tls->more = size > CKT_TLS_RECORD;
	int good = SSL_write_ex(tls->ssl, data, tls->more ? (size_t)CKT_TLS_RECORD : size, &done);
	tls->more = false;
	tls->write_wants_read = false;
	if (!good)
		return failed(tls, good, &tls->write_wants_read, SSL_ERROR_WANT_READ);
	tls->credit = done;
	return 0;
}

/* The socket has failed: so has the channel. */
static int flush_or_fail(struct ckt_tls *tls)
{
	int result = ckt_tls_flush(tls);
	if (result && result != -EAGAIN) {
		snprintf(tls->failure, sizeof tls->failure, "%s", strerror(-result));
		tls->error = result;
	}
	return result;
}

/* One record.  It counts once the socket has all of it; until then the caller offers it again. */
static ssize_t write_record(struct ckt_tls *tls, const void *data, size_t size)
{
	pthread_mutex_lock(&tls->lock);
	ssize_t result = tls->error ? tls->error : flush_or_fail(tls);
	if (!result && !tls->credit)
		result = encrypt_record(tls, data, size);
	if (!result && tls->out_start < tls->out_end)
		result = -EAGAIN;
	if (!result) {
		result = (ssize_t)(tls->credit < size ? tls->credit : size);
		tls->credit -= (size_t)result;
	}
	pthread_mutex_unlock(&tls->lock);
	return result;
}

static ssize_t tls_write(struct ckt_transport *t, const void *data, size_t size)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	size_t done = 0;
	while (done < size) {
		ssize_t n = write_record(tls, (const uint8_t *)data + done, size - done);
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t tls_read_fd(struct ckt_transport *t, void *data, size_t size, int *ret_fd)
{
	*ret_fd = -1;
	return tls_read(t, data, size);
}

/* Small parts become one record. */
static ssize_t tls_write_fd(
	struct ckt_transport *t, const struct iovec *parts, size_t count, int pass_fd)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	size_t size = 0;
	if (pass_fd >= 0)
		return -EOPNOTSUPP;
	if (count == 1)
		return tls_write(t, parts->iov_base, parts->iov_len);
	for (size_t i = 0; i < count && size < sizeof tls->scratch; i++) {
		size_t room = sizeof tls->scratch - size;
		size_t n = parts[i].iov_len < room ? parts[i].iov_len : room;
		memcpy(tls->scratch + size, parts[i].iov_base, n);
		size += n;
	}
	return tls_write(t, tls->scratch, size);
}

/* ---- Waiting */

static short tls_events(struct ckt_transport *t, unsigned want)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	short events = want & CKT_TRANSPORT_ENDED ? POLLRDHUP : 0;
	pthread_mutex_lock(&tls->lock);
	if (want & CKT_TRANSPORT_READ)
		events |= tls->read_wants_write ? POLLOUT : POLLIN;
	if (want & CKT_TRANSPORT_WRITE)
		events |= tls->write_wants_read ? POLLIN : POLLOUT;
	pthread_mutex_unlock(&tls->lock);
	return events;
}

static unsigned tls_ready(struct ckt_transport *t, unsigned want)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	unsigned ready = 0;
	pthread_mutex_lock(&tls->lock);
	if (tls->error || tls->ended)
		ready |= CKT_TRANSPORT_ENDED | (want & CKT_TRANSPORT_READ);
	else if (want & CKT_TRANSPORT_READ && !tls->read_empty &&
		(SSL_has_pending(tls->ssl) || tls->ahead_start < tls->ahead_end))
		ready |= CKT_TRANSPORT_READ;
	if (want & CKT_TRANSPORT_WRITE && tls->credit && tls->out_start == tls->out_end)
		ready |= CKT_TRANSPORT_WRITE;
	pthread_mutex_unlock(&tls->lock);
	return ready;
}

static unsigned tls_polled(struct ckt_transport *t, unsigned want, short revents)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	unsigned ready = 0;
	pthread_mutex_lock(&tls->lock);
	if (want & CKT_TRANSPORT_READ && revents & (tls->read_wants_write ? POLLOUT : POLLIN))
		ready |= CKT_TRANSPORT_READ;
	if (want & CKT_TRANSPORT_WRITE && revents & (tls->write_wants_read ? POLLIN : POLLOUT))
		ready |= CKT_TRANSPORT_WRITE;
	pthread_mutex_unlock(&tls->lock);
	return ready |
		(revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) ? CKT_TRANSPORT_ENDED : 0);
}

/* ---- The rest is the socket's */

static struct ckt_transport under(const struct ckt_transport *t)
{
	struct ckt_transport socket;
	ckt_transport_init_socket(&socket, t->fd);
	return socket;
}

static bool tls_vanished(struct ckt_transport *t, unsigned after_ms)
{
	return ckt_net_vanished(t->fd, after_ms);
}

static int tls_peer_process(struct ckt_transport *t, pid_t *ret_pid, uid_t *ret_uid)
{
	(void)t;
	(void)ret_pid;
	(void)ret_uid;
	return -EOPNOTSUPP;
}

static bool tls_undelivered(struct ckt_transport *t)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	struct ckt_transport socket = under(t);
	pthread_mutex_lock(&tls->lock);
	bool kept = tls->out_start < tls->out_end;
	pthread_mutex_unlock(&tls->lock);
	return kept || ckt_transport_undelivered(&socket);
}

/* New keys that are not announced yet go before the end.  0, or -EAGAIN. */
static int announce_keys(struct ckt_tls *tls)
{
	bool other;
	if (!SSL_in_init(tls->ssl))
		return 0;
	ERR_clear_error();
	int good = SSL_do_handshake(tls->ssl);
	return good != 1 && failed(tls, good, &other, SSL_ERROR_NONE) == -EAGAIN ? -EAGAIN : 0;
}

static int say_end_locked(struct ckt_tls *tls)
{
	if (tls->error || flush_or_fail(tls) == -EAGAIN)
		return tls->error ? 0 : -EAGAIN;
	if (tls->finished || tls->error)
		return 0;
	if (announce_keys(tls))
		return -EAGAIN;
	if (tls->error)
		return 0;
	ERR_clear_error();
	int said = SSL_shutdown(tls->ssl), error = SSL_get_error(tls->ssl, said);
	ERR_clear_error();
	if (said < 0 && (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ))
		return -EAGAIN;
	tls->finished = true;
	return flush_or_fail(tls) == -EAGAIN ? -EAGAIN : 0;
}

int ckt_tls_say_end(struct ckt_transport *t)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	pthread_mutex_lock(&tls->lock);
	int result = say_end_locked(tls);
	if (!result && !tls->finished_socket) {
		tls->finished_socket = true;
		shutdown(t->fd, SHUT_WR);
	}
	pthread_mutex_unlock(&tls->lock);
	return result;
}

static void tls_finish(struct ckt_transport *t)
{
	struct ckt_transport socket = under(t);
	int64_t deadline_ms = ckt_net_now_ms() + FINISH_MS;
	while (ckt_tls_say_end(t) == -EAGAIN &&
		ckt_transport_wait_until(&socket, CKT_TRANSPORT_WRITE, deadline_ms) == 0)
		;
	shutdown(t->fd, SHUT_WR);
}

static void tls_shutdown(struct ckt_transport *t)
{
	shutdown(t->fd, SHUT_RDWR);
}

static void tls_close(struct ckt_transport *t)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	ckt_tls_say_end(t);
	close(t->fd);
	SSL_free(tls->ssl);
	pthread_mutex_destroy(&tls->lock);
	explicit_bzero(tls->scratch, sizeof tls->scratch);
	free(tls);
	t->state = NULL;
}

const struct ckt_transport_operations ckt_tls_operations = {
	.name = "tls",
	.read = tls_read,
	.write = tls_write,
	.read_fd = tls_read_fd,
	.write_fd = tls_write_fd,
	.events = tls_events,
	.ready = tls_ready,
	.polled = tls_polled,
	.vanished = tls_vanished,
	.peer_process = tls_peer_process,
	.undelivered = tls_undelivered,
	.finish = tls_finish,
	.shutdown = tls_shutdown,
	.close = tls_close,
};

bool ckt_transport_is_tls(const struct ckt_transport *t)
{
	return t->operations == &ckt_tls_operations;
}

bool ckt_tls_ended(struct ckt_transport *t)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	pthread_mutex_lock(&tls->lock);
	bool ended = tls->ended;
	pthread_mutex_unlock(&tls->lock);
	return ended;
}

void ckt_tls_failure(struct ckt_transport *t, char *ret_text, size_t text_size)
{
	struct ckt_tls *tls = ckt_tls_of(t);
	pthread_mutex_lock(&tls->lock);
	snprintf(ret_text, text_size, "%s", tls->failure);
	pthread_mutex_unlock(&tls->lock);
}
