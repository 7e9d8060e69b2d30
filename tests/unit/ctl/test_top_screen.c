/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/top/top_screen.c: the screen on a terminal of the test's own, its keys, and what a peer's
 * text does there: nothing.  tests/showcase/test_top.py does the same in tmux.
 */
#include "ctl/top/top_screen.h"

#include <poll.h>
#include <pty.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "ctl/command.h"
#include "inside.h"
#include "rpc/control.h"

static ckt_control_watched sessions[2] = {
	{.session = {.session = (char *)"0123456789ab",
		 .program_name = (char *)"prog\033[2J\x9bm\xc2\x9b",
		 .client = (char *)"host",
		 .note = (char *)"a note"},
		.owner = {(char *)"token:al\033]0;ice", (char *)"vision"},
		.job = (char *)"mine",
		.transport = (char *)"tcp"},
	{.session = {.session = (char *)"fffffffffff0",
		 .program_name = (char *)"quiet",
		 .client = (char *)"",
		 .note = (char *)""},
		.owner = {(char *)"", (char *)""},
		.job = (char *)"",
		.transport = (char *)""},
};

enum { GUARD_MS = 60000 };
static int primary, status;
static char text[1 << 16];

/* Types a key, and reads until that has come. */
static void type_and_await(const char *key, const char *part)
{
	size_t have = 0;
	struct pollfd p = {.fd = primary, .events = POLLIN};
	memset(text, 0, sizeof text);
	YES(write(primary, key, strlen(key)) == (ssize_t)strlen(key));
	while (!strstr(text, part) && have + 1 < sizeof text && poll(&p, 1, GUARD_MS) > 0) {
		ssize_t n = read(primary, text + have, sizeof text - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	HAS(text, part);
}

static void *screen_thread(void *opaque)
{
	struct ckt_ctl_args args = {.server = address};
	struct ckt_top_source source;
	(void)opaque;
	status = ckt_ctl_top_open(&args, &source);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_top_screen(&source, 100);
		ckt_ctl_top_close(&source);
	}
	return NULL;
}

/* ncurses keeps what it had made for a terminal that it then does not know. */
static void *refused_thread(void *opaque)
{
#ifdef __SANITIZE_ADDRESS__
	__lsan_disable();
#endif
	screen_thread(opaque);
#ifdef __SANITIZE_ADDRESS__
	__lsan_enable();
#endif
	return NULL;
}

static void test_screen(void)
{
	static ckt_control_watch_res watched = {.sessions = {2, sessions}};
	static const struct winsize size = {.ws_row = 30, .ws_col = 160};
	int secondary, kept_in = dup(STDIN_FILENO), kept_out = dup(STDOUT_FILENO);
	pthread_t thread;
	MUST(openpty(&primary, &secondary, NULL, NULL, &size), 0);
	begin();
	replies[CKT_CONTROL_WATCH] =
		(struct reply){(xdrproc_t)xdr_ckt_control_watch_res, &watched, NULL};
	setenv("TERM", "vt100", 1);
	fflush(stdout);
	dup2(secondary, STDIN_FILENO);
	dup2(secondary, STDOUT_FILENO);
	MUST(pthread_create(&thread, NULL, screen_thread, NULL), 0);
	type_and_await("", "quiet");
	YES(strstr(text, "\033]0;ice") == NULL);
	YES(strchr(text, '\x9b') == NULL);
	type_and_await("h", "sort by:");
	type_and_await("h", "CALLS/s");
	type_and_await("\n", "a note");
	type_and_await("\033[B\033", "0123456789ab");
	type_and_await(" ", "(paused)");
	type_and_await("mR\033[A\033[B\033[6~\033[5~\f", "(paused)");
	type_and_await("q", "\033[30;1H");
	pthread_join(thread, NULL);
	IS(status, CKT_EXIT_DONE);
	/* ncurses does not know that terminal. */
	setenv("TERM", "no-such-terminal", 1);
	MUST(pthread_create(&thread, NULL, refused_thread, NULL), 0);
	pthread_join(thread, NULL);
	IS(status, CKT_EXIT_USAGE);
	fflush(stdout);
	dup2(kept_in, STDIN_FILENO);
	dup2(kept_out, STDOUT_FILENO);
	close(kept_in);
	close(kept_out);
	close(secondary);
	close(primary);
}

UNIT_SUITE(top_screen, {"screen", test_screen})
