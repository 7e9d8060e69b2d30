/* SPDX-License-Identifier: Apache-2.0 */
/* A server of inside.h that shares one GPU in space, with directories of its own for its daemons. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_mps.h"
#include "server/daemon/session/mps.h"

static char kept_dir[CKT_PATH_MAX];
static unsigned kept_gpus;

static inline void begin(void)
{
	strcpy(kept_dir, server.socket_dir);
	kept_gpus = server.driver.gpu_count;
	setenv("CRICKET_MPS_CONTROL", fake_mps(), 1);
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s", path_in("mps.d"));
	mkdir(server.socket_dir, 0700);
	server.options.share = (char *)"space";
	server.driver.gpu_count = 1;
	ckt_mps_init(&server);
	MUST(server.mps != NULL, true);
}

static inline int count(void)
{
	struct dirent *entry;
	int found = 0;
	DIR *dir = opendir(server.socket_dir);
	while (dir && (entry = readdir(dir)))
		found += strncmp(entry->d_name, "mps-", 4) == 0;
	if (dir)
		closedir(dir);
	return found;
}

static inline bool is_count(void *data)
{
	return count() == *(int *)data;
}

static inline void end(void)
{
	ckt_mps_fini(&server);
	IS(count(), 0);
	rmdir(server.socket_dir);
	strcpy(server.socket_dir, kept_dir);
	server.options.share = NULL;
	server.driver.gpu_count = kept_gpus;
	unlink(path_in("told"));
	unsetenv("CRICKET_MPS_CONTROL");
}
