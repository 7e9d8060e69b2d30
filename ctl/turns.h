/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share GPUs in time, as cricketctl ps shows it.  Threading: the main thread. */
#pragma once

#include <jansson.h>

#include "ctl/command.h"
#include "ctl/listing.h"

/* Of all sessions that the server shows us; none of one that is older.  Freed by the caller. */
void ckt_ctl_turns_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_turns);
/* A list of objects, one a GPU that the session shares. */
json_t *ckt_ctl_turns_json(const struct ckt_ctl_listing *turns, const char *session);
/* A line for each GPU that the session shares. */
void ckt_ctl_turns_print(const struct ckt_ctl_listing *turns, const char *session);
