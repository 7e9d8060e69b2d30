/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker must know to find the genuine libraries behind the forwarded ones
 * (server/worker/libs/genuine.h).  Its environment is empty, and its user another, so the server,
 * which is the operator's, says it:
 *
 *	CRICKET_LIBRARY_PATH	--library-path
 *	CRICKET_LIBRARY_SOFT	the directories of the soft GPU's own libraries, where the driver is the soft GPU
 *	CRICKET_LIBRARY_ROOTS	where the operator may have a toolkit or Python packages of their own: CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX, ~/.local
 *	CRICKET_LIBRARY_OWNER	whose files count beside root's: the server's user
 *	CRICKET_INSIDE		the libcuda.so.1 that libraries find in the worker
 */
#include "server/daemon/session/libraries.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trusted_file.h"
#include "server/daemon/paths.h"
#include "server/daemon/server.h"
#include "server/daemon/session/spawn_user.h"
#include "server/daemon/session/worker_files.h"

static int __attribute__((format(printf, 2, 3)))
add(struct ckt_server *server, const char *format, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0 || server->library_variable_count == CKT_LIBRARY_VARIABLES)
		return -ENOMEM;
	server->library_variables[server->library_variable_count++] = text;
	return 0;
}

static int check_directory(const char *path, char *ret_message, size_t message_size)
{
	char real[PATH_MAX], why[512];
	struct stat status;
	uid_t us = geteuid();
	int error = !realpath(path, real) || stat(real, &status) ? -errno
		: S_ISDIR(status.st_mode)                        ? 0
								 : -ENOTDIR;
	if (error)
		snprintf(ret_message, message_size,
			"--library-path: '%.300s': %s; give directories, with colons between them",
			path, strerror(-error));
	else if ((error = ckt_trusted_path(real, &us, 1, why, sizeof why)))
		snprintf(ret_message, message_size, "--library-path: '%.300s': %s", path, why);
	return error ? -EINVAL : 0;
}

static int check_path(const char *list, char *ret_message, size_t message_size)
{
	char part[PATH_MAX];
	for (const char *p = list; *p;) {
		size_t length = strcspn(p, ":");
		if (length && length < sizeof part) {
			snprintf(part, sizeof part, "%.*s", (int)length, p);
			int error = check_directory(part, ret_message, message_size);
			if (error)
				return error;
		}
		p += length + (p[length] == ':');
	}
	return 0;
}

static int add_roots(struct ckt_server *server)
{
	static const char *const names[] = {
		"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
	char roots[4 * PATH_MAX] = "";
	size_t used = 0;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);
		if (value && *value == '/' && !strchr(value, ':') &&
			used + strlen(value) + 2 < sizeof roots)
			used += (size_t)snprintf(
				roots + used, sizeof roots - used, "%s%s", used ? ":" : "", value);
	}
	const char *home = getenv("HOME");
	if (home && *home == '/' && !strchr(home, ':') && used + strlen(home) + 16 < sizeof roots)
		snprintf(roots + used, sizeof roots - used, "%s%s/.local", used ? ":" : "", home);
	return *roots ? add(server, "CRICKET_LIBRARY_ROOTS=%s", roots) : 0;
}

/* Files, but not the soft GPU's driver, which ckt_spawn_check deals with. */
static size_t keep_libraries(char **paths, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct stat status;
		if (stat(paths[i], &status) == 0 && S_ISREG(status.st_mode) &&
			!strstr(paths[i], "/libcuda.so"))
			paths[kept++] = paths[i];
	}
	return kept;
}

/*
 * Where workers find the soft GPU's own libraries: beside its driver if installed; the build has a
 * directory for them.
 */
static int add_soft(struct ckt_server *server)
{
	static const char *const patterns[] = {
		"lib*.so", "lib*.so.*", "libs/lib*.so", "libs/lib*.so.*"};
	const char *driver = server->driver.path;
	int length = (int)(strrchr(driver, '/') - driver);
	char pattern[CKT_PATH_MAX + 16], copies[CKT_PATH_MAX];
	glob_t found = {0};
	for (unsigned i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		snprintf(pattern, sizeof pattern, "%.*s/%s", length, driver, patterns[i]);
		glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
	}
	/* globfree() uses the count and the order that it set. */
	char **paths = calloc(found.gl_pathc + 1, sizeof *paths);
	if (!paths) {
		globfree(&found);
		return -ENOMEM;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		paths[i] = found.gl_pathv[i];
	const char *const *files = (const char *const *)paths;
	size_t count = keep_libraries(paths, found.gl_pathc);
	/* Only root's server has a place for copies. */
	bool copied = server->user.change && !server->user.user_namespace && count &&
		!ckt_spawn_user_reads(server, files, count) &&
		ckt_daemon_files_copy_together(files, count, copies) == 0;
	int error = copied ? add(server, "CRICKET_LIBRARY_SOFT=%s", copies)
			   : add(server, "CRICKET_LIBRARY_SOFT=%.*s:%.*s/libs", length, driver,
				     length, driver);
	free(paths);
	globfree(&found);
	return error;
}

int ckt_daemon_libraries_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const char *path = server->options.library_path;
	int error = path ? check_path(path, ret_message, message_size) : 0;
	if (error)
		return error;
	if (ckt_paths_find_inside(server->inside_path))
		*server->inside_path = 0;
	error = add(server, "CRICKET_LIBRARY_OWNER=%u", geteuid());
	if (!error && path)
		error = add(server, "CRICKET_LIBRARY_PATH=%s", path);
	if (!error && server->driver.soft)
		error = add_soft(server);
	if (!error)
		error = add_roots(server);
	if (error)
		snprintf(ret_message, message_size, "cannot start: %s", strerror(-error));
	return error;
}

void ckt_daemon_libraries_fini(struct ckt_server *server)
{
	while (server->library_variable_count)
		free(server->library_variables[--server->library_variable_count]);
}
