/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --metrics: /metrics, /healthz and /readyz over HTTP, by libmicrohttpd in the server's own loop.
 *
 *	loop --epoll descriptor of libmicrohttpd--> MHD_run --request--> collect.c, or the text of a moment ago
 *
 * What a client can cost is bounded: connections (a new one ends the oldest where there is no more
 * room), their age, the size of a request, and how often the text is made.  No call here waits.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stddef.h>

struct ckt_metrics_server;
struct ckt_server;

enum {
	CKT_METRICS_CONNECTIONS = 64,
	CKT_METRICS_AGE_MS = 5000,  /* of a connection; requests take milliseconds */
	CKT_METRICS_FRESH_MS = 100, /* a text is given again for so long */
	CKT_METRICS_REQUEST_BYTES = 8192,
};

/*
 * Listens as --metrics says; NULL without it.  -EPERM: other hosts could reach it, and nobody said
 * that they may; -errno.  Each with a sentence.
 */
int ckt_metrics_open(struct ckt_server *server, struct ckt_metrics_server **ret_metrics,
	char *ret_message, size_t message_size);
/* NULL does nothing. */
void ckt_metrics_close(struct ckt_metrics_server *metrics);
/* As bound, for the log: "http://127.0.0.1:9435/metrics". */
const char *ckt_metrics_text(const struct ckt_metrics_server *metrics);
