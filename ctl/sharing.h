/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions share their GPUs, in time or in space, as cricketctl ps shows it.  Threading: the main thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "ctl/command.h"
#include "ctl/listing.h"
#include "rpc/control.h"

struct ckt_ctl_sharings {
	struct ckt_ctl_listing sharings, groups;
};

/* Of all sessions that the server shows us; none of one that is older.  Freed by the caller. */
void ckt_ctl_sharings_read(const struct ckt_ctl_args *args, struct ckt_ctl_sharings *ret_sharings);
void ckt_ctl_sharings_free(struct ckt_ctl_sharings *sharings);
/* What the server offers; false of one that is older.  Freed with xdr_free. */
bool ckt_ctl_share_modes_look(
	const struct ckt_ctl_args *args, ckt_control_share_modes_res *ret_modes);
/* An object; null: not known. */
json_t *ckt_ctl_sharings_json(const struct ckt_ctl_sharings *sharings, const char *session);
/* A line, of a session in space, or that should be. */
void ckt_ctl_sharings_print(const struct ckt_ctl_sharings *sharings, const char *session);
