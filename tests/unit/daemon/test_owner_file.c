/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/owner_file.c: what is written is read, and nothing else is believed. */
#include "server/daemon/session/owner_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

static char *file_of(const char *id, const char *suffix)
{
	static char path[CKT_PATH_MAX];
	snprintf(path, sizeof path, "%.3000s/%s%s", server.socket_dir, id, suffix);
	return path;
}

static void test_file(void)
{
	struct ckt_session *session = session_new("aaaaaaaaaaa1");
	uint32_t owner = 7;
	struct stat status;
	NO(ckt_owner_file_read(session, &owner));
	IS(owner, 7);
	static const uint32_t owners[] = {0, 1001, 0x80000001u, CKT_UID_UNKNOWN};
	for (unsigned i = 0; i < COUNT(owners); i++) {
		session->uid = owners[i];
		ckt_owner_file_write(session);
		YES(ckt_owner_file_read(session, &owner));
		IS(owner, owners[i]);
	}
	/* The third line is about its MPS; the second may be empty. */
	char note[CKT_MPS_NOTE];
	write_file(file_of(session->id, ".owner"), "5\n\na note\n", 0600);
	YES(ckt_owner_file_read(session, &owner));
	TEXT(session->container, "");
	ckt_owner_file_read_space(session, note);
	TEXT(note, "a note");
	write_file(file_of(session->id, ".owner"), "5\n/a\n", 0600);
	ckt_owner_file_read_space(session, note);
	TEXT(note, "");
	ckt_owner_file_write(session);
	IS(stat(file_of(session->id, ".owner"), &status), 0);
	IS(status.st_mode & 0777, 0600);
	/* Cut off, too large, no number, a link. */
	static const char *const wrong[] = {
		"", "10", "4294967296\n", "-1\n", "x\n", "12345678901234567890\n"};
	for (unsigned i = 0; i < COUNT(wrong); i++) {
		write_file(file_of(session->id, ".owner"), wrong[i], 0600);
		NO(ckt_owner_file_read(session, &owner));
	}
	write_file(path_in("elsewhere"), "5\n", 0600);
	unlink(file_of(session->id, ".owner"));
	MUST(symlink(path_in("elsewhere"), file_of(session->id, ".owner")), 0);
	NO(ckt_owner_file_read(session, &owner));
	ckt_owner_file_write(session);
	YES(ckt_owner_file_read(session, &owner));
	/* Of sessions that are gone nothing stays, and nothing else is touched. */
	write_file(file_of("bbbbbbbbbbb1", ".owner"), "5\n", 0600);
	write_file(file_of("bbbbbbbbbbb1", ".owner-new"), "5\n", 0600);
	write_file(file_of("bbbbbbbbbbb1", ".other"), "5\n", 0600);
	ckt_owner_files_sweep(&server);
	IS(access(file_of("bbbbbbbbbbb1", ".owner"), F_OK), -1);
	IS(access(file_of("bbbbbbbbbbb1", ".owner-new"), F_OK), -1);
	IS(access(file_of("bbbbbbbbbbb1", ".other"), F_OK), 0);
	YES(ckt_owner_file_read(session, &owner));
	unlink(file_of("bbbbbbbbbbb1", ".other"));
	ckt_owner_file_remove(&server, session->id);
	NO(ckt_owner_file_read(session, &owner));
	session_drop(session);
}

UNIT_SUITE(owner_file, {"file", test_file})
