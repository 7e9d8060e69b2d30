/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the process ready to be saved (cricketctl checkpoint --with-client).  The library must have
 * nothing open then.  Each thread of the program must be in its own code, or asleep in a call whose
 * command was not sent.
 *
 *	cricketctl: SESSION.hold in the state directory --> told through the worker --> we close the socket, write SESSION.quiet and wait
 *	cricketctl: saves the process, removes SESSION.hold ------------------------->  we remove SESSION.quiet and resume
 *
 * The thread that noticed the end of the connection waits here, before it looks for the session.
 * Every other call waits for that thread.  The saved process then exists twice: the original
 * continues, and the restored copy is another process with the same process id.  The copy notices
 * by its start time that it is not the original.  The copy belongs to the restored session, which
 * has a later generation, and must never use the original's session.  So the copy increments its
 * generation, and older sessions refuse it.
 *
 * The client opens only paths that it makes itself, never a path from a server.  If there is no
 * hold file, the request did not come from this host, and the client resumes as after any break.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/conn/conn.h"
#include "client/conn/settings.h"
#include "base/boot_id.h"
#include "base/log.h"

enum {
	PATH_SIZE = CKT_ADDRESS_TEXT_MAX + CKT_SESSION_ID_SIZE + 16,
	WAIT_NS = 5000000,
	IDENTITY_SIZE = 96
};

static void state_path(const struct ckt_conn *conn, const char *suffix, char ret_path[PATH_SIZE])
{
	snprintf(ret_path, PATH_SIZE, "%s/%s%s", ckt_settings.state_dir, conn->session, suffix);
}

static bool read_line(const char *path, char *ret_line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_line, size - 1);
	if (fd >= 0)
		close(fd);
	ret_line[n > 0 ? n : 0] = 0;
	ret_line[strcspn(ret_line, "\n")] = 0;
	return n > 0;
}

/* A text that is unique to this process: the boot id and the start time of the process. */
static void identity(char ret_text[IDENTITY_SIZE])
{
	char boot[CKT_BOOT_ID_SIZE], status[1024] = "";
	unsigned long long began = 0;
	ckt_boot_id(boot);
	read_line("/proc/self/stat", status, sizeof status);
	/*
	 * The name in brackets may contain any character; the 20th number after it is the start
	 * time.
	 */
	char *p = strrchr(status, ')');
	for (unsigned field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		began = strtoull(p, NULL, 10);
	snprintf(ret_text, IDENTITY_SIZE, "%s %llu", boot, began);
}

static bool say_quiet(const char *path)
{
	char temporary[PATH_SIZE + 8];
	snprintf(temporary, sizeof temporary, "%s.tmp", path);
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool written = fd >= 0 && dprintf(fd, "%d\n", (int)getpid()) > 0;
	if (fd >= 0)
		close(fd);
	return written && rename(temporary, path) == 0;
}

static void close_socket(struct ckt_conn *conn)
{
	/* A sender that still uses the old descriptor holds this lock. */
	pthread_mutex_lock(&conn->send_lock);
	ckt_transport_close(&conn->transport);
	pthread_mutex_unlock(&conn->send_lock);
}

/* Nothing is open during this wait, so the process may be saved at any moment of it. */
static void wait_for_end_of(const char *hold, pid_t holder)
{
	struct timespec pause = {.tv_nsec = WAIT_NS};
	while (access(hold, F_OK) == 0) {
		if (kill(holder, 0) && errno == ESRCH) {
			ckt_debug("process %d, which asked this process to be quiet, has ended",
				(int)holder);
			unlink(hold);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

void ckt_conn_quiesce(struct ckt_conn *conn)
{
	/* The process would have its other connections open. */
	if (ckt_conn_count > 1) {
		ckt_log_user("a program with sessions at several servers cannot be saved "
			     "with its client: session %s continues",
			conn->session);
		return;
	}
	char hold[PATH_SIZE], quiet[PATH_SIZE], line[32], before[IDENTITY_SIZE],
		after[IDENTITY_SIZE];
	state_path(conn, ".hold", hold);
	state_path(conn, ".quiet", quiet);
	pid_t holder = ckt_settings.state_dir[0] && read_line(hold, line, sizeof line)
		? (pid_t)strtol(line, NULL, 10)
		: 0;
	if (holder <= 0) {
		ckt_debug("asked to be quiet, but no process on this host requests it: ignoring");
		return;
	}
	close_socket(conn);
	identity(before);
	if (!say_quiet(quiet)) {
		ckt_log_user("cannot write %s: %s", quiet, strerror(errno));
		return;
	}
	wait_for_end_of(hold, holder);
	unlink(quiet);
	identity(after);
	if (strcmp(before, after) == 0)
		return;
	/* This process is the restored copy. */
	char address[CKT_ADDRESS_TEXT_MAX];
	conn->generation++;
	/* No copy of the restored session is known. */
	conn->copy = conn->offered_copy = 0;
	conn->moved_to[0] = 0;
	if (ckt_conn_file_address(conn, address, sizeof address))
		memcpy(conn->address_text, address, sizeof conn->address_text);
	ckt_debug("session %s: this process was restored; looking for generation %llu at %s",
		conn->session, (unsigned long long)conn->generation, conn->address_text);
}
