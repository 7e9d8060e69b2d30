/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that drains takes no new sessions, because its host is about to be maintained.  What it
 * has goes on, and cricketctl drain moves it away.
 *
 *	new session			refused, with the servers to use instead
 *	restore or move to here		refused, unless the image is sealed by this server or the session has a mark here
 *	reconnect, lane, control call	as ever
 *
 * SOCKET.d/draining keeps the state over a crash and over --replace.  An orderly end removes it.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "rpc/control.h"

struct ckt_peer;
struct ckt_server;

/* Zeroed memory: the server does not drain. */
struct ckt_drain {
	bool on;
	time_t since;
	char to[CKT_CONTROL_DRAIN_TO +
		1]; /* servers for new programs, with commas; empty: not known */
};

/* Reads the state that an earlier server left; after the socket's directory is ours. */
void ckt_drain_open(struct ckt_server *server);
/* Before an orderly end: the next server takes sessions again.  Not if a successor has the sockets. */
void ckt_drain_close(struct ckt_server *server);
/* Whether new sessions are refused, and the sentence that says so. */
bool ckt_drain_refuses(const struct ckt_server *server, char ret_message[CKT_MESSAGE_MAX]);
/* CKT_CONTROL_DRAIN. */
void ckt_control_drain(struct ckt_peer *peer, void *decoded, int *passed_fd);
