/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session had leased when its worker ended, while the workers that it shared memory with count
 * what they still have open of it (server/worker/ipc/ipc_left.c).  The GPU keeps that memory, so until
 * they have counted it nobody else is granted it:
 *
 *	the worker ends (group.c) -> begin -> each of the others is told, await -> each answers, or does
 *	not in time, answered -> with the last one it is free
 *
 * For a moment both count the memory, and never nobody.
 *
 * Threading: the loop's thread.
 */
#pragma once

struct ckt_lease_left;
struct ckt_session;

/*
 * Before ckt_lease_close: until then it counts twice.  The caller's first wait is begun.  NULL:
 * nothing of it is counted, which the others take as well.
 */
struct ckt_lease_left *ckt_lease_left_begin(const struct ckt_session *session);
void ckt_lease_left_await(struct ckt_lease_left *left);
/* Ends one wait; frees it with the last. */
void ckt_lease_left_answered(struct ckt_lease_left *left);
