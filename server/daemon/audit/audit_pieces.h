/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READ and WRITE of one connection that carries an image's files: a line for each of the two with
 * the number of pieces, because an image of a gigabyte has a thousand.
 *
 * Threading: _create in the loop's thread; then the connection's thread alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/audit/audit_record.h"

struct ckt_audit;
struct ckt_audit_pieces;

/*
 * caller: its peer, pid, owner, role and object are copied.  NULL without an audit log or memory;
 * the other functions take that.
 */
struct ckt_audit_pieces *ckt_audit_pieces_create(
	struct ckt_audit *audit, const struct ckt_audit_record *caller);
/* proc: CKT_CONTROL_READ or CKT_CONTROL_WRITE; status: 0 or -errno, as answered. */
void ckt_audit_pieces_count(struct ckt_audit_pieces *pieces, uint32_t proc, int status);
/* The connection ends.  refused: because it sent something else. */
void ckt_audit_pieces_end(struct ckt_audit_pieces *pieces, bool refused);
