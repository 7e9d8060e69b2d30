/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the server's limits come from (limit_rule.h), each before the next, which adds to it:
 *
 *	/etc/cricket/limits.d/NAME.conf	in the order of their names
 *	--limits FILE
 *	SOCKET.d/limits			what 'cricketctl limit set' said: kept over a restart
 *
 * The files are read at the start and again at SIGHUP.  If one cannot be read then, all limits stay
 * as they were.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/daemon/policy/limit_rule.h"

struct ckt_server;

#define CKT_LIMITS_DIRECTORY "/etc/cricket/limits.d"

/*
 * One file's rules are added to the table.  -errno with the file, the line, the word and the remedy;
 * the table is the caller's in every case.
 */
int ckt_limits_read_file(
	const char *path, struct ckt_limit_table *table, char *ret_message, size_t message_size);
/* The same with all of a directory's NAME.conf; none is there, or no directory: 0. */
int ckt_limits_read_directory(
	const char *path, struct ckt_limit_table *table, char *ret_message, size_t message_size);

/* At the start: --gpu-memory, and all files.  -EINVAL with the reason. */
int ckt_limits_open(struct ckt_server *server, char *ret_message, size_t message_size);
/* Again; logs what is wrong. */
void ckt_limits_reload(struct ckt_server *server);
/* What a rule says besides the files, from now on.  0 or -errno with the reason. */
int ckt_limits_set(struct ckt_server *server, const struct ckt_limit_rule *rule, char *ret_message,
	size_t message_size);
/* -ENOENT: nothing was set for that key. */
int ckt_limits_clear(struct ckt_server *server, const struct ckt_limit_rule *key, char *ret_message,
	size_t message_size);
void ckt_limits_close(struct ckt_server *server);
