/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that wait for a GPU's memory: between their leases (lease.h) and the queue
 * (server/daemon/policy/wait_queue.h).
 *
 * While anything waits, every worker is pressed: it gives back at once what it does not use.
 *
 * Threading: the loop's thread.  Nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/policy/limit_rule.h"
#include "server/daemon/policy/wait_queue.h"

struct ckt_server;
struct ckt_session;

/* As the options say; before the first session.  -EINVAL with the reason. */
int ckt_memory_wait_open(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_memory_wait_close(struct ckt_server *server);

/* What becomes of the session's allocations when its GPU is full. */
enum ckt_when_full ckt_memory_when_full(const struct ckt_session *session);
/* Whether the session has rights to wait. */
bool ckt_memory_can_wait(const struct ckt_session *session);
/* Whether the ledger may lease so much to the session now. */
bool ckt_memory_wait_allows(struct ckt_session *session, unsigned gpu, uint64_t bytes);
/*
 * Its worker's question of that number may wait.  CKT_MEMORY_GRANT: the bytes are leased;
 * CKT_MEMORY_WAIT: CKT_WORKER_LEASE_WAITED follows, not before ckt_memory_wait_look.
 */
enum ckt_memory_decision ckt_memory_wait_ask(
	struct ckt_session *session, uint32_t number, unsigned gpu, uint64_t bytes);
/* False: no question of that number waits, as when its end is on the way. */
bool ckt_memory_wait_withdraw(struct ckt_session *session, uint32_t number, bool keep_place);

/* Events of what the lease decides itself: memory that it leased or refused at once. */
void ckt_memory_wait_leased(struct ckt_session *session, unsigned gpu, uint64_t bytes);
void ckt_memory_wait_refused(
	struct ckt_session *session, unsigned gpu, uint64_t bytes, enum ckt_memory_reason reason);
/* Why so much cannot be leased now. */
enum ckt_memory_reason ckt_memory_wait_reason(
	struct ckt_session *session, unsigned gpu, uint64_t bytes);

void ckt_memory_wait_came(struct ckt_session *session);
void ckt_memory_wait_freed(struct ckt_session *session, unsigned gpu, uint64_t bytes);
/* Precedes its leaving the ledger; ckt_memory_wait_look follows. */
void ckt_memory_wait_gone(struct ckt_session *session);
/* Its channel is gone, so that its questions are. */
void ckt_memory_wait_withdraw_all(struct ckt_session *session);
/* Something has changed: grants and refuses what waits, and presses the workers or stops that. */
void ckt_memory_wait_look(struct ckt_server *server);
/* Whether one more session has room on the GPU for its context. */
bool ckt_memory_wait_admits(struct ckt_server *server, unsigned gpu);

/* The session of a request. */
struct ckt_session *ckt_memory_wait_session(const struct ckt_wait_request *request);
