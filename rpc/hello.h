/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a hello of kind CONTROL, for callers without a session: cricketctl and the
 * client's NVML. Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * On a new connection: reads the greeting, begins TLS (rpc/secure.h), says hello and reads the reply.
 * With TLS *fd becomes another descriptor; it stays the caller's in every case, and is -1 if it is
 * lost.  server: its host, whose name the certificate must have; NULL: a UNIX socket.  token_file: NULL or
 * empty for none; used only if the server accepts a token, so that CRICKET_TOKEN_FILE may stay set
 * for all servers.  is_unix: the peer's user may suffice. 0; -ENOKEY: the token cannot be used,
 * -EACCES: refused or not trusted, each with a sentence in ret_message; else -errno, -EPROTO: the peer is not a
 * cricket-server.
 */
int ckt_hello_control(int *fd, const char *server, bool is_unix, const char *program,
	const char *token_file, int64_t deadline_ms, char *ret_message, size_t message_size);
