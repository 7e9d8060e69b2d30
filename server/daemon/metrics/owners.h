/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of owners for --metrics.  The first CKT_METRICS_OWNERS owners have sums of their own, as long
 * as the server runs; all others share those of "other", so that a crowd of owners fills neither the
 * server's memory nor the reader's.  Threading: the loop's thread.
 */
#pragma once

#include <stdint.h>

#include "rpc/session_metrics.h"

struct ckt_server;

enum { CKT_METRICS_OWNERS = 64, CKT_METRICS_OWNER_NAME = 80 };

/* Values of the label `owner`: the last one is "other". */
unsigned ckt_metrics_owner_count(void);
const char *ckt_metrics_owner_name(unsigned index);
struct ckt_session_metrics *ckt_metrics_owner_at(unsigned index);
/* Time in turns on each GPU, in nanoseconds. */
uint64_t *ckt_metrics_owner_turns(unsigned index);

/* The index of the owner, who gets sums of its own if there is room. */
unsigned ckt_metrics_owner_index(struct ckt_server *server, uint32_t owner);
struct ckt_session_metrics *ckt_metrics_owner_sums(struct ckt_server *server, uint32_t owner);
/* Forgets all of them. */
void ckt_metrics_owners_fini(void);
