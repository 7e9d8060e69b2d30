/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of cricketctl; see args.h. */
#include "ctl/args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"

static int usage(const char *format, const char *a, const char *b)
{
	fprintf(stderr, "cricketctl: ");
	fprintf(stderr, format, a, b);
	fprintf(stderr, ": see cricketctl --help\n");
	return CKT_EXIT_USAGE;
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *p = list; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n == length && strncmp(p, word, n) == 0)
			return true;
		p += n;
	}
	return false;
}

static const struct ckt_ctl_option *find_option(const char *name, size_t length)
{
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		if (strlen(ckt_ctl_options[i].option.name) == length &&
			strncmp(ckt_ctl_options[i].option.name, name, length) == 0)
			return &ckt_ctl_options[i];
	return NULL;
}

static const struct ckt_ctl_option *find_letter(const char *text)
{
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		if (text[1] && text[1] == ckt_ctl_options[i].option.letter && !text[2])
			return &ckt_ctl_options[i];
	return NULL;
}

void ckt_ctl_print_options(const struct ckt_ctl_command *command)
{
	for (size_t i = 0; command && i < ckt_ctl_option_count; i++)
		if (!ckt_ctl_options[i].everywhere &&
			has_word(command->options, ckt_ctl_options[i].option.name))
			ckt_option_print(&ckt_ctl_options[i].option, false, stdout);
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		if (ckt_ctl_options[i].everywhere)
			ckt_option_print(&ckt_ctl_options[i].option, false, stdout);
}

/*
 * *at is the index of the option and moves past its value.  used: bit of each option met, to be
 * checked against the subcommand.
 */
static int take_option(int argc, char **argv, int *at, struct ckt_ctl_args *args, uint64_t *used)
{
	const char *name = argv[*at] + 2;
	size_t length = strcspn(name, "=");
	const struct ckt_ctl_option *option = strncmp(argv[*at], "--", 2) == 0
		? find_option(name, length)
		: find_letter(argv[*at]);
	if (!option)
		return usage("unknown option '%s'%s", argv[*at], "");
	*used |= UINT64_C(1) << (option - ckt_ctl_options);
	if (option->flag_offset != SIZE_MAX) {
		if (name[length])
			return usage("--%s takes no value, but got '%s'", option->option.name,
				name + length + 1);
		*(bool *)((char *)args + option->flag_offset) = true;
		return CKT_EXIT_DONE;
	}
	const char *value = name[length] ? name + length + 1 : ++*at < argc ? argv[*at] : NULL;
	if (!value || !*value)
		return usage("--%s needs a value%s", option->option.name, "");
	*(const char **)((char *)args + option->value_offset) = value;
	if (option->value_offset == offsetof(struct ckt_ctl_args, server)) {
		if (args->server_count == CKT_CTL_SERVERS_MAX)
			return usage("--server: '%s' is one address too many%s", value, "");
		args->servers[args->server_count++] = value;
	}
	if (option->value_offset == offsetof(struct ckt_ctl_args, image_key)) {
		if (args->image_key_count == CKT_CTL_KEYS_MAX)
			return usage("--image-key: '%s' is one key too many%s", value, "");
		args->image_keys[args->image_key_count++] = value;
	}
	return CKT_EXIT_DONE;
}

static int check(
	const struct ckt_ctl_command *command, const struct ckt_ctl_args *args, uint64_t used)
{
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		if (used & UINT64_C(1) << i && !ckt_ctl_options[i].everywhere &&
			!has_word(command->options, ckt_ctl_options[i].option.name))
			return usage("--%s is no option of '%s'", ckt_ctl_options[i].option.name,
				command->name);
	if (args->help || args->version)
		return CKT_EXIT_DONE;
	if (args->word_count < command->min_words ||
		(args->word_count > command->max_words && !command->rest))
		return usage(args->word_count < command->min_words
				? "missing argument; usage: cricketctl %s%s"
				: "unexpected argument '%s'; usage: cricketctl %s",
			args->word_count < command->min_words ? command->synopsis
							      : args->words[command->max_words],
			args->word_count < command->min_words ? "" : command->synopsis);
	return CKT_EXIT_DONE;
}

int ckt_ctl_parse(const struct ckt_ctl_command *commands, int argc, char **argv,
	struct ckt_ctl_args *ret_args, const struct ckt_ctl_command **ret_command)
{
	struct ckt_ctl_args args = {0};
	const struct ckt_ctl_command *command = NULL;
	uint64_t used = 0;
	int words = 1; /* moves the words to the front of argv, which is ours */
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && argv[i][1] && strcmp(argv[i], "--") != 0) {
			int status = take_option(argc, argv, &i, &args, &used);
			if (status != CKT_EXIT_DONE)
				return status;
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			/* A lone "--" ends the options. */
			while (++i < argc && command)
				argv[words++] = argv[i];
			break;
		}
		if (!command) {
			for (command = commands;
				command->name && strcmp(command->name, argv[i]) != 0;)
				command++;
			if (!command->name)
				return usage("unknown subcommand '%s'%s", argv[i], "");
			args.command = command->name;
			continue;
		}
		argv[words++] = argv[i];
		if (command->rest) {
			while (++i < argc)
				argv[words++] = argv[i];
		}
	}
	args.words = argv + 1;
	args.word_count = words - 1;
	if (!command && !args.help && !args.version)
		return usage("no subcommand%s%s", "", "");
	int status = command ? check(command, &args, used) : CKT_EXIT_DONE;
	if (status == CKT_EXIT_DONE) {
		*ret_args = args;
		*ret_command = command;
	}
	return status;
}
