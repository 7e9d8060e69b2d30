/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/progress.c: the bar: none where stderr is no terminal; on one, what is counted and what the
 * worker says.
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

static void test_none(void)
{
	struct ckt_ctl_args args = {.server = address};
	int null = open("/dev/null", O_WRONLY), kept = dup(STDERR_FILENO);
	dup2(null, STDERR_FILENO);
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(&args, NULL, "");
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(null);
	CU_ASSERT_PTR_NULL(progress);
	/* All of them take that. */
	ckt_ctl_progress_phase(NULL, "send", 5);
	ckt_ctl_progress_add(NULL, 5);
	ckt_ctl_progress_end(NULL);
}

enum { GUARD_MS = 60000 };

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

UNIT_SUITE(progress, {"none", test_none}, {"bar", test_bar})
