/*
 * cricketctl checkpoint SESSION DIR
 *
 * The image is written into a new directory beside DIR, which takes DIR's name once all of it is on the disk: DIR is whole or not there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"

enum { DEFAULT_DEADLINE_S = 60, DEADLINE_MAX_S = 86400, PATH_SIZE = 4096, DEPTH_MAX = 8 };

static int refuse(const char *path, const char *why)
{
	fprintf(stderr, "cricketctl: %s: %s\n", path, why);
	return CKT_EXIT_REFUSED;
}

/* Without the slashes at the end. */
static int copy_path(const char *text, char ret_path[PATH_SIZE])
{
	size_t length = strlen(text);
	while (length > 1 && text[length - 1] == '/')
		length--;
	if (!length || length >= PATH_SIZE)
		return -ENAMETOOLONG;
	memcpy(ret_path, text, length);
	ret_path[length] = 0;
	return 0;
}

/* An empty directory may be replaced; anything else that exists stays. */
static int check_target(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return errno == ENOENT ? CKT_EXIT_DONE : refuse(path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return refuse(path, "exists and is no directory: name another");
	DIR *dir = opendir(path);
	if (!dir)
		return refuse(path, strerror(errno));
	unsigned entries = 0;
	while (readdir(dir))
		entries++;
	closedir(dir);
	return entries > 2 ? refuse(path, "exists and is not empty: name another directory, or remove it first") : CKT_EXIT_DONE;
}

/* Best effort: what is left over is named to the user. */
static void remove_tree(int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) && depth < DEPTH_MAX)
			remove_tree(dirfd(dir), entry->d_name, depth + 1);
	}
	if (dir)
		closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

static int sync_parent(const char *path)
{
	char parent[PATH_SIZE];
	strcpy(parent, path);
	char *slash = strrchr(parent, '/');
	if (!slash)
		strcpy(parent, ".");
	else
		slash[slash == parent] = 0;
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fsync(fd) ? -errno : 0;
	close(fd);
	return result;
}

static int parse_deadline(const char *text, unsigned *ret_ms)
{
	char *end;
	if (!text) {
		*ret_ms = DEFAULT_DEADLINE_S * 1000;
		return CKT_EXIT_DONE;
	}
	unsigned long seconds = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
	if (!seconds || *end || seconds > DEADLINE_MAX_S) {
		fprintf(stderr, "cricketctl: --deadline: '%s' is not valid: write a number of seconds from 1 to %d\n", text,
			DEADLINE_MAX_S);
		return CKT_EXIT_USAGE;
	}
	*ret_ms = (unsigned)seconds * 1000;
	return CKT_EXIT_DONE;
}

static int print(const struct ckt_ctl_args *args, const ckt_control_checkpoint_res *res, const char *path)
{
	char size[32];
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:o, s:o, s:I, s:b}", "session", ckt_ctl_json_text(res->session), "directory",
						    ckt_ctl_json_text(path), "bytes", (json_int_t)res->bytes, "stopped", args->stop));
	printf("session %s written to %s, %s%s\n", res->session, path, ckt_ctl_size_text(res->bytes, size, sizeof size),
	       args->stop ? "; the session has ended" : "");
	return ckt_ctl_flush();
}

/* temporary: a name that mkdtemp made. */
static int save(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, unsigned deadline_ms, const char *temporary,
		const char *path)
{
	ckt_control_checkpoint_args call = {.session = args->words[0], .stop = args->stop, .deadline_ms = deadline_ms};
	ckt_control_checkpoint_res res = {0};
	int fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return refuse(temporary, strerror(errno));
	/* How long the writing takes depends on the disk, so only the draining has a deadline. */
	int status = ckt_ctl_call(server, CKT_CONTROL_CHECKPOINT, (xdrproc_t)xdr_ckt_control_checkpoint_args, &call,
				  (xdrproc_t)xdr_ckt_control_checkpoint_res, &res, -1, fd);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	if (status == CKT_EXIT_DONE && fsync(fd))
		status = refuse(temporary, strerror(errno));
	close(fd);
	if (status == CKT_EXIT_DONE) {
		int result = rename(temporary, path) ? -errno : 0;
		if (!result)
			result = sync_parent(path);
		status = result ? refuse(path, strerror(-result)) : print(args, &res, path);
	}
	xdr_free((xdrproc_t)xdr_ckt_control_checkpoint_res, (char *)&res);
	return status;
}

int ckt_ctl_checkpoint(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	char path[PATH_SIZE], temporary[PATH_SIZE + 32];
	unsigned deadline_ms;
	int status = parse_deadline(args->deadline, &deadline_ms);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_connect_unix(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_check_session(args->words[0]);
	if (status == CKT_EXIT_DONE)
		status = copy_path(args->words[1], path) ? refuse(args->words[1], "the path is empty or too long") : check_target(path);
	if (status == CKT_EXIT_DONE) {
		snprintf(temporary, sizeof temporary, "%s.partial.XXXXXX", path);
		if (!mkdtemp(temporary)) {
			status = refuse(path, strerror(errno));
		} else {
			status = save(args, &server, deadline_ms, temporary, path);
			if (status != CKT_EXIT_DONE) {
				remove_tree(AT_FDCWD, temporary, 0);
				if (access(temporary, F_OK) == 0)
					fprintf(stderr, "cricketctl: %s is left over and may be removed\n", temporary);
			}
		}
	}
	ckt_ctl_disconnect(&server);
	return status;
}
