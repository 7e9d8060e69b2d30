/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's log in systemd's journal, by its native protocol: a datagram for each line, with the
 * session that the line is about, its owner, job and program as fields of their own.
 *
 *	PRIORITY SYSLOG_IDENTIFIER MESSAGE CRICKET_SESSION CRICKET_OWNER CRICKET_JOB CRICKET_PROGRAM
 *
 * A line that the journal does not take goes to stderr.  Threading: lines of other threads than the
 * loop's have no fields of a session.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CKT_LOG_JOURNAL_SOCKET "/run/systemd/journal/socket"

struct ckt_server;

/* Whether stderr is the journal: its device and inode are those of JOURNAL_STREAM. */
bool ckt_log_journal_is_stderr(void);
/*
 * As --log says; from here on lines go there.  -errno with a sentence, which "auto" never gives.
 * path: of the journal's socket.
 */
int ckt_log_journal_open(
	struct ckt_server *server, const char *path, char *ret_message, size_t message_size);
/* Lines go to stderr again. */
void ckt_log_journal_close(void);
