/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/mps_adopt.c: daemons and sessions of an earlier server. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mps_server.h"
#include "server/daemon/session/owner_file.h"

static struct ckt_mps_variables variables;

/* The server ends, and this session's worker lives on. */
static void next_server(struct ckt_session *session)
{
	ckt_mps_fini(&server);
	session->mps = (struct ckt_mps_member){0};
	session->child = false;
	ckt_mps_init(&server);
}

/* Of sessions that nobody knows: the directory stays until their workers are gone. */
static void test_leftovers(void)
{
	struct ckt_session *session = session_new("0000000000e0");
	begin();
	YES(ckt_mps_join(session, &server.user, &variables));
	next_server(session);
	ckt_mps_adopt(session);
	YES(session->mps.daemon == NULL);
	ckt_mps_settle(&server);
	IS(count(), 1);
	session->child = true;
	ckt_mps_leave(session);
	IS(count(), 0);
	HAS(read_file(path_in("told")), "quit\n");
	end();
	session_drop(session);
}

static void test_adopt(void)
{
	struct ckt_session *one = session_new("0000000000e0"), *two = session_new("0000000000e1"),
			   *later = session_new("0000000000e2");
	char note[CKT_MPS_NOTE], before[CKT_MPS_NOTE];
	begin();
	ckt_mps_note(one, note);
	TEXT(note, "");
	YES(ckt_mps_join(one, &server.user, &variables) &&
		ckt_mps_join(two, &server.user, &variables));
	one->mps.asked.percent = 40;
	one->mps.asked.below = true;
	ckt_mps_note(one, before);
	HAS(before, " 40 1");
	ckt_owner_file_write(one);
	ckt_owner_file_write(two);
	two->mps = (struct ckt_mps_member){0};
	two->child = false;
	next_server(one);
	ckt_mps_adopt(one);
	ckt_mps_adopt(two);
	MUST(one->mps.daemon != NULL, true);
	YES(one->mps.daemon == two->mps.daemon);
	IS(ckt_mps_members(one), 2);
	YES(one->mps.asked.space && one->mps.asked.below);
	IS(one->mps.asked.percent, 40);
	IS(two->mps.asked.percent, 0);
	ckt_mps_note(one, note);
	TEXT(note, before);
	/* Its daemon serves somebody. */
	ckt_mps_settle(&server);
	IS(count(), 1);
	/* Where workers share nothing, others join; where they do, they would not find it. */
	YES(ckt_mps_join(later, &server.user, &variables));
	YES(later->mps.daemon == one->mps.daemon);
	IS(ckt_mps_members(one), 3);
	ckt_mps_leave(later);
	server.own_sockets = true;
	YES(ckt_mps_join(later, &server.user, &variables));
	YES(later->mps.daemon != one->mps.daemon);
	ckt_mps_leave(later);
	server.own_sockets = false;
	YES(run_until(is_count, &(int){1}));
	ckt_mps_leave(one);
	YES(count() == 1);
	one->child = two->child = true;
	ckt_mps_leave(two);
	YES(run_until(is_count, &(int){0}));
	HAS(read_file(path_in("told")), "quit\n");
	end();
	ckt_owner_file_remove(&server, one->id);
	ckt_owner_file_remove(&server, two->id);
	session_drop(one);
	session_drop(two);
	session_drop(later);
}

/* Files that no server of ours writes: nothing is adopted, and no directory elsewhere is touched. */
static void test_notes(void)
{
	static const char *const notes[] = {"mps-12345678 0 0 0 0", "mps-1234567 0 0 0 0",
		"mps-../../../e 0 0 0 0", "mps-%s 0 0 0 0 0", "mps-%s 0 99 0 0", "mps-%s 0 0 101 0",
		"mps-%s 0 0 0 2", "mps-%s 0 0 0", "x", ""};
	struct ckt_session *session = session_new("0000000000e0");
	char path[CKT_PATH_MAX], name[64], text[256], line[128];
	begin();
	snprintf(name, sizeof name, "%s", "abcdef01");
	snprintf(path, sizeof path, "%.200s/mps-%s", server.socket_dir, name);
	MUST(mkdir(path, 0700), 0);
	for (unsigned i = 0; i <= COUNT(notes); i++) {
		const char *note = i < COUNT(notes) ? notes[i] : "mps-%s 0 0 0 0";
		const char *at = strstr(note, "%s");
		snprintf(line, sizeof line, "%.*s%s%s", at ? (int)(at - note) : 60, note,
			at ? name : "", at ? at + 2 : "");
		snprintf(text, sizeof text, "1001\n\n%s\n", line);
		char file[CKT_PATH_MAX];
		snprintf(file, sizeof file, "%.200s/%s.owner", server.socket_dir, session->id);
		write_file(file, text, 0600);
		ckt_mps_adopt(session);
		IS(session->mps.daemon != NULL, i == COUNT(notes));
	}
	TEXT(session->mps.asked.group, "");
	ckt_mps_leave(session);
	YES(run_until(is_count, &(int){0}));
	/* Of owners that agreed. */
	MUST(mkdir(path, 0700), 0);
	snprintf(text, sizeof text, "%.200s/%s.owner", server.socket_dir, session->id);
	write_file(text, "1001\n\nmps-abcdef01 @lab 0 0 0\n", 0600);
	ckt_mps_adopt(session);
	TEXT(session->mps.asked.group, "lab");
	ckt_mps_leave(session);
	YES(run_until(is_count, &(int){0}));
	ckt_owner_file_remove(&server, session->id);
	end();
	session_drop(session);
}

UNIT_SUITE(mps_adopt, {"leftovers", test_leftovers}, {"adopt", test_adopt}, {"notes", test_notes})
