/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for a GPU's memory, for cricketctl ps.
 *
 * Threading: no shared state.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "ctl/command.h"
#include "rpc/control.h"

struct ckt_ctl_waits {
	ckt_control_waits_res *pages;
	size_t count;
};

/* Over a connection of its own, which an older server ends: then there are none. */
void ckt_ctl_waits_read(const struct ckt_ctl_args *args, struct ckt_ctl_waits *ret_waits);
void ckt_ctl_waits_free(struct ckt_ctl_waits *waits);
/* The waits of the session, an array; the caller's. */
json_t *ckt_ctl_waits_json(const struct ckt_ctl_waits *waits, const char *session);
/* The same as lines below the session's own, on stdout. */
void ckt_ctl_waits_print(const struct ckt_ctl_waits *waits, const char *session);
