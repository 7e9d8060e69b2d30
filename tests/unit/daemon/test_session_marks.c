/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/session_marks.c: marks: written whole, read back, only of ids that are ids,
 * and gone after a day.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "inside.h"
#include "server/daemon/session/session_marks.h"

static const char id[] = "0123456789ab";

static void test_marks(void)
{
	char text[64];
	uint32_t owner = 0;
	for (int i = 0; i < CKT_MARKS; i++) {
		enum ckt_session_mark mark = (enum ckt_session_mark)i;
		NO(ckt_session_mark_read(&server, id, mark, &owner, text, sizeof text));
		IS(ckt_session_mark_write(&server, id, mark, 1001, true, "first\n"), 0);
		IS(ckt_session_mark_write(&server, id, mark, 1001, true, "second"), 0);
		YES(ckt_session_mark_read(&server, id, mark, &owner, text, sizeof text));
		TEXT(text, "second");
		NO(ckt_session_mark_read(&server, "0123456789ac", mark, &owner, text, sizeof text));
		/* cut to what there is room for */
		YES(ckt_session_mark_read(&server, id, mark, &owner, text, 4));
		TEXT(text, "sec");
		ckt_session_mark_remove(&server, id, mark, 1001);
		NO(ckt_session_mark_read(&server, id, mark, &owner, text, sizeof text));
		ckt_session_mark_remove(&server, id, mark, 1001);
	}
	static const char *const bad[] = {"", "0123456789a", "0123456789abc", "0123456789AB",
		"../../../etc", "0123456789a/", "0123456789a."};
	for (size_t i = 0; i < COUNT(bad); i++) {
		IS(ckt_session_mark_write(&server, bad[i], CKT_MARK_MOVED, 0, true, "x"), -EINVAL);
		NO(ckt_session_mark_read(
			&server, bad[i], CKT_MARK_MOVED, &owner, text, sizeof text));
		ckt_session_mark_remove(&server, bad[i], CKT_MARK_MOVED, 0);
	}
}

static void put_mark(const char *line, time_t when)
{
	struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
	char path[CKT_PATH_MAX + 32];
	snprintf(path, sizeof path, "%s/%s.moved", server.socket_dir, id);
	write_file(path, line, 0600);
	IS(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Whose it is, and that we wrote it. */
static void test_owners(void)
{
	char text[64], line[256], path[CKT_PATH_MAX + 32];
	uint32_t owner;
	time_t now = time(NULL);
	server.key_made = now - 100;
	NO(ckt_session_mark_exists(&server, id));
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1001, true, "there"), 0);
	YES(ckt_session_mark_exists(&server, id));
	YES(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	IS(owner, 1001);
	/* Not another user's to replace or remove; root's it is. */
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1002, true, "elsewhere"), -EPERM);
	ckt_session_mark_remove(&server, id, CKT_MARK_MOVED, 1002);
	YES(ckt_session_mark_exists(&server, id));
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 0, true, "by root"), 0);
	YES(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text) &&
		owner == 0);
	TEXT(text, "by root");
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1001, true, "mine"), -EPERM);
	ckt_session_mark_remove(&server, id, CKT_MARK_MOVED, 0);
	/*
	 * Under an id that is not proven: gives way to whose it is, and to no further one that only
	 * says so.
	 */
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1002, false, "squatted"), 0);
	NO(ckt_session_mark_is_proven(&server, id, CKT_MARK_MOVED));
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1001, false, "squatted too"),
		-EPERM);
	snprintf(path, sizeof path, "%s/%s.moved", server.socket_dir, id);
	snprintf(line, sizeof line, "%s", read_file(path));
	line[1] = '2';
	put_mark(line, now);
	NO(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	line[1] = '3';
	put_mark(line, now);
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1001, true, "there"), 0);
	YES(ckt_session_mark_is_proven(&server, id, CKT_MARK_MOVED));
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 1002, false, "squatted"), -EPERM);
	/* Changed since, or of another session. */
	snprintf(path, sizeof path, "%s/%s.moved", server.socket_dir, id);
	snprintf(line, sizeof line, "%s", read_file(path));
	line[strlen(line) - 2] ^= 1;
	put_mark(line, now);
	NO(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	line[strlen(line) - 2] ^= 1;
	put_mark(line, now);
	YES(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	line[6] = '2';
	put_mark(line, now);
	NO(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	static const char *const bad[] = {"v2 ", "v2 1001", "v2 x y z", "v2 1001 00 there",
		"v2 -1 00 there", "v2 99999999999 00 x", "there\n", ""};
	for (size_t i = 0; i < COUNT(bad); i++) {
		put_mark(bad[i], now);
		NO(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
		/* A build that had no key wrote it; its owner is not known. */
		put_mark(bad[i], now - 200);
		IS(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text),
			strncmp(bad[i], "v2 ", 3) != 0);
		IS(owner, CKT_UID_UNKNOWN);
	}
	ckt_session_mark_remove(&server, id, CKT_MARK_MOVED, 0);
	server.key_made = 0;
}

static void test_links(void)
{
	char text[64], path[CKT_PATH_MAX + 32];
	uint32_t owner;
	/* A link that somebody planted is not followed. */
	snprintf(path, sizeof path, "%s/%s.moved", server.socket_dir, id);
	IS(symlink("/etc/passwd", path), 0);
	NO(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	IS(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 0, true, "there"), 0); /* replaced */
	YES(ckt_session_mark_read(&server, id, CKT_MARK_MOVED, &owner, text, sizeof text));
	snprintf(path, sizeof path, "%s/%s.moved.new", server.socket_dir, id);
	IS(symlink("/tmp/planted", path), 0);
	YES(ckt_session_mark_write(&server, id, CKT_MARK_MOVED, 0, true, "x") < 0);
	unlink(path);
	ckt_session_mark_remove(&server, id, CKT_MARK_MOVED, 0);
}

static void test_age(void)
{
	static const struct {
		const char *name;
		bool old, stays;
	} cases[] = {
		{"00000000000a.parked", true, false},
		{"00000000000b.moved", true, false},
		{"00000000000c.paused", true, true},
		{"00000000000d.moved.new", true, false},
		{"00000000000e.moved", false, true},
		{"notes.moved", true, true},
		{"00000000000f.sock", true, true},
	};
	char path[CKT_PATH_MAX + 32];
	struct timespec old[2] = {{.tv_sec = time(NULL) - 86500}, {.tv_sec = time(NULL) - 86500}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(path, sizeof path, "%s/%s", server.socket_dir, cases[i].name);
		write_file(path, "x", 0600);
		if (cases[i].old)
			IS(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	ckt_session_marks_watch(&server);
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(path, sizeof path, "%s/%s", server.socket_dir, cases[i].name);
		IS(access(path, F_OK) == 0, cases[i].stays);
		unlink(path);
	}
	YES(server.marks_timer.link != NULL); /* it looks again */
	ckt_timer_clear(&server.marks_timer);
}

UNIT_SUITE(marks, {"marks", test_marks}, {"owners", test_owners}, {"links", test_links},
	{"age", test_age})
