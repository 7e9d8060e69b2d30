/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a session's client, saved with the session (checkpoint --with-client) and restored
 * with it.
 *
 *	checkpoint: find -> (image of the session written, session held) -> save
 *	restore: open -> (session restored) -> restore
 *
 * Its image is DIR/client: CRIU's files, and client.json, one line, written last: the facts that a
 * restore needs beforehand.
 *
 * Exit codes, with the error printed.  Threading: the main thread.
 */
#pragma once

#include "ctl/client/criu.h"
#include "ctl/client/process.h"
#include "rpc/session.h"

struct ckt_ctl_args;
struct ckt_ctl_partial;
struct ckt_ctl_server;

struct ckt_ctl_client {
	struct ckt_criu criu;
	struct ckt_process process;
	char session[CKT_SESSION_ID_SIZE + 1];
	/* restore */
	int fd;                          /* DIR/client */
	pid_t ids[CKT_PROCESS_TREE_MAX]; /* that must be free */
	unsigned id_count;
};

/* Checks that the client can be saved, before anything is frozen.  prefix: of a session's ID. */
int ckt_ctl_client_find(
	struct ckt_ctl_server *server, const char *prefix, struct ckt_ctl_client *ret_client);
/*
 * The session is held; the image gets its name only with both halves in it.  With --stop the
 * process has then ended.
 */
int ckt_ctl_client_save(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, struct ckt_ctl_partial *partial);

/* Checks that the process can be restored here, before anything is restored. */
int ckt_ctl_client_open(const char *path, struct ckt_ctl_client *ret_client);
/*
 * The session is restored; if the process cannot be, the session is ended again.  Returns once the
 * two are connected.
 */
int ckt_ctl_client_restore(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, const char *session);
void ckt_ctl_client_close(struct ckt_ctl_client *client);

/* Copies the client of one image into another, if there is one.  0 or -errno. */
int ckt_ctl_client_copy(int from_fd, int to_fd);
