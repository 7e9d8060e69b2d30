/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that holds the key of --tls-certificate, and its children, which carry connections.
 *
 *	cricket-server --AUTH_TLS came: TCP socket + end of ckt_net_pair--> cricket-server --tls-process
 *	    |  other end of the pair: one record of facts, then plain bytes     | forks
 *	    v                                                                   v
 *	worker, after the hello                                         a child a connection:
 *	                                                                handshake, facts, relay, end
 *
 * Neither the server nor a worker ever has the key.  The process is executed anew, so it has no token and
 * no key of the server.  A child has no right but to move bytes between its two descriptors
 * (tls_cage.h).  Children outlive the server and the process, as workers do.
 *
 * The files are read again for the first connection after they change.  Files that cannot be read
 * then leave the old ones in force, with a warning.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/transport/tls.h"

struct ckt_server;
struct ckt_tls_process;

enum {
	CKT_TLS_PROCESS_FD = 3, /* its end of the control socket */
	CKT_TLS_HANDSHAKE_MS = 5000,
	/* status, exporter, certificate behind its length */
	CKT_TLS_FACTS_MAX = 4 + CKT_TLS_EXPORTER_SIZE + 4 + CKT_TLS_CERTIFICATE_MAX,
	CKT_TLS_WHY_MAX = 400,
};

#define CKT_TLS_PROCESS_OPTION "--tls-process"
#define CKT_TLS_DIRECTORY "/etc/cricket/tls"

/* What the child says about its connection before the first byte of it. */
struct ckt_tls_facts {
	int error; /* 0, or -errno: the handshake failed */
	uint8_t exporter[CKT_TLS_EXPORTER_SIZE];
	const uint8_t *certificate; /* DER, of the client; on failure the reason as text */
	uint32_t certificate_size;  /* 0: it showed none */
};

/* At most CKT_TLS_FACTS_MAX bytes; returns the end. */
uint8_t *ckt_tls_facts_put(uint8_t *p, const struct ckt_tls_facts *facts);
/* The certificate then lies in data.  False: not of that form. */
bool ckt_tls_facts_get(const uint8_t *data, size_t size, struct ckt_tls_facts *ret_facts);

/*
 * With --tls-certificate, or its default: starts the process and waits until it has read the files.
 * -EINVAL with a sentence.
 */
int ckt_tls_process_init(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_tls_process_fini(struct ckt_server *server);
/* Whether the options, or the default, name a certificate. */
bool ckt_tls_is_on(const struct ckt_server *server);
/*
 * Gives the connection away.  *ret_fd: the plain end, the caller's.  tcp_fd stays the caller's, who
 * closes it.  -errno: the process cannot take it now.
 */
int ckt_tls_process_take(struct ckt_server *server, int tcp_fd, int *ret_fd);

/* main() of the process; returns its exit status. */
int ckt_tls_process_main(int argc, char **argv);
