/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the option tables of cricketctl, cricket-run and cricket-server as JSON, for generate.py and for the tests. It runs while
 * Cricket is built and is not installed.
 *
 *	[{"program": "cricketctl",
 *	  "options": [{"name", "letter", "argument", "help", "value", "words", "everywhere"}],
 *	  "subcommands": [{"name", "help", "options": [NAME], "values": [KIND], "words", "rest"}]}]
 *
 * letter and argument may be null. value and KIND are names of base/option_table.h; everywhere: every subcommand takes the option.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/run/run.h"
#include "ctl/command.h"
#include "server/daemon/option_table.h"

static json_t *word_list(const char *text)
{
	json_t *list = json_array();
	for (const char *p = text ? text + strspn(text, " ") : ""; *p; p += strspn(p, " ")) {
		size_t length = strcspn(p, " ");
		json_array_append_new(list, json_stringn(p, length));
		p += length;
	}
	return list;
}

static void add_option(json_t *options, const struct ckt_option *option, bool everywhere)
{
	json_t *one = json_pack("{s:s, s:s?, s:s, s:s, s:o, s:b}", "name", option->name, "argument",
		option->argument, "help", option->help, "value", ckt_value_kind_name(option->value),
		"words", word_list(option->words), "everywhere", everywhere);
	json_object_set_new(
		one, "letter", option->letter ? json_stringn(&option->letter, 1) : json_null());
	json_array_append_new(options, one);
}

static json_t *describe_run(void)
{
	json_t *options = json_array();
	for (size_t i = 0; i < RUN_OPTIONS; i++)
		add_option(options, &run_option_table[i], true);
	return json_pack(
		"{s:s, s:o, s:[]}", "program", "cricket-run", "options", options, "subcommands");
}

static json_t *describe_server(void)
{
	json_t *options = json_array();
	for (size_t i = 0; i < CKT_SERVER_OPTIONS; i++)
		add_option(options, &ckt_server_options[i].option, true);
	return json_pack(
		"{s:s, s:o, s:[]}", "program", "cricket-server", "options", options, "subcommands");
}

static json_t *describe_ctl(void)
{
	json_t *options = json_array(), *subcommands = json_array();
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		add_option(options, &ckt_ctl_options[i].option, ckt_ctl_options[i].everywhere);
	for (const struct ckt_ctl_command *command = ckt_ctl_commands; command->name; command++) {
		json_t *values = json_array();
		for (int i = 0; i < command->max_words; i++)
			json_array_append_new(
				values, json_string(ckt_value_kind_name(command->values[i])));
		json_array_append_new(subcommands,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "name", command->name, "help",
				command->help, "options", word_list(command->options), "values",
				values, "words", word_list(command->first_words), "rest",
				command->rest));
	}
	return json_pack("{s:s, s:o, s:o}", "program", "cricketctl", "options", options,
		"subcommands", subcommands);
}

int main(void)
{
	json_t *all = json_pack("[o, o, o]", describe_ctl(), describe_run(), describe_server());
	int result = all ? json_dumpf(all, stdout, JSON_INDENT(1)) : -1;
	putchar('\n');
	json_decref(all);
	return result || fflush(stdout);
}
