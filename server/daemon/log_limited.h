/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that strangers bring about: only so many of a kind. */
#pragma once

#include <stdint.h>

struct ckt_server;

/* Messages that strangers bring about, by kind. */
enum ckt_log_limit {
	CKT_LIMIT_REFUSED,
	CKT_LIMIT_DROPPED,
	CKT_LIMIT_DESCRIPTORS,
	CKT_LIMIT_IMAGES,
	CKT_LIMIT_CALLS,
	CKT_LIMITS
};

struct ckt_log_bucket {
	unsigned used;
	int64_t since_ms; /* 0: never used */
	uint64_t suppressed;
};

/* As ckt_info, but only so many of a kind. */
void ckt_daemon_log_limited(struct ckt_server *server, enum ckt_log_limit kind, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Logs how many messages were left out. */
void ckt_daemon_log_limited_fini(struct ckt_server *server);
