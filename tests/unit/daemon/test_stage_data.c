/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/image/stage_data.c: connections that carry an image's files: plain files of the
 * stage by pieces, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

static const struct ckt_identity self = {.kind = CKT_IDENTITY_USER};
static struct ckt_stage_data *data;
static int dir;

static int connect_data(void)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	MUST(ckt_stage_data_serve(data, fds[1], &self, NULL), 0);
	return fds[0];
}

/* INT_MAX: no answer. */
static int call(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *res)
{
	return ckt_net_call(
		fd, prog, proc, xdr_args, args, xdr_res, res, ckt_net_now_ms() + 60000, -1);
}

static int put(int fd, const char *file, uint64_t offset, const char *text)
{
	ckt_control_write_args args = {.file = (char *)file,
		.offset = offset,
		.data = {(u_int)strlen(text), (char *)text}};
	int status = 99;
	return call(fd, CRICKET_CONTROL_PROG, CKT_CONTROL_WRITE,
		       (xdrproc_t)xdr_ckt_control_write_args, &args, (xdrproc_t)xdr_int, &status)
		? 99
		: status;
}

static int get(int fd, const char *file, uint64_t offset, u_int bytes, char *ret_text)
{
	ckt_control_read_args args = {.file = (char *)file, .offset = offset, .bytes = bytes};
	ckt_control_read_res res = {0};
	if (call(fd, CRICKET_CONTROL_PROG, CKT_CONTROL_READ, (xdrproc_t)xdr_ckt_control_read_args,
		    &args, (xdrproc_t)xdr_ckt_control_read_res, &res))
		return 99;
	snprintf(ret_text, 64, "%.*s", (int)res.data.data_len, res.data.data_val);
	int status = res.status;
	xdr_free((xdrproc_t)xdr_ckt_control_read_res, (char *)&res);
	return status;
}

static void begin(void)
{
	const char *path = path_in("data");
	mkdir(path, 0700);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	data = ckt_stage_data_create(dir, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
}

static void test_files(void)
{
	char text[64];
	begin();
	int fd = connect_data(), other = connect_data();
	IS(put(fd, "manifest", 0, "hello"), 0);
	IS(put(other, "manifest", 5, " there"), 0);
	IS(get(other, "manifest", 0, 100, text), 0);
	TEXT(text, "hello there");
	IS(get(fd, "manifest", 6, 3, text), 0);
	TEXT(text, "the");
	IS(get(fd, "manifest", 11, 3, text), 0);
	TEXT(text, "");
	IS(get(fd, "manifest", 12345, 3, text), 0);
	IS(put(fd, "empty", 0, ""), 0);
	struct stat st;
	IS(fstatat(dir, "empty", &st, 0), 0);
	IS(st.st_mode & 07777, 0600);
	/* Holes are zeros. */
	IS(put(fd, "hole", 3, "x"), 0);
	IS(get(fd, "hole", 0, 4, text), 0);
	close(fd);
	close(other);
}

static void test_refused(void)
{
	char text[64];
	int fd = connect_data();
	static const char *const bad[] = {"", "..", "../s.d", "/etc/passwd", "A", "a.b"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		IS(get(fd, bad[i], 0, 1, text), -EINVAL);
		IS(put(fd, bad[i], 0, "x"), -EINVAL);
	}
	IS(get(fd, "none", 0, 1, text), -ENOENT);
	IS(get(fd, "manifest", ((uint64_t)1 << 50) + 1, 1, text), -EINVAL);
	IS(put(fd, "manifest", UINT64_MAX, "x"), -EINVAL);
	IS(get(fd, "manifest", 0, CKT_CONTROL_DATA_MAX + 1, text), -EINVAL);
	/* Neither links, nor directories, nor pipes. */
	write_file(path_in("secret"), "secret", 0600);
	IS(symlinkat(path_in("secret"), dir, "link"), 0);
	IS(mkdirat(dir, "inner", 0700), 0);
	IS(mkfifoat(dir, "pipe", 0600), 0);
	IS(get(fd, "link", 0, 10, text), -ELOOP);
	IS(put(fd, "link", 0, "x"), -ELOOP);
	YES(get(fd, "inner", 0, 10, text) < 0);
	YES(put(fd, "inner", 0, "x") < 0);
	IS(get(fd, "pipe", 0, 10, text), -EINVAL);
	YES(put(fd, "pipe", 0, "x") < 0);
	TEXT(read_file(path_in("secret")), "secret");
	close(fd);
	/* Any other call ends the connection. */
	static const uint32_t calls[][2] = {{CRICKET_CONTROL_PROG, CKT_CONTROL_KILL},
		{CRICKET_SESSION_PROG, CKT_CONTROL_READ}, {0, 0}};
	for (size_t i = 0; i < COUNT(calls); i++) {
		fd = connect_data();
		YES(call(fd, calls[i][0], calls[i][1], NULL, NULL, NULL, NULL) < 0);
		close(fd);
	}
	fd = connect_data();
	send_bytes(fd, "x", 1, -1);
	size_t size;
	uint8_t *record = NULL;
	IS(ckt_net_read_record(fd, 100, ckt_net_now_ms() + 60000, &record, &size, NULL) < 0, true);
	close(fd);
}

static void test_end(void)
{
	char text[64];
	int fds[20], pair[2];
	unsigned count = 0;
	/* As many as there are places; what came too late is closed. */
	run_for(20);
	for (; count < COUNT(fds); count++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		fds[count] = pair[0];
		int result = ckt_stage_data_serve(data, pair[1], &self, NULL);
		if (result) {
			IS(result, -EBUSY);
			IS(read(pair[0], text, 1), 0);
			close(pair[0]);
			break;
		}
	}
	IS(count, 16);
	for (unsigned i = 0; i < count; i++)
		IS(get(fds[i], "manifest", 0, 5, text), 0);
	/* The stage goes: they all end, and no one touches a file any more. */
	ckt_stage_data_destroy(data);
	for (unsigned i = 0; i < count; i++) {
		IS(get(fds[i], "manifest", 0, 5, text), 99);
		close(fds[i]);
	}
	ckt_stage_data_destroy(NULL);
	close(dir);
}

UNIT_SUITE(data, {"files", test_files}, {"refused", test_refused}, {"end", test_end})
