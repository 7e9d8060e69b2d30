/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control calls for the audit log: the name of each, and where its arguments and its answer say
 * which session it is about and how it went.
 *
 * Threading: constants.
 */
#pragma once

#include <stdint.h>

#include "server/daemon/audit/audit_record.h"

/* "save" for CKT_CONTROL_SAVE; NULL: there is no such procedure. */
const char *ckt_audit_call_name(uint32_t proc);
/* Sets the record's session and object from the decoded arguments, whose texts it keeps. */
void ckt_audit_call_arguments(uint32_t proc, const void *args, struct ckt_audit_record *ret_record);
/* Sets result, reason, and the session if the answer names one; res: NULL for a void answer. */
void ckt_audit_call_answer(uint32_t proc, const void *res, struct ckt_audit_record *ret_record);
