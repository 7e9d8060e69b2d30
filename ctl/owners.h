/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of owners, which LIST and KEPT_LIST give as numbers.  They are asked over a connection
 * of their own, because a server of an earlier version ends it.
 *
 * Threading: one thread.
 */
#pragma once

#include "ctl/command.h"
#include "rpc/control.h"

struct ckt_ctl_owners {
	ckt_control_owners_res res; /* of the server; none where it knows none */
	char fallback[32];
};

/* Asks for at most CKT_CONTROL_OWNERS_MAX numbers.  Without an answer there are no names. */
void ckt_ctl_owners_read(const struct ckt_ctl_args *args, const uint32_t *numbers, unsigned count,
	struct ckt_ctl_owners *ret_owners);
/* Of the nth number that was asked for: "uid:1000", "token:alice", "-" where it is not known. */
const char *ckt_ctl_owner_name(struct ckt_ctl_owners *owners, unsigned n, uint32_t number);
/* "" for none. */
const char *ckt_ctl_owner_project(const struct ckt_ctl_owners *owners, unsigned n);
void ckt_ctl_owners_free(struct ckt_ctl_owners *owners);
