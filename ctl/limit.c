/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl limit set|show|clear: limits of users, containers, jobs, tokens and sessions. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/server.h"
#include "ctl/subcommands.h"
#include "rpc/control.h"

enum { TIMEOUT_MS = 10000, CLEAN_BYTES = CKT_CONTROL_LIMIT_LINE + 1 };

static int wrong(const char *problem)
{
	fprintf(stderr, "cricketctl: limit: %s: see cricketctl limit --help\n", problem);
	return CKT_EXIT_USAGE;
}

/* The words from the second on, as a rule. */
static int join(const struct ckt_ctl_args *args, char ret_rule[CKT_CONTROL_LIMIT_LINE + 1])
{
	size_t at = 0;
	for (int i = 1; i < args->word_count; i++) {
		size_t length = strlen(args->words[i]);
		if (at + length + 1 > CKT_CONTROL_LIMIT_LINE)
			return wrong("the rule is too long");
		if (i > 1)
			ret_rule[at++] = ' ';
		memcpy(ret_rule + at, args->words[i], length);
		at += length;
	}
	ret_rule[at] = 0;
	return CKT_EXIT_DONE;
}

static int change(const struct ckt_ctl_args *args, uint32_t proc, const char *done)
{
	char rule[CKT_CONTROL_LIMIT_LINE + 1];
	ckt_control_limit_args call = {.rule = rule};
	ckt_control_result result = {0};
	int status = join(args, rule);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_ask(args, NULL, proc, (xdrproc_t)xdr_ckt_control_limit_args, &call,
			(xdrproc_t)xdr_ckt_control_result, &result, TIMEOUT_MS);
	if (status != CKT_EXIT_DONE)
		return status;
	status = ckt_ctl_result(&result);
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	if (status == CKT_EXIT_DONE && args->json)
		status = ckt_ctl_json_print(json_pack("{s:o}", done, ckt_ctl_json_text(rule)));
	return status;
}

/* Who agrees should know to what. */
static void warn_of_group(const struct ckt_ctl_args *args)
{
	static const char word[] = "share-group=";
	for (int i = 2; i < args->word_count; i++)
		if (!strncmp(args->words[i], word, strlen(word)) &&
			strcmp(args->words[i] + strlen(word), "none") != 0)
			fprintf(stderr,
				"cricketctl: sessions in space of all owners of %s have one user and one fault domain: a kernel that fails ends all of them (cricket-server(8))\n",
				args->words[i]);
}

static int set(const struct ckt_ctl_args *args)
{
	if (args->word_count < 3)
		return wrong("write whom the limit is for, and what it is");
	int status = change(args, CKT_CONTROL_LIMIT_SET, "set");
	if (status == CKT_EXIT_DONE)
		warn_of_group(args);
	return status;
}

static int clear(const struct ckt_ctl_args *args)
{
	return args->word_count != 2 ? wrong("write whom the limit is for")
				     : change(args, CKT_CONTROL_LIMIT_CLEAR, "cleared");
}

/* ---- show */

static json_t *leased_json(const ckt_control_limit *limit)
{
	json_t *list = json_array();
	for (u_int i = 0; i < limit->leased.leased_len; i++)
		json_array_append_new(list,
			json_pack("{s:i, s:I}", "gpu", (int)limit->leased.leased_val[i].gpu,
				"leased_bytes", (json_int_t)limit->leased.leased_val[i].bytes));
	return list;
}

static int print_json(const ckt_control_limits_res *res)
{
	json_t *limits = json_array(), *budgets = json_array();
	for (u_int i = 0; i < res->limits.limits_len; i++) {
		const ckt_control_limit *limit = &res->limits.limits_val[i];
		json_array_append_new(limits,
			json_pack("{s:o, s:b, s:i, s:o}", "limit", ckt_ctl_json_text(limit->rule),
				"live", limit->live, "sessions", (int)limit->sessions, "gpus",
				leased_json(limit)));
	}
	for (u_int i = 0; i < res->budgets.budgets_len; i++) {
		const ckt_control_budget *budget = &res->budgets.budgets_val[i];
		json_array_append_new(budgets,
			json_pack("{s:i, s:I, s:I}", "gpu", (int)budget->gpu, "budget_bytes",
				(json_int_t)budget->budget_bytes, "used_bytes",
				(json_int_t)budget->used_bytes));
	}
	return ckt_ctl_json_print(json_pack("{s:o, s:o}", "limits", limits, "gpus", budgets));
}

static void print_leased(const ckt_control_limit *limit)
{
	char size[32];
	for (u_int i = 0; i < limit->leased.leased_len; i++)
		printf("%s%s on GPU %u", i ? ", " : "",
			ckt_ctl_size_text(limit->leased.leased_val[i].bytes, size, sizeof size),
			limit->leased.leased_val[i].gpu);
	printf(limit->leased.leased_len ? "  " : "-  ");
}

static int print_text(const ckt_control_limits_res *res)
{
	char rule[CLEAN_BYTES], size[32], used[32];
	printf("%8s  %-6s  %s\n", "SESSIONS", "FROM", "LEASED  LIMIT");
	for (u_int i = 0; i < res->limits.limits_len; i++) {
		const ckt_control_limit *limit = &res->limits.limits_val[i];
		printf("%8u  %-6s  ", limit->sessions, limit->live ? "set" : "file");
		print_leased(limit);
		printf("%s\n", ckt_ctl_clean(limit->rule, rule, sizeof rule));
	}
	for (u_int i = 0; i < res->budgets.budgets_len; i++) {
		const ckt_control_budget *budget = &res->budgets.budgets_val[i];
		printf("GPU %u: %s of %s\n", budget->gpu,
			ckt_ctl_size_text(budget->used_bytes, used, sizeof used),
			ckt_ctl_size_text(budget->budget_bytes, size, sizeof size));
	}
	return ckt_ctl_flush();
}

static int show(const struct ckt_ctl_args *args)
{
	ckt_control_limits_res res = {0};
	if (args->word_count != 1)
		return wrong("show takes no more words");
	int status = ckt_ctl_ask(args, NULL, CKT_CONTROL_LIMIT_SHOW, NULL, NULL,
		(xdrproc_t)xdr_ckt_control_limits_res, &res, TIMEOUT_MS);
	if (status != CKT_EXIT_DONE)
		return status;
	status = args->json ? print_json(&res) : print_text(&res);
	xdr_free((xdrproc_t)xdr_ckt_control_limits_res, (char *)&res);
	return status;
}

int ckt_ctl_limit(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *name;
		int (*run)(const struct ckt_ctl_args *args);
	} actions[] = {{"set", set}, {"show", show}, {"clear", clear}};
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(args->words[0], actions[i].name) == 0)
			return actions[i].run(args);
	return wrong("write set, show or clear");
}
