/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to a server, and calls over it.
 *
 * Functions give back exit codes, with the reason said.
 */
#pragma once

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"
#include "rpc/control.h"
#include "rpc/net.h"

struct ckt_ctl_server {
	int fd;
	bool is_unix;
	char address[CKT_ADDRESS_TEXT_MAX]; /* for messages */
	/* Which of the two it lists sessions by; 0: not known yet. */
	uint32_t list_procedure;
};

/* An exit code, with the reason in ret_message (cause and remedy in one sentence). */
int ckt_ctl_try_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server,
	char *ret_message, size_t message_size);
/* The same, with the error printed. */
int ckt_ctl_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
/*
 * As above, and over the server's UNIX socket if it can be reached from here, so that descriptors
 * can be passed.
 */
int ckt_ctl_connect_near(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
void ckt_ctl_disconnect(struct ckt_ctl_server *server);
/* Ends the connection for a call that waits for a reply on another thread, which keeps it. */
void ckt_ctl_hang_up(struct ckt_ctl_server *server);
/*
 * One call; ret_result is zeroed by the caller and freed with xdr_free.  timeout_ms -1: as long as
 * it takes. An exit code; said.
 */
int ckt_ctl_call(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_result, void *ret_result, int timeout_ms, int pass_fd);
/*
 * A listing comes sorted by session, a page each call.  CKT_CTL_PAGES_MAX pages are more than any
 * server has.
 */
enum { CKT_CTL_PAGES_MAX = 1024 };
struct ckt_ctl_pages {
	char after[CKT_SESSION_ID_SIZE + 1]; /* the last session of the page before */
	unsigned count;
};
/*
 * 1: ask for the page after `after`, which is now `last`; 0: that was all; -EPROTO: a server that
 * says `more` would be asked for ever.  last: of this page; NULL: it is empty.
 */
int ckt_ctl_pages_next(struct ckt_ctl_pages *pages, bool more, const char *last);
/* The same, as exit code, said; *ret_more: whether to ask. */
int ckt_ctl_pages_turn(struct ckt_ctl_pages *pages, const struct ckt_ctl_server *server, bool more,
	const char *last, bool *ret_more);
/*
 * The page of sessions behind `after`, zeroed by the caller and freed with xdr_free.  A server of an
 * earlier version does not tell which workers answered: then `answered` is empty.  0 or -errno.
 */
int ckt_ctl_list_page(struct ckt_ctl_server *server, const char *after, int timeout_ms,
	ckt_control_list2_res *ret_page);
/* The same, as exit code, said. */
int ckt_ctl_list(struct ckt_ctl_server *server, const char *after, int timeout_ms,
	ckt_control_list2_res *ret_page);
/*
 * Whether the worker of session i of a page answered.  If not, the state is what was last known, and
 * nothing can be decided by it.  NULL: the server does not tell.
 */
const bool_t *ckt_ctl_answered(const ckt_control_list2_res *page, u_int i);
/* The exit code for the server's result; prints a refusal. */
int ckt_ctl_result(const ckt_control_result *result);
/*
 * Whether the text has the form of a session ID or a prefix; CKT_EXIT_NO_SESSION with the error
 * printed.
 */
int ckt_ctl_check_session(const char *text);
/* Connects and checks. */
int ckt_ctl_connect_for(
	const struct ckt_ctl_args *args, const char *session, struct ckt_ctl_server *ret_server);
/*
 * One call over a connection of its own; session: checked as above, NULL for none.  The rest as
 * ckt_ctl_call.
 */
int ckt_ctl_ask(const struct ckt_ctl_args *args, const char *session, uint32_t proc,
	xdrproc_t xdr_args, void *call, xdrproc_t xdr_result, void *ret_result, int timeout_ms);
