/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No two servers go on with one image: the file claim.json in its directory names the restore that
 * has it.
 *
 *	lock claim.json -> nobody has it, or who had it is proven gone -> "restoring", fsync -> RESTORE2 -> "restored", fsync
 *	                -> somebody has it: refused                                                      -> failed: as it was
 *
 * A restore holds the file's lock, so another one sees that it is at work; the lock ends with its
 * process.  What a claim says is believed only in so far as it refuses: an image without one is
 * restored.  A copy of the directory has a claim of its own; there the client decides, which goes
 * on with one copy alone (docs/control.md).
 *
 * Exit codes, with the reason said.  Threading: any thread, a claim each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "rpc/session.h"

enum { CKT_CLAIM_TEXT_MAX = 4096 };

struct ckt_ctl_claim {
	int directory, fd; /* -1: none */
	bool made;         /* there was none before */
	char before[CKT_CLAIM_TEXT_MAX];
	size_t before_size;
};

/*
 * path: of the directory, for messages.  session: of the image, empty if its manifest cannot be
 * read.  --fork takes none, --again takes over without asking.
 */
int ckt_ctl_claim_take(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, int directory, const char *session, struct ckt_ctl_claim *ret_claim);
/* The session is restored, or it is not; ends the claim's lock.  A claim of {.fd = -1} is fine. */
void ckt_ctl_claim_settle(struct ckt_ctl_claim *claim, bool restored);
