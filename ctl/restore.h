/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring a session: the parts that others use.  Exit codes, with the reason said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/progress.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/session.h"

int ckt_ctl_parse_gpu(const char *text, int *ret_gpu);
int ckt_ctl_restore_stages(struct ckt_ctl_server *server, int gpu, ckt_control_stage_args *stages,
	unsigned count, char ret_session[CKT_SESSION_ID_SIZE + 1]);
/*
 * The session of an image in a directory here; plain: where somebody has decrypted it, NULL: nobody;
 * progress: NULL for none.  Any thread.
 */
int ckt_ctl_restore_image(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, const char *plain, int gpu, struct ckt_ctl_progress *progress,
	char ret_session[CKT_SESSION_ID_SIZE + 1]);
/*
 * The same in steps, for work between loading the image and starting the session: PRELOAD makes a
 * copy, which belongs to the connection until `last` makes it the session.  path, plain: as above;
 * sent to a server that accepts no descriptors.
 */
struct ckt_ctl_passing;
int ckt_ctl_passing_open(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, const char *plain, struct ckt_ctl_progress *progress,
	struct ckt_ctl_passing **ret_passing);
void ckt_ctl_passing_close(struct ckt_ctl_passing *passing);
/* copy: empty at first; gets the name of the copy, with `last` the session's. */
int ckt_ctl_passing_preload(struct ckt_ctl_passing *passing, struct ckt_ctl_server *server, int gpu,
	bool last, char copy[CKT_SESSION_ID_SIZE + 1]);
/*
 * Tells the client about a restore or a move: writes its file if it is ours to write, else prints
 * the command to run there.
 */
void ckt_ctl_tell_client(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *session);
/* The text of the address at which clients on other hosts reach the server. */
int ckt_ctl_public_address(struct ckt_ctl_server *server, char *ret_text, size_t text_size);
