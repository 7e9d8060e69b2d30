/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the audit log as JSON.  Threading: no shared state. */
#pragma once

#include <jansson.h>
#include <time.h>

#include "server/daemon/audit/audit_record.h"

/* The keys in their fixed order, "time" first.  NULL without memory; json_decref() it. */
json_t *ckt_audit_line_object(const struct ckt_audit_record *record, const struct timespec *when);
/* Compact, ASCII alone, without a line's end.  NULL without memory; free() it. */
char *ckt_audit_line_text(const json_t *object);
