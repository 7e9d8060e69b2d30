/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of our own files: beside the executable, installed or in the build tree. */
#include "server/daemon/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/server.h"

/*
 * installed and built are relative to the directory of the executable; in_libexec to
 * CRICKET_LIBEXEC.
 */
static int find(const char *in_libexec, const char *installed, const char *built, int mode,
	char ret_path[CKT_PATH_MAX])
{
	char candidate[2 * CKT_PATH_MAX], exe[CKT_PATH_MAX];
	const char *libexec = getenv("CRICKET_LIBEXEC");
	if (libexec && *libexec) {
		snprintf(candidate, sizeof candidate, "%s/%s", libexec, in_libexec);
		return access(candidate, mode) == 0 && realpath(candidate, ret_path) ? 0 : -ENOENT;
	}
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (n < 0)
		return -errno;
	exe[n] = 0;
	*strrchr(exe, '/') = 0;
	const char *const relative[] = {installed, built};
	for (int i = 0; i < 2; i++) {
		snprintf(candidate, sizeof candidate, "%s/%s", exe, relative[i]);
		if (access(candidate, mode) == 0 && realpath(candidate, ret_path))
			return 0;
	}
	return -ENOENT;
}

int ckt_paths_find_worker(char ret_path[CKT_PATH_MAX])
{
	return find("cricket-worker", "../libexec/cricket/cricket-worker",
		"../worker/cricket-worker", X_OK, ret_path);
}

int ckt_paths_find_replicator(char ret_path[CKT_PATH_MAX])
{
	return find("cricket-replicator", "../libexec/cricket/cricket-replicator",
		"../../ctl/cricket-replicator", X_OK, ret_path);
}

int ckt_paths_find_soft(char ret_path[CKT_PATH_MAX])
{
	return find("soft/libcuda.so.1", "../libexec/cricket/soft/libcuda.so.1",
		"../../softgpu/libcuda.so.1", R_OK, ret_path);
}

int ckt_paths_find_inside(char ret_path[CKT_PATH_MAX])
{
	return find("inside/libcuda.so.1", "../libexec/cricket/inside/libcuda.so.1",
		"../worker/libs/inside/libcuda.so.1", R_OK, ret_path);
}

int ckt_paths_make_parent(const char *path)
{
	char parent[CKT_PATH_MAX];
	if (strlen(path) >= sizeof parent)
		return -ENAMETOOLONG;
	strcpy(parent, path);
	for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(parent, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}
