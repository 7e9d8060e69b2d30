/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sessions have of their GPUs and wait for, in numbers, as cricketctl top shows it: for cricketctl
 * ps.
 *
 * Threading: no shared state.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "ctl/command.h"
#include "rpc/control.h"

struct ckt_ctl_watched {
	ckt_control_watch_res *pages;
	size_t count;
};

/* Over a connection of its own, which an older server ends: then nothing is known. */
void ckt_ctl_watched_read(const struct ckt_ctl_args *args, struct ckt_ctl_watched *ret_watched);
void ckt_ctl_watched_free(struct ckt_ctl_watched *watched);
/* Adds the session's share_percent, swapped_bytes, waiting_ms and switches; null: not known. */
void ckt_ctl_watched_json(
	const struct ckt_ctl_watched *watched, const char *session, json_t *object);
