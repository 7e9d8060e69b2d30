/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This worker's side of its group channel (rpc/group.h): it finds other workers of its group
 * through the server, and is found by them.
 *
 * The channel ends with its server.  The next server gives the worker another one, and until then
 * questions wait for it.
 *
 * Threading: any; ckt_group_init before others.
 */
#pragma once

#include <stdbool.h>

#include "rpc/group.h"

struct ckt_worker;

/*
 * Answers one question that came over the connection, which stays the caller's.  name: under which
 * this worker was asked for.
 */
typedef void (*ckt_group_answer)(
	struct ckt_worker *worker, const struct ckt_group_name *name, int connection);

/* How long a question waits for the next server, and for a busy one. */
extern unsigned ckt_group_away_ms;

/* A descriptor that is readable when somebody asks; -errno. */
int ckt_group_init(void);
/* The channel from the server; becomes ours.  -EINVAL: it is none, and was closed. */
int ckt_group_join(int channel);
/* Whether there was ever a channel. */
bool ckt_group_joined(void);
/* The worker of that name has ended, which was connected with this one. */
typedef void (*ckt_group_gone)(struct ckt_worker *worker, const struct ckt_group_name *name);
/*
 * Has one question answered, by the claim's answer, or by this one where the claim has none, or one end
 * told; returns at once if there is none.
 */
void ckt_group_serve(struct ckt_worker *worker, ckt_group_answer answer, ckt_group_gone gone);

/*
 * answer: NULL, or who answers those that ask for this name.  A second claim of a name replaces the
 * first.  Lasts over changes of the channel.  0 or -errno (-ENOSPC: CKT_GROUP_CLAIMS_MAX).
 */
int ckt_group_claim(const struct ckt_group_name *name, ckt_group_answer answer);
void ckt_group_drop(const struct ckt_group_name *name);

/*
 * Connects with the nth worker of the group that has the name, for one question and its answer;
 * reads and writes there fail after two seconds.  The connection is the caller's; if there is no
 * such worker it brings the byte CKT_GROUP_NOBODY.  -ENOTCONN: there is no server.
 */
int ckt_group_ask(const struct ckt_group_name *name, unsigned nth);
/* The same, and does not wait for the next server. */
int ckt_group_ask_now(const struct ckt_group_name *name, unsigned nth);
