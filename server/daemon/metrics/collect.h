/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server tells in /metrics: it reads the pages of its workers and its own counts, and asks
 * nobody.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_server;

/* The text, to be freed by the caller; NULL without memory. */
char *ckt_metrics_collect(struct ckt_server *server, bool openmetrics, size_t *ret_size);
/* Whether the server takes sessions; else why not. */
bool ckt_metrics_ready(const struct ckt_server *server, const char **ret_reason);
