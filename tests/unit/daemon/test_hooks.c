/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/hooks.c: hooks: executables of a directory that only its owner writes, in the order
 * of their names, one event after the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/events.h"
#include "inside.h"

static char hooks[128], message[256];

static void test_check(void)
{
	snprintf(hooks, sizeof hooks, "%s", path_in("hooks"));
	IS(ckt_hooks_check(hooks, message, sizeof message), -ENOENT);
	HAS(message, "--hooks: ");
	write_file(path_in("hookfile"), "x", 0755);
	IS(ckt_hooks_check(path_in("hookfile"), message, sizeof message), -ENOTDIR);
	IS(mkdir(hooks, 0755), 0);
	static const struct {
		int mode, result;
	} modes[] = {{0755, 0}, {0700, 0}, {0775, -EPERM}, {0757, -EPERM}, {0777, -EPERM}};
	for (size_t i = 0; i < COUNT(modes); i++) {
		IS(chmod(hooks, (mode_t)modes[i].mode), 0);
		IS(ckt_hooks_check(hooks, message, sizeof message), modes[i].result);
	}
	HAS(message, "chmod go-w");
	IS(chmod(hooks, 0755), 0);
	if (geteuid() == 0) {
		IS(chown(hooks, 4242, 4242), 0);
		IS(ckt_hooks_check(hooks, message, sizeof message), -EPERM);
		IS(chown(hooks, 0, 0), 0);
	}
}

static void test_clean(void)
{
	static const struct {
		const char *text, *name, *detail;
	} cases[] = {
		{"nbody", "nbody", "nbody"},
		{"-rf", "_rf", "-rf"},
		{"a b;c", "a_b_c", "a b_c"},
		{"$(reboot)`x`", "__reboot__x_", "__reboot__x_"},
		{"x\ny\033[2J", "x_y__2J", "x_y__2J"},
		{"'\"\\|&<>*?{}!~#%", "_______________", "_______________"},
		{"caf\xc3\xa9", "caf__", "caf__"},
		{"/usr/bin/a.out-1_2+3@h:1,2=3", "/usr/bin/a.out-1_2+3@h:1,2=3",
			"/usr/bin/a.out-1_2+3@h:1,2=3"},
		{"", "", ""},
	};
	char text[64];
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_hooks_clean(cases[i].text, true, text, sizeof text);
		TEXT(text, cases[i].name);
		ckt_hooks_clean(cases[i].text, false, text, sizeof text);
		TEXT(text, cases[i].detail);
	}
	ckt_hooks_clean("0123456789", true, text, 5);
	TEXT(text, "0123");
}

static unsigned lines(const char *path)
{
	unsigned count = 0;
	for (const char *p = read_file(path); *p; p++)
		count += *p == '\n';
	return count;
}

static bool ran(void *data)
{
	return lines(path_in("hooks.out")) >= *(unsigned *)data;
}

static void add(const char *name, const char *letter, int mode)
{
	char path[256], script[512];
	snprintf(path, sizeof path, "%s/%s", hooks, name);
	snprintf(script, sizeof script,
		"#!/bin/sh\necho %s $CRICKET_EVENT $CRICKET_SESSION $CRICKET_DETAIL $CRICKET_EVENT_NUMBER $REMOTE_GPU_ADDRESS >> %s\n",
		letter, path_in("hooks.out"));
	write_file(path, script, mode);
}

static void test_run(void)
{
	char expected[1024];
	unsigned wanted = 6;
	add("20-second", "B", 0755);
	add("10-first", "A", 0755);
	add("30-not-executable", "X", 0644);
	add(".hidden", "X", 0755);
	add("40-backup~", "X", 0755);
	server.options.hooks = hooks;
	static const char *const names[] = {"started", "saved", "ended"};
	for (unsigned i = 0; i < 3; i++) {
		struct ckt_control_event event = {.number = 7 + i,
			.when = 5,
			.name = (char *)names[i],
			.session = (char *)"0000000000e1",
			.program_name = (char *)"p",
			.detail = (char *)"some thing"};
		ckt_hooks_run(&server, &event);
	}
	YES(run_until(ran, &wanted));
	size_t n = 0;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned h = 0; h < 2; h++)
			n += (size_t)snprintf(expected + n, sizeof expected - n,
				"%c %s 0000000000e1 some thing %u unix:%s\n", 'A' + (int)h,
				names[i], 7 + i, server.socket_path);
	TEXT(read_file(path_in("hooks.out")), expected);
	/*
	 * The last runner may still be under way: one more event, of which nothing is to be seen.
	 */
	unlink(path_in("hooks/10-first"));
	wanted = 7;
	struct ckt_control_event event = {.name = (char *)"lost",
		.session = (char *)"",
		.program_name = (char *)"",
		.detail = (char *)""};
	ckt_hooks_run(&server, &event);
	YES(run_until(ran, &wanted));
	HAS(read_file(path_in("hooks.out")), "B lost 0 unix:");
	run_for(50);
	server.options.hooks = NULL;
}

UNIT_SUITE(hooks, {"clean", test_clean}, {"check", test_check}, {"run", test_run})
