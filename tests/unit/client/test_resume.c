/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/resume.c (client/conn/conn.h): the session's file, the reader's place, and a session
 * that is nowhere.  What is sent again to one that is found: test_conn.c, against a server that
 * counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

static void test_file(void)
{
	static const struct {
		const char *text;
		bool found;
		const char *address;
	} rows[] = {
		{"host:1\n", true, "host:1"},
		{"host:1", true, "host:1"},
		{"host:1 more\n", true, "host:1"},
		{"unix:/a\r\n", true, "unix:/a"},
		{"host:1\ngeneration 0\n", true, "host:1"},
		{"host:1\ngeneration 1\n", true, "host:1"},
		{"host:1\nother\n", true, "host:1"},
		/* The session of a saved process. */
		{"host:1\ngeneration 2\n", false, NULL},
		{"", false, NULL},
		{"\n", false, NULL},
		{" host\n", false, NULL},
	};
	char path[64], address[CKT_ADDRESS_TEXT_MAX], small[5];
	int peer = parts_open();
	strcpy(ckt_settings.state_dir, "/tmp");
	snprintf(ckt_conn.session, sizeof ckt_conn.session, "r%011d", (int)getpid());
	snprintf(path, sizeof path, "/tmp/%s", ckt_conn.session);
	NO(ckt_conn_file_address(&ckt_conn, address, sizeof address));
	for (size_t i = 0; i < COUNT(rows); i++) {
		FILE *file = fopen(path, "w");
		MUST(file != NULL, 1);
		fputs(rows[i].text, file);
		fclose(file);
		IS(ckt_conn_file_address(&ckt_conn, address, sizeof address), rows[i].found);
		if (rows[i].found)
			TEXT(address, rows[i].address);
		ckt_conn_file_address(&ckt_conn, small, sizeof small);
		YES(strlen(small) < sizeof small);
	}
	ckt_settings.state_dir[0] = 0;
	NO(ckt_conn_file_address(&ckt_conn, address, sizeof address));
	unlink(path);
	parts_close(peer);
}

static void done(void *data, CUresult result, struct ckt_cursor *results)
{
	*(CUresult *)data = result;
}

static void test_lost(void)
{
	CUresult result = CUDA_SUCCESS;
	struct ckt_call call;
	int peer = parts_open();
	memset(&ckt_settings, 0, sizeof ckt_settings);
	strcpy(ckt_conn.address_text, "unix:/nonexistent");
	/* Twice the same, and one more. */
	strcpy(ckt_settings.standby[0], "unix:/nonexistent");
	strcpy(ckt_settings.standby[1], "unix:/missing/first");
	strcpy(ckt_settings.standby[2], "unix:/missing/second");
	ckt_settings.standby_count = 3;
	MUST(ckt_call_begin(&call, 7, 0, CKT_CALL_F_NUMBERED), CUDA_SUCCESS);
	ckt_call_async(&call, done, &result);
	/* Old news: that connection is another's. */
	ckt_conn_broken(&ckt_conn, ckt_conn.epoch - 1, -ECONNRESET);
	IS(ckt_conn.state, CKT_CONN_OPEN);
	/* Its last words still count. */
	parts_reply(peer,
		&(struct ckt_reply_header){.xid = 4711, .deferred = CUDA_ERROR_INVALID_HANDLE},
		NULL, 0);
	parts_stderr_begin();
	errno = 5;
	ckt_conn_broken(&ckt_conn, ckt_conn.epoch, -ECONNRESET);
	IS(errno, 5);
	const char *said = parts_stderr_end();
	HAS(said, "session " PARTS_SESSION " on unix:/nonexistent is lost");
	HAS(said, "Connection reset by peer");
	/* Each place with its reason, once. */
	const char *first = strstr(said, "unix:/missing/first"),
		   *second = strstr(said, "unix:/missing/second"), *own = strstr(said, "is lost: ");
	YES(first && second && own && own < first && first < second);
	YES(own && strstr(own, "; ") && strstr(own, "; ") < first);
	YES(own && !strstr(strstr(own, "; ") + 1, "unix:/nonexistent"));
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(ckt_conn.state, CKT_CONN_LOST);
	IS(ckt_conn.deferred, CUDA_ERROR_INVALID_HANDLE);
	IS(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(ckt_call_begin(&call, 7, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	NO(ckt_conn.reading);
	/* For good. */
	ckt_conn_broken(&ckt_conn, ckt_conn.epoch, -ECONNRESET);
	IS(ckt_conn.state, CKT_CONN_LOST);
	parts_close(peer);
}

UNIT_SUITE(resume, {"file", test_file}, {"lost", test_lost})
