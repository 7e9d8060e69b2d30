/*
 * The process of a session's client, saved with the session (checkpoint --with-client) and restored
 * with it.
 *
 *	checkpoint: find -> (image of the session written, session held) -> save
 *	restore: open -> (session restored) -> restore
 *
 * Its image is DIR/client: CRIU's files, and client.json, one line, written last: what of the
 * process must be known before it is restored.
 *
 * Exit codes, said.  Threading: the main thread.
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

/*
 * That the client can be saved, found out before anything stands still.  prefix: a session's id or
 * its beginning.
 */
int ckt_ctl_client_find(
	struct ckt_ctl_server *server, const char *prefix, struct ckt_ctl_client *ret_client);
/*
 * The session is held; the image gets its name with both halves in it, or not at all.  With --stop
 * the process has ended then.
 */
int ckt_ctl_client_save(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, struct ckt_ctl_partial *partial);

/* That the process can be restored here, found out before anything is. */
int ckt_ctl_client_open(const char *path, struct ckt_ctl_client *ret_client);
/*
 * The session is restored; where the process cannot be, the session goes again.  Ends once the two
 * have found each other.
 */
int ckt_ctl_client_restore(const struct ckt_ctl_args *args, struct ckt_ctl_client *client,
	struct ckt_ctl_server *server, const char *session);
void ckt_ctl_client_close(struct ckt_ctl_client *client);

/* The client of one image into another, where it has one.  0 or -errno. */
int ckt_ctl_client_copy(int from_fd, int to_fd);
