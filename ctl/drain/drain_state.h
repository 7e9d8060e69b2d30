/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a server drains; see docs/control.md.  Main thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctl/command.h"
#include "rpc/control.h"

struct ckt_ctl_drain {
	int64_t since;                     /* seconds since the epoch */
	char to[CKT_CONTROL_DRAIN_TO + 1]; /* clean */
	unsigned sessions;                 /* of all owners */
};

/*
 * Over a connection of its own, which a server of an earlier version ends.  False: it does not
 * drain, or nothing is known.  ret_drain may be NULL.
 */
bool ckt_ctl_drain_look(const struct ckt_ctl_args *args, struct ckt_ctl_drain *ret_drain);
/* Changes it.  Exit codes, with the error printed. */
int ckt_ctl_drain_set(const struct ckt_ctl_args *args, ckt_control_drain_way way, const char *to,
	struct ckt_ctl_drain *ret_drain);
/* The caller's. */
json_t *ckt_ctl_drain_json(const struct ckt_ctl_drain *drain);
