/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/server.c: the connection to a server: exit codes and sentences for every way in which there
 * is none.
 */
#include <errno.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/session.h"
#include "rpc/wire.h"

static void test_connect(void)
{
	static const struct {
		const char *server;
		int status;
		const char *words;
	} cases[] = {
		{"unix:/nowhere/socket", CKT_EXIT_NO_SERVER, "start cricket-server there"},
		{"127.0.0.1:1", CKT_EXIT_NO_SERVER, "no server at 127.0.0.1:1"},
		{"host:99999", CKT_EXIT_USAGE, ""},
		{"file:/nowhere", CKT_EXIT_NO_SERVER, "/nowhere"},
	};
	struct ckt_ctl_server server;
	char message[1200];
	begin();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ckt_ctl_args args = {.server = cases[i].server};
		IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), cases[i].status);
		HAS(message, cases[i].words);
	}
	/* The variable, where no --server is given; what a file says. */
	struct ckt_ctl_args args = {0};
	char text[120];
	setenv("REMOTE_GPU_ADDRESS", address, 1);
	IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), CKT_EXIT_DONE);
	YES(server.is_unix);
	TEXT(server.address, address);
	ckt_ctl_disconnect(&server);
	ckt_ctl_disconnect(&server);
	IS(server.fd, -1);
	unsetenv("REMOTE_GPU_ADDRESS");
	snprintf(text, sizeof text, "%s\n", address);
	write_file(path_in("address"), text);
	snprintf(text, sizeof text, "file:%s", path_in("address"));
	args.server = text;
	IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), CKT_EXIT_DONE);
	ckt_ctl_disconnect(&server);
	hello_status = CKT_HELLO_DENIED;
	args.server = address;
	IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), CKT_EXIT_REFUSED);
	HAS(message, "refuses the connection: not you");
}

static int check_sessions(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {{"0", 0}, {"0123456789ab", 0}, {"", 4}, {"0123456789abc", 4}, {"xyz", 4},
		{"AB", 4}, {"01 2", 4}, {"-1", 4}};
	(void)args;
	for (size_t i = 0; i < COUNT(cases); i++)
		IS(ckt_ctl_check_session(cases[i].text), cases[i].status);
	return 0;
}

static int check_results(const struct ckt_ctl_args *args)
{
	static const struct {
		ckt_control_status status;
		int exit;
	} cases[] = {{CKT_CONTROL_OK, 0}, {CKT_CONTROL_REFUSED, 1}, {CKT_CONTROL_NO_SESSION, 4},
		{CKT_CONTROL_AMBIGUOUS, 4}, {(ckt_control_status)77, 1}};
	(void)args;
	for (size_t i = 0; i < COUNT(cases); i++) {
		ckt_control_result result = {cases[i].status, (char *)"why\033[2J"};
		IS(ckt_ctl_result(&result), cases[i].exit);
	}
	return 0;
}

static void test_codes(void)
{
	run(check_sessions, (struct ckt_ctl_args){0}, NULL);
	HAS(err, "an ID has 12 digits 0-9 a-f");
	run(check_results, (struct ckt_ctl_args){0}, NULL);
	HAS(err, "cricketctl: why");
	/* a terminal is not the server's to command */
	CU_ASSERT_PTR_NULL(strchr(err, '\033'));
}

static bool hang_up(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	(void)args, (void)fd, (void)ret_xdr, (void)ret_res;
	return false;
}

static int call(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	ckt_control_result result = {0};
	int status = ckt_ctl_connect_for(args, args->words[0], &server);
	if (status)
		return status;
	status = ckt_ctl_call(&server, CKT_CONTROL_KILL, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_result, &result, 2000, -1);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	ckt_ctl_disconnect(&server);
	return status;
}

