/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl decide: answers an event "choose" of the server, or decides of a session's own accord.
 * "decide -" reads decisions from stdin, one a line, over one connection: for schedulers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"
#include "rpc/session.h"

enum { TIMEOUT_MS = 70000, WORDS_MAX = 3, LINE_MAX_BYTES = 256 };

static const char *const actions[] = {[CKT_CONTROL_GRANT] = "grant",
	[CKT_CONTROL_WAIT] = "wait",
	[CKT_CONTROL_REFUSE] = "refuse",
	[CKT_CONTROL_MOVE_OUT] = "swap-out",
	[CKT_CONTROL_MOVE_IN] = "swap-in",
	[CKT_CONTROL_GIVE_TURN] = "turn",
	[CKT_CONTROL_END_TURN] = "end-turn"};

static bool parse_number(const char *text, uint64_t *ret_number)
{
	char *end;
	errno = 0;
	if (!*text || text[strspn(text, "0123456789")])
		return false;
	*ret_number = strtoull(text, &end, 10);
	return !errno && *ret_number;
}

/* "EVENT ACTION [REQUEST]" or "session=SESSION ACTION".  False: the words are no decision. */
static bool parse(char *const *words, int count, ckt_control_decide_args *ret_args)
{
	static const char prefix[] = "session=";
	*ret_args = (ckt_control_decide_args){.session = (char *)""};
	int action = -1;
	for (size_t i = 0; count >= 2 && i < sizeof actions / sizeof *actions; i++)
		if (strcmp(words[1], actions[i]) == 0)
			action = (int)i;
	if (action < 0)
		return false;
	ret_args->action = (ckt_control_action)action;
	if (strncmp(words[0], prefix, strlen(prefix)) == 0) {
		ret_args->session = words[0] + strlen(prefix);
		return count == 2 && *ret_args->session &&
			strlen(ret_args->session) <= CKT_SESSION_ID_SIZE;
	}
	if (!parse_number(words[0], &ret_args->event))
		return false;
	return action == CKT_CONTROL_WAIT
		? count == 2
		: count == 3 && parse_number(words[2], &ret_args->request);
}

static int decide(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	ckt_control_decide_args *call)
{
	ckt_control_decide_res res = {0};
	(void)args;
	int status =
		ckt_ctl_call(server, CKT_CONTROL_DECIDE, (xdrproc_t)xdr_ckt_control_decide_args,
			call, (xdrproc_t)xdr_ckt_control_decide_res, &res, TIMEOUT_MS, -1);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_result(&res.result);
	xdr_free((xdrproc_t)xdr_ckt_control_decide_res, (char *)&res);
	return status;
}

static int usage(void)
{
	fprintf(stderr,
		"cricketctl: this is no decision: write EVENT grant|refuse REQUEST, EVENT wait, or "
		"session=SESSION grant|refuse|swap-out|swap-in|turn|end-turn\n");
	return CKT_EXIT_USAGE;
}

/* A refused decision is told, and the next one read: the server has gone on without it. */
static int decide_lines(const struct ckt_ctl_args *args, struct ckt_ctl_server *server)
{
	char line[LINE_MAX_BYTES];
	while (fgets(line, sizeof line, stdin)) {
		char *words[WORDS_MAX + 1], *rest = NULL;
		int count = 0;
		for (char *word = strtok_r(line, " \t\n", &rest); word && count <= WORDS_MAX;
			word = strtok_r(NULL, " \t\n", &rest))
			words[count++] = word;
		ckt_control_decide_args call;
		int status = parse(words, count, &call) ? decide(args, server, &call) : usage();
		if (status == CKT_EXIT_NO_SERVER)
			return status;
		printf("%s\n", status == CKT_EXIT_DONE ? "done" : "refused");
		if (ckt_ctl_flush() != CKT_EXIT_DONE)
			return CKT_EXIT_REFUSED;
	}
	return CKT_EXIT_DONE;
}

int ckt_ctl_decide(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	ckt_control_decide_args call;
	bool lines = args->word_count == 1 && strcmp(args->words[0], "-") == 0;
	if (!lines && !parse(args->words, args->word_count, &call))
		return usage();
	int status = ckt_ctl_connect(args, &server);
	if (status != CKT_EXIT_DONE)
		return status;
	status = lines ? decide_lines(args, &server) : decide(args, &server, &call);
	ckt_ctl_disconnect(&server);
	return status;
}
