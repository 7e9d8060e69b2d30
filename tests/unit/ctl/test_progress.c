/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/progress.c: the bar on a terminal, with what is counted and what the worker says; and the lines
 * of a log.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <rpc/rpc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/progress.h"
#include "ctl/server.h"
#include "inside.h"
#include "rpc/control.h"

enum { GUARD_MS = 60000 };

/* What came on stderr, which is a file. */
static void begin_log(int *ret_kept)
{
	int fd = open(path_in("progress-log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	*ret_kept = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static const char *end_log(int kept)
{
	dup2(kept, STDERR_FILENO);
	close(kept);
	return read_file(path_in("progress-log"));
}

static void test_log(void)
{
	struct ckt_ctl_args args = {.server = address};
	int kept;
	/* What is over soon is silent. */
	begin_log(&kept);
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(&args, NULL, "");
	ckt_ctl_progress_phase(progress, "send", 5);
	ckt_ctl_progress_add(progress, 5);
	ckt_ctl_progress_end(progress);
	TEXT(end_log(kept), "");
	/* And what takes long has a line each time. */
	begin_log(&kept);
	ckt_ctl_progress_line_ms = 500;
	progress = ckt_ctl_progress_begin(&args, NULL, "");
	ckt_ctl_progress_phase(progress, "fe\033tch", 4 << 20);
	ckt_ctl_progress_add(progress, 1 << 20);
	for (unsigned i = 0;
		i < GUARD_MS / 20 && !strstr(read_file(path_in("progress-log")), "left\n"); i++)
		usleep(20000);
	ckt_ctl_progress_end(progress);
	ckt_ctl_progress_line_ms = 5000;
	const char *text = end_log(kept);
	HAS(text, "cricketctl: fe?tch: 1.0 MiB of 4.0 MiB, 0.0 GB/s");
	HAS(text, " s left\n");
	YES(!strchr(text, '\r') && !strchr(text, '\033'));
	/* All of them take NULL. */
	ckt_ctl_progress_phase(NULL, "send", 5);
	ckt_ctl_progress_add(NULL, 5);
	ckt_ctl_progress_end(NULL);
}

/* Reads on until that has come: what is written to a terminal arrives some time later. */
static void await(int fd, char *text, size_t size, const char *part)
{
	size_t have = strlen(text);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	while (!strstr(text, part) && have + 1 < size && poll(&p, 1, GUARD_MS) > 0) {
		ssize_t n = read(fd, text + have, size - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
		text[have] = 0;
	}
}

static void test_bar(void)
{
	static char text[8192];
	ckt_control_progress_res res = {.result = {CKT_CONTROL_OK, (char *)""},
		.phase = (char *)"save\033",
		.done_bytes = 1 << 20,
		.total_bytes = 2 << 20};
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_server server = {.fd = -1};
	int primary, secondary, kept = dup(STDERR_FILENO);
	snprintf(server.address, sizeof server.address, "%s", address);
	MUST(openpty(&primary, &secondary, NULL, NULL, NULL), 0);
	begin();
	replies[CKT_CONTROL_PROGRESS] =
		(struct reply){(xdrproc_t)xdr_ckt_control_progress_res, &res, NULL};
	fflush(stderr);
	dup2(secondary, STDERR_FILENO);
	/* What is too short to be seen is seen once. */
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(&args, NULL, "");
	CU_ASSERT_PTR_NOT_NULL(progress);
	ckt_ctl_progress_phase(progress, "fetch", 4 << 20);
	ckt_ctl_progress_add(progress, 1 << 20);
	ckt_ctl_progress_add(progress, 1 << 20);
	ckt_ctl_progress_end(progress);
	await(primary, text, sizeof text, "\r\033[K");
	HAS(text, "fetch    [###############...............] 2.0 MiB");
	HAS(text, "\r\033[K");
	/* The worker is asked. */
	progress = ckt_ctl_progress_begin(&args, &server, "0123");
	text[0] = 0;
	await(primary, text, sizeof text, "] 1.0 MiB");
	/* And then something is counted, and over at once. */
	ckt_ctl_progress_phase(progress, "send", 2 << 20);
	ckt_ctl_progress_add(progress, 2 << 20);
	ckt_ctl_progress_end(progress);
	await(primary, text, sizeof text, "send     [##############################] 2.0 MiB");
	dup2(kept, STDERR_FILENO);
	close(kept);
	HAS(text, "[###############...............] 1.0 MiB");
	HAS(text, "send     [##############################] 2.0 MiB");
	CU_ASSERT_PTR_NULL(strstr(text, "save\033")); /* its word, but not to the terminal */
	ckt_control_session_args asked = {0};
	YES(decode(0, (xdrproc_t)xdr_ckt_control_session_args, &asked));
	TEXT(asked.session, "0123");
	xdr_free((xdrproc_t)xdr_ckt_control_session_args, (char *)&asked);
	close(primary);
	close(secondary);
}

UNIT_SUITE(progress, {"log", test_log}, {"bar", test_bar})