static int ask(const struct ckt_ctl_args *args)
{
	ckt_control_result result = {0};
	int status = ckt_ctl_ask(args, args->words[0], CKT_CONTROL_KILL, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_result, &result, 2000);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static void test_ask(void)
{
	begin();
	IS(run(ask, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	IS(run(ask, (struct ckt_ctl_args){0}, "not an id", NULL), CKT_EXIT_NO_SESSION);
	IS(run(ask, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE); /* about none */
	replies[CKT_CONTROL_KILL].answer = hang_up;
	IS(run(ask, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "does not answer");
	IS(run(ask, (struct ckt_ctl_args){.server = "unix:/nowhere"}, "0123", NULL),
		CKT_EXIT_NO_SERVER);
}

static void test_call(void)
{
	begin();
	IS(run(call, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_DONE);
	IS(run(call, (struct ckt_ctl_args){0}, "not an id", NULL), CKT_EXIT_NO_SESSION);
	replies[CKT_CONTROL_KILL].answer = hang_up;
	IS(run(call, (struct ckt_ctl_args){0}, "0123", NULL), CKT_EXIT_NO_SERVER);
	HAS(err, "does not answer");
	IS(run(call, (struct ckt_ctl_args){.server = "unix:/nowhere"}, "0123", NULL),
		CKT_EXIT_NO_SERVER);
}

static int page(struct ckt_ctl_server *server, ckt_control_list2_res *ret_page)
{
	memset(ret_page, 0, sizeof *ret_page);
	return ckt_ctl_list_page(server, "", 30000, ret_page);
}

/* By LIST2, and by LIST of an older server, which ends only the connection that asks for the other. */
static void test_list(void)
{
	static ckt_control_session session = {.session = (char *)"0123456789ab",
		.program_name = (char *)"",
		.client = (char *)"",
		.note = (char *)""};
	static bool_t silent = false;
	static ckt_control_list2_res new = {
		.list = {.sessions = {1, &session}}, .answered = {1, &silent}};
	static const uint32_t old_calls[] = {CKT_CONTROL_LIST2, CKT_CONTROL_LIST, CKT_CONTROL_LIST},
			      new_calls[] = {CKT_CONTROL_LIST2, CKT_CONTROL_LIST2};
	struct ckt_ctl_args args = {.server = address};
	struct ckt_ctl_server server;
	ckt_control_list2_res res;
	char message[1200];
	begin();
	replies[CKT_CONTROL_LIST2].answer = hang_up;
	replies[CKT_CONTROL_LIST] =
		(struct reply){(xdrproc_t)xdr_ckt_control_list_res, &new.list, NULL};
	IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), CKT_EXIT_DONE);
	for (int i = 0; i < 2; i++) {
		IS(page(&server, &res), 0);
		MUST(res.list.sessions.sessions_len, 1);
		CU_ASSERT_PTR_NULL(ckt_ctl_answered(&res, 0));
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&res);
	}
	calls_are(old_calls, COUNT(old_calls));
	ckt_ctl_disconnect(&server);
	begin();
	replies[CKT_CONTROL_LIST2] =
		(struct reply){(xdrproc_t)xdr_ckt_control_list2_res, &new, NULL};
	IS(ckt_ctl_try_connect(&args, &server, message, sizeof message), CKT_EXIT_DONE);
	for (int i = 0; i < 2; i++) {
		IS(page(&server, &res), 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ckt_ctl_answered(&res, 0));
		NO(*ckt_ctl_answered(&res, 0));
		CU_ASSERT_PTR_NULL(ckt_ctl_answered(&res, 1));
		xdr_free((xdrproc_t)xdr_ckt_control_list2_res, (char *)&res);
	}
	calls_are(new_calls, COUNT(new_calls));
	/* It must tell that of each. */
	new.answered.answered_len = 0;
	IS(page(&server, &res), -EPROTO);
	IS(res.list.sessions.sessions_len, 0);
	ckt_ctl_disconnect(&server);
}

UNIT_SUITE(server, {"connect", test_connect}, {"codes", test_codes}, {"call", test_call},
	{"ask", test_ask}, {"list", test_list})
