/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/kernel_output.c: what kernels print: from the pipes to the client in whole
 * pieces, with nobody there it stays.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/worker/session/call.h"
#include "tests/unit/worker/inside.h"

static uint8_t bytes[1 << 18];

/* Texts of OUTPUT calls, one behind the other; how many there were. */
static unsigned texts(char *ret_text, uint32_t stream)
{
	unsigned count = 0;
	size_t size = inside_sent(bytes, sizeof bytes);
	struct ckt_cursor all = {.p = bytes, .end = bytes + size};
	*ret_text = 0;
	while (all.p < all.end) {
		uint32_t mark = ckt_get_u32(&all) & 0x7fffffff, length;
		struct ckt_cursor c = {.p = all.p, .end = all.p + mark};
		struct ckt_call_header header;
		YES(ckt_call_header_get(&c, &header));
		IS(header.prog, CRICKET_CALLBACK_PROG);
		IS(header.proc, CKT_CALLBACK_OUTPUT);
		IS(ckt_get_u32(&c), stream);
		const uint8_t *text = ckt_get_opaque(&c, 1 << 20, &length);
		YES(ckt_cursor_done(&c));
		strncat(ret_text, (const char *)text, length);
		all.p += mark;
		count++;
	}
	return count;
}

static void test_send(void)
{
	static char text[1 << 18], lines[100001];
	int kept = ckt_worker.printed.pipes[0], ends[2];
	MUST(pipe2(ends, O_NONBLOCK), 0);
	fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
	ckt_worker.printed.pipes[0] = ends[0];
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 1), 0);
	IS(write(ends[1], "two\nlines\n", 10), 10);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 1), 1);
	TEXT(text, "two\nlines\n");
	/* More than a piece. */
	for (size_t i = 0; i + 1 < sizeof lines; i++)
		lines[i] = (char)('a' + i % 23);
	IS(write(ends[1], lines, sizeof lines - 1), sizeof lines - 1);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 1), 4);
	IS(strcmp(text, lines), 0);
	/* Nobody there: it waits in the pipe. */
	int fd = ckt_worker.output.transport.fd;
	ckt_output_connect(&ckt_worker.output, -1, 0, NULL, 0);
	IS(write(ends[1], "later", 5), 5);
	ckt_printed_send(&ckt_worker);
	ckt_output_connect(&ckt_worker.output, fd, 1, NULL, 0);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 1), 1);
	TEXT(text, "later");
	/*
	 * The connection breaks between the reading and the sending: the next one gets it, before
	 * what came then.
	 */
	ckt_worker.output.broken = true;
	IS(write(ends[1], "kept ", 5), 5);
	ckt_printed_send(&ckt_worker);
	ckt_output_connect(&ckt_worker.output, -1, 0, NULL, 0);
	IS(write(ends[1], "too", 3), 3);
	ckt_output_connect(&ckt_worker.output, fd, 1, NULL, 0);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 1), 2);
	TEXT(text, "kept too");
	/* stderr has a number of its own. */
	ckt_worker.printed.pipes[0] = kept;
	ckt_worker.printed.pipes[1] = ends[0];
	IS(write(ends[1], "assert", 6), 6);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, 2), 1);
	TEXT(text, "assert");
	/* So has what a library prints. */
	ckt_worker.printed.pipes[1] = kept;
	ckt_worker.printed.pipes[2] = ends[0];
	IS(write(ends[1], "NCCL INFO", 9), 9);
	ckt_printed_send(&ckt_worker);
	IS(texts(text, CKT_OUTPUT_LIBRARY), 1);
	TEXT(text, "NCCL INFO");
	ckt_worker.printed.pipes[2] = kept;
	close(ends[0]);
	close(ends[1]);
}

/* The record at *c: whether it is text, else a reply. */
static bool next_is_text(struct ckt_cursor *c)
{
	struct ckt_call_header header;
	uint32_t mark = ckt_get_u32(c) & 0x7fffffff;
	struct ckt_cursor record = {.p = c->p, .end = c->p + mark};
	YES(!c->bad && mark);
	c->p += mark;
	return ckt_call_header_get(&record, &header) && header.proc == CKT_CALLBACK_OUTPUT;
}

/* What the driver says about a failure goes before the answer. */
static void test_failed(void)
{
	static const CUresult results[] = {
		CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS, CUDA_ERROR_NOT_READY};
	int kept = ckt_worker.printed.pipes[1], ends[2];
	MUST(pipe2(ends, O_NONBLOCK), 0);
	ckt_worker.printed.pipes[1] = ends[0];
	for (size_t i = 0; i < COUNT(results); i++) {
		struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
		call->header = (struct ckt_call_header){
			.xid = 7, .prog = CKT_CUDA_PROG, .vers = 1, .proc = 1};
		IS(write(ends[1], "why\n", 4), 4);
		ckt_wcall_finish(call, results[i]);
		size_t size = inside_sent(bytes, sizeof bytes);
		struct ckt_cursor all = {.p = bytes, .end = bytes + size};
		if (i == 0)
			YES(next_is_text(&all));
		YES(!next_is_text(&all));
		IS(all.end - all.p, 0);
	}
	ckt_worker.printed.pipes[1] = kept;
	close(ends[0]);
	close(ends[1]);
}

static void test_init(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct ckt_printed printed;
		char text[16] = "";
		if (ckt_printed_init(&printed))
			_exit(1);
		printf("to %d\n", 1);
		fflush(stdout);
		if (read(printed.pipes[0], text, sizeof text) != 5 || strcmp(text, "to 1\n") ||
			read(printed.pipes[0], text, 1) != -1)
			_exit(2);
		fputs("other", stderr);
		if (read(printed.pipes[1], text, sizeof text) != 5 || memcmp(text, "other", 5))
			_exit(3);
		/* A library opens its file by name. */
		FILE *file = fopen(printed.library_file, "w");
		if (!file || fputs("third", file) < 0 || fclose(file))
			_exit(4);
		_exit(read(printed.pipes[2], text, sizeof text) == 5 && !memcmp(text, "third", 5)
				? 0
				: 5);
	}
	int status = 0;
	IS(waitpid(pid, &status, 0), pid);
	IS(status, 0);
}

UNIT_SUITE(printed, {"send", test_send}, {"failed", test_failed}, {"init", test_init})
