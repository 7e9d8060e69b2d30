/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn's files by themselves, without a session: one end of a socket pair stands in
 * ckt_conn, the other is the test's.
 */
#pragma once

#include "client/conn/conn.h"

#define PARTS_SESSION "0123456789ab"

/* An open connection with nothing in its ring; the peer's end. */
int parts_open(void);
void parts_close(int peer);
/* A record with this call's arguments, all zero, in the ring; sent where the connection is open. */
void parts_queue(size_t args_bytes);
/* A whole reply from the peer.  body: what comes behind the header, the CUresult first. */
void parts_reply(int peer, const struct ckt_reply_header *header, const void *body, size_t size);
/* Reads exactly size bytes; false where they do not come within five seconds. */
bool parts_read(int fd, void *ret_data, size_t size);
/* What is written to stderr between the two.  Valid until the next. */
void parts_stderr_begin(void);
const char *parts_stderr_end(void);
