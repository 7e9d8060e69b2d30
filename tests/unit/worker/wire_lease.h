/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of a worker of its own (wire_session.h) whose lease of memory is the test's to grant:
 * the server's end of its channel.
 */
#pragma once

#include "rpc/lease.h"
#include "tests/unit/worker/wire_session.h"

/* A worker whose server grants nothing by itself.  env: a variable of the worker's; NULL: none. */
struct wire *lease_begin(bool takes_again, const char *env);
void lease_end(struct wire *w);
/* The next message of the worker's; kind 0: none came. */
struct ckt_lease_message lease_heard(int timeout_ms);
void lease_answer(const struct ckt_lease_message *question, uint64_t bytes, uint32_t flags);
/* What a question that waits gets later; 0: it is refused. */
bool lease_told(struct wire *w, const struct ckt_lease_message *question, uint64_t bytes);
/* Of a reply without results. */
CUresult lease_result(struct wire_reply reply);
