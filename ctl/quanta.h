/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that the server may swap, and where their memory is: for cricketctl ps.
 *
 * Errors: a server of an earlier version tells of none.  Threading: the caller's.
 */
#pragma once

#include <jansson.h>

#include "ctl/command.h"
#include "ctl/listing.h"

void ckt_ctl_quanta_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_quanta);
/* An object, or null; the caller's. */
json_t *ckt_ctl_quanta_json(const struct ckt_ctl_listing *quanta, const char *session);
/* A line about the session if it was ever moved, or waits. */
void ckt_ctl_quanta_print(const struct ckt_ctl_listing *quanta, const char *session);
