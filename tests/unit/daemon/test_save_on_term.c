/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/save_on_term.c: --on-term checkpoint:DIR: every session in a directory of
 * its own, under its name only once it is whole.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/save_on_term.h"

static bool over(void *data)
{
	(void)data;
	return server.term_saves == 0;
}

static bool exists(const char *name)
{
	char path[256];
	struct stat st;
	snprintf(path, sizeof path, "%s/term/%s", directory, name);
	return stat(path, &st) == 0;
}

static void test_save(void)
{
	static char option[128];
	char text[64];
	uint32_t owner;
	struct ckt_session *session = session_new("0000000000aa"),
			   *held = session_new("0000000000ab");
	ckt_session_save_all_on_term(&server); /* not asked for */
	IS(server.term_saves, 0);
	snprintf(option, sizeof option, "checkpoint:%s/term", directory);
	server.options.on_term = option;
	held->holder = (struct ckt_peer *)&held; /* somebody saves it already */
	/* What an earlier server left half written goes. */
	IS(mkdir(path_in("term"), 0755), 0);
	IS(mkdir(path_in("term/0000000000aa.partial"), 0700), 0);
	write_file(path_in("term/0000000000aa.partial/manifest"), "old", 0600);
	ckt_session_save_all_on_term(&server);
	IS(server.term_saves, 1);
	IS(worker.calls[CKT_WORKER_HOLD], 0);
	YES(exists("0000000000aa.partial") && !exists("0000000000aa.partial/manifest") &&
		!exists("0000000000aa"));
	YES(run_until(over, NULL));
	run_for(20);
	YES(exists("0000000000aa") && !exists("0000000000aa.partial"));
	IS(worker.calls[CKT_WORKER_SAVE2], 1);
	IS(worker.calls[CKT_WORKER_RELEASE], 1);
	IS(worker.descriptors, 1);
	YES(ckt_session_mark_read(
		&server, "0000000000aa", CKT_MARK_PARKED, &owner, text, sizeof text));
	TEXT(text, "program");
	NO(exists("0000000000ab"));
	ckt_session_mark_remove(&server, "0000000000aa", CKT_MARK_PARKED, 0);
	held->holder = NULL;
	session_drop(held);
	session_drop(session);
}

/* What has ties to its job's other sessions may be saved only where it is held with them. */
static void test_job(void)
{
	struct ckt_session *session = session_new("0000000000ad");
	unsigned holds = worker.calls[CKT_WORKER_HOLD], saves = worker.calls[CKT_WORKER_SAVE2];
	strcpy(session->job, "train");
	ckt_session_save_all_on_term(&server);
	/* Not before it is held. */
	IS(server.term_saves, 1);
	NO(exists("0000000000ad.partial"));
	YES(run_until(over, NULL));
	run_for(20);
	IS(worker.calls[CKT_WORKER_HOLD], holds + 1);
	IS(worker.calls[CKT_WORKER_SAVE2], saves + 1);
	YES(exists("0000000000ad"));
	ckt_session_mark_remove(&server, "0000000000ad", CKT_MARK_PARKED, 0);
	session_drop(session);
}

static void test_failures(void)
{
	char text[64];
	uint32_t owner;
	struct ckt_session *session = session_new("0000000000ac");
	worker.status = -ENOSPC;
	worker.message = "no space";
	ckt_session_save_all_on_term(&server);
	YES(run_until(over, NULL));
	NO(exists("0000000000ac") || exists("0000000000ac.partial"));
	NO(ckt_session_mark_read(
		&server, "0000000000ac", CKT_MARK_PARKED, &owner, text, sizeof text));
	/* The place is taken by another image that is not empty. */
	worker.status = 0;
	IS(mkdir(path_in("term/0000000000ac"), 0700), 0);
	write_file(path_in("term/0000000000ac/manifest"), "precious", 0600);
	ckt_session_save_all_on_term(&server);
	YES(run_until(over, NULL));
	TEXT(read_file(path_in("term/0000000000ac/manifest")), "precious");
	NO(exists("0000000000ac.partial"));
	/* It cannot even begin. */
	server.options.on_term = (char *)"checkpoint:/dev/null/x";
	ckt_session_save_all_on_term(&server);
	IS(server.term_saves, 0);
	server.options.on_term = NULL;
	run_for(20);
	session_drop(session);
}

UNIT_SUITE(term, {"save", test_save}, {"a job's", test_job}, {"failures", test_failures})
