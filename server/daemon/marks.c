/* What outlives a worker or the server; see marks.h. */
#include "marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc/log.h"
#include "rpc/session.h"

enum { AGE_MAX_S = 86400, WATCH_MS = 3600 * 1000 };

static const char *const suffixes[CKT_MARKS] = {"parked", "moved", "paused"};

/* Ids come from peers too. */
static bool good_id(const char *session)
{
	return strlen(session) == CKT_SESSION_ID_SIZE && strspn(session, "0123456789abcdef") == CKT_SESSION_ID_SIZE;
}

static void mark_path(const struct ckt_server *server, const char *session, enum ckt_mark mark, const char *end, char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/%.12s.%s%s", server->socket_dir, session, suffixes[mark], end);
}

int ckt_mark_write(const struct ckt_server *server, const char *session, enum ckt_mark mark, const char *text)
{
	char path[CKT_PATH_MAX], temporary[CKT_PATH_MAX];
	if (!good_id(session))
		return -EINVAL;
	mark_path(server, session, mark, "", path);
	mark_path(server, session, mark, ".new", temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int result = dprintf(fd, "%s\n", text) < 0 || fsync(fd) ? -errno : 0;
	close(fd);
	if (!result && rename(temporary, path))
		result = -errno;
	if (result)
		unlink(temporary);
	return result;
}

bool ckt_mark_read(const struct ckt_server *server, const char *session, enum ckt_mark mark, char *ret_text, size_t text_size)
{
	char path[CKT_PATH_MAX];
	if (!good_id(session))
		return false;
	mark_path(server, session, mark, "", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, ret_text, text_size - 1);
	close(fd);
	if (n < 0)
		return false;
	ret_text[n] = 0;
	ret_text[strcspn(ret_text, "\n")] = 0;
	return true;
}

void ckt_mark_remove(const struct ckt_server *server, const char *session, enum ckt_mark mark)
{
	char path[CKT_PATH_MAX];
	if (!good_id(session))
		return;
	mark_path(server, session, mark, "", path);
	unlink(path);
}

/* "ID.parked" and the like; a temporary one that a killed server left counts too. */
static bool is_mark(const char *name)
{
	const char *end = name + CKT_SESSION_ID_SIZE;
	if (strlen(name) <= CKT_SESSION_ID_SIZE || strspn(name, "0123456789abcdef") != CKT_SESSION_ID_SIZE || *end++ != '.')
		return false;
	return strncmp(end, suffixes[CKT_MARK_PARKED], 6) == 0 || strncmp(end, suffixes[CKT_MARK_MOVED], 5) == 0 || strstr(end, ".new");
}

static void expire(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, marks_timer);
	DIR *dir = opendir(server->socket_dir);
	struct stat st;
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (is_mark(entry->d_name) && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    time(NULL) - st.st_mtime > AGE_MAX_S)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	ckt_timer_set(&server->loop, timer, WATCH_MS);
}

void ckt_marks_watch(struct ckt_server *server)
{
	server->marks_timer.fire = expire;
	expire(&server->marks_timer);
}
