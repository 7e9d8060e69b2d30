/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The automatic images of sessions, for cricketctl ps.
 *
 * Threading: no shared state.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "ctl/command.h"
#include "ctl/listing.h"
#include "rpc/control.h"

struct ckt_ctl_durable {
	struct ckt_ctl_listing images;
	ckt_control_replicas_res
		*replicas; /* pages of them: of sessions there, then those held there */
	size_t replica_count, held_from;
};

/* Over a connection of its own, which an older server ends: then there are none. */
void ckt_ctl_durable_read(const struct ckt_ctl_args *args, struct ckt_ctl_durable *ret_durable);
void ckt_ctl_durable_free(struct ckt_ctl_durable *durable);
/* An object, the caller's; NULL: the server takes none of this session. */
json_t *ckt_ctl_durable_json(const struct ckt_ctl_durable *durable, const char *session);
/* {since, bytes} of a session that sleeps, the caller's; NULL: the server does not tell. */
json_t *ckt_ctl_asleep_json(const struct ckt_ctl_durable *durable, const char *session);
/* The same as lines below the session's own, on stdout. */
void ckt_ctl_durable_print(const struct ckt_ctl_durable *durable, const char *session);
/* The replicas that the server keeps for others: an array, the caller's; NULL: there is none. */
json_t *ckt_ctl_replicas_json(const struct ckt_ctl_durable *durable);
/* The same as lines on stdout. */
void ckt_ctl_replicas_print(const struct ckt_ctl_durable *durable);
