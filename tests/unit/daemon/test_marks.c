/* server/daemon/marks.c: marks: written whole, read back, only of ids that are ids, and gone after a day. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "inside.h"
#include "marks.h"

static const char id[] = "0123456789ab";

static void test_marks(void)
{
	char text[64];
	for (int i = 0; i < CKT_MARKS; i++) {
		enum ckt_mark mark = (enum ckt_mark)i;
		NO(ckt_mark_read(&server, id, mark, text, sizeof text));
		IS(ckt_mark_write(&server, id, mark, "first\n"), 0);
		IS(ckt_mark_write(&server, id, mark, "second"), 0);
		YES(ckt_mark_read(&server, id, mark, text, sizeof text));
		TEXT(text, "second");
		NO(ckt_mark_read(&server, "0123456789ac", mark, text, sizeof text));
		YES(ckt_mark_read(&server, id, mark, text, 4));	/* cut to what there is room for */
		TEXT(text, "sec");
		ckt_mark_remove(&server, id, mark);
		NO(ckt_mark_read(&server, id, mark, text, sizeof text));
		ckt_mark_remove(&server, id, mark);
	}
	static const char *const bad[] = {"", "0123456789a", "0123456789abc", "0123456789AB", "../../../etc", "0123456789a/", "0123456789a."};
	for (size_t i = 0; i < COUNT(bad); i++) {
		IS(ckt_mark_write(&server, bad[i], CKT_MARK_MOVED, "x"), -EINVAL);
		NO(ckt_mark_read(&server, bad[i], CKT_MARK_MOVED, text, sizeof text));
		ckt_mark_remove(&server, bad[i], CKT_MARK_MOVED);
	}
}

static void test_links(void)
{
	char text[64], path[CKT_PATH_MAX + 32];
	/* A link that somebody planted is not followed. */
	snprintf(path, sizeof path, "%s/%s.moved", server.socket_dir, id);
	IS(symlink("/etc/passwd", path), 0);
	NO(ckt_mark_read(&server, id, CKT_MARK_MOVED, text, sizeof text));
	IS(ckt_mark_write(&server, id, CKT_MARK_MOVED, "there"), 0);	/* replaced */
	YES(ckt_mark_read(&server, id, CKT_MARK_MOVED, text, sizeof text));
	snprintf(path, sizeof path, "%s/%s.moved.new", server.socket_dir, id);
	IS(symlink("/tmp/planted", path), 0);
	YES(ckt_mark_write(&server, id, CKT_MARK_MOVED, "x") < 0);
	unlink(path);
	ckt_mark_remove(&server, id, CKT_MARK_MOVED);
}

static void test_age(void)
{
	static const struct {
		const char *name;
		bool old, stays;
	} cases[] = {
		{"00000000000a.parked", true, false}, {"00000000000b.moved", true, false}, {"00000000000c.paused", true, true},
		{"00000000000d.moved.new", true, false}, {"00000000000e.moved", false, true}, {"notes.moved", true, true}, {"00000000000f.sock", true, true},
	};
	char path[CKT_PATH_MAX + 32];
	struct timespec old[2] = {{.tv_sec = time(NULL) - 86500}, {.tv_sec = time(NULL) - 86500}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(path, sizeof path, "%s/%s", server.socket_dir, cases[i].name);
		write_file(path, "x", 0600);
		if (cases[i].old)
			IS(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	ckt_marks_watch(&server);
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(path, sizeof path, "%s/%s", server.socket_dir, cases[i].name);
		IS(access(path, F_OK) == 0, cases[i].stays);
		unlink(path);
	}
	YES(server.marks_timer.link != NULL);	/* it looks again */
	ckt_timer_clear(&server.marks_timer);
}

UNIT_SUITE(marks, {"marks", test_marks}, {"links", test_links}, {"age", test_age})
