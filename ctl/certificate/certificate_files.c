/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are written completely or not at all; see certificate_files.h. */
#include "ctl/certificate/certificate_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/file_io.h"
#include "ctl/client_address.h"

enum { NAME_SIZE = 64 };

int ckt_ctl_problem_set(struct ckt_ctl_problem *problem, int error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(problem->text, sizeof problem->text, format, arguments);
	va_end(arguments);
	return -error;
}

static const char *remedy_of(int error)
{
	return error == ENOSPC || error == EDQUOT ? "make room there"
		: error == EROFS                  ? "choose a directory that can be written"
						  : "look at its owner and mode";
}

static int failed(const struct ckt_ctl_staged *staged, const char *name, int error,
	struct ckt_ctl_problem *problem)
{
	return ckt_ctl_problem_set(problem, error, "%s%s%s: %s; %s", staged->path, *name ? "/" : "",
		name, strerror(error), remedy_of(error));
}

/* The directories above the path. */
static int make_parents(const struct ckt_ctl_staged *staged)
{
	char parent[CKT_CTL_STAGED_PATH];
	snprintf(parent, sizeof parent, "%s", staged->path);
	char *slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return 0;
	*slash = 0;
	/* The configuration of the server, whose user must get in; what is secret has its own mode. */
	if (strcmp(parent, "/etc/cricket") == 0 && mkdir(parent, 0755) == 0)
		return 0;
	return ckt_ctl_state_directory(parent);
}

static int make_fresh(struct ckt_ctl_staged *staged)
{
	int result = make_parents(staged);
	if (result)
		return result;
	snprintf(staged->temporary, sizeof staged->temporary, "%s.XXXXXX", staged->path);
	if (!mkdtemp(staged->temporary)) /* 0700 */
		return -errno;
	staged->fresh = true;
	staged->fd = open(staged->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return staged->fd < 0 ? -errno : 0;
}

int ckt_ctl_staged_begin(
	const char *path, struct ckt_ctl_staged *ret_staged, struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_staged *staged = ret_staged;
	struct stat st;
	size_t length = strlen(path);
	*staged = (struct ckt_ctl_staged){.fd = -1};
	while (length > 1 && path[length - 1] == '/')
		length--;
	if (!length || length > CKT_CTL_STAGED_PATH - NAME_SIZE)
		return ckt_ctl_problem_set(problem, ENAMETOOLONG,
			"'%.64s': the path is empty or too long; choose another directory", path);
	memcpy(staged->path, path, length);
	staged->fd = open(staged->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (staged->fd < 0 && errno == ENOENT) {
		int result = make_fresh(staged);
		return result ? failed(staged, "", -result, problem) : 0;
	}
	if (staged->fd < 0 || fstat(staged->fd, &st))
		return failed(staged, "", errno, problem);
	if (st.st_mode & 0022)
		return ckt_ctl_problem_set(problem, EPERM,
			"%s: others than its owner may write it (mode %04o); run chmod go-w on it",
			staged->path, (unsigned)st.st_mode & 07777);
	return 0;
}

static void waiting_name(const struct ckt_ctl_staged *staged, const char *name, char ret[NAME_SIZE])
{
	snprintf(ret, NAME_SIZE, staged->fresh ? "%s" : ".%s.new", name);
}

int ckt_ctl_staged_put(struct ckt_ctl_staged *staged, const char *name, mode_t mode,
	const void *data, size_t size_bytes, struct ckt_ctl_problem *problem)
{
	char waiting[NAME_SIZE];
	waiting_name(staged, name, waiting);
	/* One of a killed process. */
	if (!staged->fresh)
		unlinkat(staged->fd, waiting, 0);
	int fd = openat(
		staged->fd, waiting, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return failed(staged, name, errno, problem);
	staged->names[staged->count++] = name;
	int result = ckt_write_synced(fd, data, size_bytes);
	/* Not what the umask leaves. */
	if (!result && fchmod(fd, mode))
		result = -errno;
	if (close(fd) && !result)
		result = -errno;
	return result ? failed(staged, name, -result, problem) : 0;
}

static int sync_parent(const char *path)
{
	char parent[CKT_CTL_STAGED_PATH];
	snprintf(parent, sizeof parent, "%s", path);
	char *slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = 0;
	int fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = fd < 0 || fsync(fd) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return result;
}

static int keep_fresh(struct ckt_ctl_staged *staged)
{
	if (fsync(staged->fd) ||
		renameat2(AT_FDCWD, staged->temporary, AT_FDCWD, staged->path, RENAME_NOREPLACE))
		return -errno;
	staged->count = 0;
	staged->fresh = false;
	return sync_parent(staged->path);
}

int ckt_ctl_staged_keep(struct ckt_ctl_staged *staged, struct ckt_ctl_problem *problem)
{
	char waiting[NAME_SIZE];
	if (staged->fresh) {
		int result = keep_fresh(staged);
		return result ? failed(staged, "", -result, problem) : 0;
	}
	for (unsigned i = 0; i < staged->count; i++) {
		waiting_name(staged, staged->names[i], waiting);
		if (renameat(staged->fd, waiting, staged->fd, staged->names[i]))
			return failed(staged, staged->names[i], errno, problem);
		ckt_fault(CKT_FAULT_CTL_CERTIFICATE_NAMED);
	}
	staged->count = 0;
	return fsync(staged->fd) ? failed(staged, "", errno, problem) : 0;
}

void ckt_ctl_staged_end(struct ckt_ctl_staged *staged)
{
	char waiting[NAME_SIZE];
	for (unsigned i = 0; i < staged->count; i++) {
		waiting_name(staged, staged->names[i], waiting);
		unlinkat(staged->fd, waiting, 0);
	}
	if (staged->fresh)
		rmdir(staged->temporary);
	if (staged->fd >= 0)
		close(staged->fd);
	*staged = (struct ckt_ctl_staged){.fd = -1};
}
