/* SPDX-License-Identifier: Apache-2.0 */
/* Images that travel to a server and from it.  Exit codes, with the reason said. */
#pragma once

#include <stdbool.h>

#include "ctl/progress.h"
#include "ctl/server.h"
#include "rpc/control.h"

bool ckt_ctl_name_good(const char *name);
int ckt_ctl_stage_make(struct ckt_ctl_server *server, char ret_stage[CKT_CONTROL_NAME_MAX + 1]);
int ckt_ctl_stage_remove(struct ckt_ctl_server *server, const char *stage);
int ckt_ctl_stage_keep(struct ckt_ctl_server *server, const char *stage, const char *name);
/*
 * Between a stage of the server and a directory here; with sync, fetched files are on the disk
 * afterwards.
 */
int ckt_ctl_fetch(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, bool sync, struct ckt_ctl_progress *progress);
int ckt_ctl_send(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, struct ckt_ctl_progress *progress);
