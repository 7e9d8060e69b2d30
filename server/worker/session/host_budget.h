/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host memory that a session uses on behalf of its client: one account for each worker, that
 * is, each session.  Everything that a peer can make grow is charged before it is allocated:
 * contents of modules, descriptions of graphs and their buffers, bytes on their way, replies that
 * are kept, objects, blocks, pages of pinned memory, the manifest of an image.
 *
 * Threading: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* bytes: of the server's --session-host-memory; 0: no limit. */
void ckt_budget_init(uint64_t limit_bytes);
/* false: it does not fit, and nothing is charged; the log names its purpose now and then. */
bool ckt_budget_charge(uint64_t bytes, const char *what);
/* Charges what exists already, whether it fits or not. */
void ckt_budget_add(uint64_t bytes);
void ckt_budget_uncharge(uint64_t bytes);
uint64_t ckt_budget_used(void);
/* Bytes that still fit; UINT64_MAX without a limit. */
uint64_t ckt_budget_left(void);
