/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/resume.c (client/conn/conn.h): the session's file, the reader's place, and a session
 * that is nowhere.  What is sent again to one that is found: test_conn.c, against a server that
 * counts.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/conn/hostmem.h"
#include "client/conn/settings.h"
#include "conn_parts.h"
#include "rpc/hostmem.h"
#include "rpc/net.h"
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

/* A server that answers one hello, and is gone then. */
struct brief {
	char path[64];
	int listener;
	pthread_t thread;
	ckt_hello_res res;
};

static void *answer_once(void *context)
{
	struct brief *brief = context;
	uint32_t flavours[] = {CKT_AUTH_NONE};
	struct ckt_greeting greeting = {.protocol = 1, .flavours = {1, flavours}};
	uint8_t *data;
	size_t size;
	struct pollfd poll_fd = {.fd = brief->listener, .events = POLLIN};
	int fd = poll(&poll_fd, 1, 60000) == 1 ? accept(brief->listener, NULL, NULL) : -1;
	unlink(brief->path);
	close(brief->listener);
	if (fd < 0)
		return NULL;
	if (ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		    (xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size))
		abort();
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
	if (ckt_net_read_record(fd, CKT_HELLO_MAX, -1, &data, &size, NULL) == 0) {
		free(data);
		if (ckt_net_encode_reply(
			    0, 0, (xdrproc_t)xdr_ckt_hello_res, &brief->res, &data, &size))
			abort();
		ckt_net_write_record(fd, data, size, -1, -1);
		free(data);
	}
	close(fd);
	return NULL;
}

/* What the user reads of a session that such a server had. */
static const char *lose_at(struct brief *brief, unsigned timeout_ms)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char message[256];
	int peer = parts_open();
	memset(&ckt_settings, 0, sizeof ckt_settings);
	ckt_settings.reconnect_timeout_ms = timeout_ms;
	snprintf(brief->path, sizeof brief->path, "/tmp/ckt-brief-%d", (int)getpid());
	snprintf(address.host, sizeof address.host, "%s", brief->path);
	snprintf(ckt_conn.address_text, sizeof ckt_conn.address_text, "unix:%s", brief->path);
	if (ckt_net_listen(&address, 0600, &brief->listener, message, sizeof message) ||
		pthread_create(&brief->thread, NULL, answer_once, brief))
		abort();
	parts_stderr_begin();
	ckt_conn_broken(&ckt_conn, ckt_conn.epoch, -ECONNRESET);
	const char *said = parts_stderr_end();
	pthread_join(brief->thread, NULL);
	memset(&ckt_settings, 0, sizeof ckt_settings);
	IS(ckt_conn.state, CKT_CONN_LOST);
	parts_close(peer);
	return said;
}

/* The server says why, and cannot be reached any more when the time is up. */
static void test_said_before(void)
{
	struct brief brief = {
		.res = {.status = CKT_HELLO_NO_SESSION,
			.ckt_hello_res_u.refused = {
				.message = (char *)"it ate too much", .moved_to = (char *)""}}};
	const char *said = lose_at(&brief, 700);
	HAS(said, "is lost: it ate too much");
	HAS(said, "(connection: Connection reset by peer)");
}

static int lose_memory(struct ckt_transport *to)
{
	(void)to;
	return -EPIPE;
}

/* The server has the session, but the connection breaks before it goes on there. */
static void broken_again(void)
{
	ckt_capability unfilled = {(char *)CKT_CAPABILITY_HOST_UNFILLED, 1};
	struct brief brief = {.res = {.status = CKT_HELLO_OK,
				      .ckt_hello_res_u.ok = {.protocol = 1,
					      .session = (char *)PARTS_SESSION,
					      .generation = 1,
					      .server = (char *)"brief",
					      .build = (char *)"test",
					      .capabilities = {1, &unfilled}}}};
	atomic_store(&ckt_host_memory_lost, lose_memory);
	HAS(lose_at(&brief, 0), "is lost: the connection broke off again: Broken pipe");
}

/* In a child: the state of pinned memory lasts as long as the process. */
static void test_broken_again(void)
{
	int status = -1;
#ifdef __SANITIZE_THREAD__
	/* It bears no new threads in the child of a process that has some. */
	return;
#endif
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		unsigned before = CU_get_number_of_failures();
		broken_again();
		_exit(CU_get_number_of_failures() != before);
	}
	waitpid(child, &status, 0);
	IS(status, 0);
}

UNIT_SUITE(resume, {"file", test_file}, {"lost", test_lost}, {"said before", test_said_before},
	{"broken again", test_broken_again})
