/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sessions have of their GPUs and wait for, in numbers, as cricketctl top shows it: for cricketctl
 * ps.
 *
 * Threading: no shared state.
 */
#pragma once

#include <jansson.h>

#include "ctl/command.h"
#include "ctl/listing.h"

/* Over a connection of its own, which an older server ends: then nothing is known. */
void ckt_ctl_watched_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_watched);
/* Adds the session's share_percent, swapped_bytes, waiting_ms and switches; null: not known. */
void ckt_ctl_watched_json(
	const struct ckt_ctl_listing *watched, const char *session, json_t *object);
