/* SPDX-License-Identifier: Apache-2.0 */
/* What tls.c, tls_context.c and tls_handshake.c share; see tls.h. */
#pragma once

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/tls.h"

enum {
	CKT_TLS_RECORD = 16384, /* plain bytes of the largest record */
	/* Encrypted bytes that a recv may take beyond what the library wants. */
	CKT_TLS_READ_AHEAD = 4096,
	/* Encrypted bytes that the socket has not accepted: a record, and what answers the peer's new keys. */
	CKT_TLS_OUT = CKT_TLS_RECORD + 4096,
	CKT_TLS_FAILURE_MAX = 160,
};

struct ckt_tls_context {
	SSL_CTX *ssl;
	bool server;
	bool has_ca, has_certificate;
};

/* The state of a TLS transport.  The lock guards all of it; fd never changes. */
struct ckt_tls {
	pthread_mutex_t lock;
	SSL *ssl;
	int fd;
	bool read_empty;       /* what the library holds is no whole record: only a recv helps */
	bool read_wants_write; /* the read waits for room in the socket */
	bool write_wants_read; /* and the other way round */
	bool finished;         /* close_notify was sent */
	bool finished_socket;  /* and the socket's writing side is shut */
	bool ended;            /* the peer's came */
	bool more;             /* the record that is written is not the last one of a write */
	int error;             /* that ended the channel; 0: none */
	size_t credit;         /* bytes that are encrypted and that the caller offers again */
	size_t out_start, out_end;     /* of `out`: encrypted, and not accepted by the socket */
	size_t ahead_start, ahead_end; /* of `ahead`: received, and not the library's yet */
	char failure[CKT_TLS_FAILURE_MAX];
	uint8_t ahead[CKT_TLS_READ_AHEAD];
	uint8_t out[CKT_TLS_OUT];
	uint8_t scratch[CKT_TLS_RECORD]; /* of write_fd, whose callers exclude each other */
};

extern const struct ckt_transport_operations ckt_tls_operations;

/* A BIO over its socket that neither blocks nor raises SIGPIPE; NULL: no memory. */
BIO *ckt_tls_bio(struct ckt_tls *tls);
/* Sends what the socket has not accepted: 0: nothing is left; -EAGAIN, or another -errno. */
int ckt_tls_flush(struct ckt_tls *tls);
/* Before each use of the library: this may be a guest in a program that has its own OpenSSL. */
bool ckt_tls_begin(void);
/* The oldest error of this thread's queue, or `otherwise`; empties the queue. */
void ckt_tls_reason(const char *otherwise, char *ret_text, size_t text_size);

static inline struct ckt_tls *ckt_tls_of(const struct ckt_transport *t)
{
	return t->state;
}
