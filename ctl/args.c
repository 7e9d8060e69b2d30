/* The command line of cricketctl; see args.h. */
#include "ctl/args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command.h"

struct option {
	const char *name;
	bool everywhere;
	size_t flag_offset, value_offset; /* one of the two offsets; SIZE_MAX: the other one */
	/* the text of a subcommand's --help; value: NULL for a flag */
	const char *value, *help;
};

#define FLAG(member) offsetof(struct ckt_ctl_args, member), SIZE_MAX, NULL
#define VALUE(member, name) SIZE_MAX, offsetof(struct ckt_ctl_args, member), name

static const struct option options[] = {
	{"server", true, VALUE(server, "ADDRESS"),
		"host, host:port, unix:/path or file:PATH (default: REMOTE_GPU_ADDRESS, then the local socket)"},
	{"json", true, FLAG(json), "print JSON"},
	{"help", true, FLAG(help), "print this, and end"},
	{"version", true, FLAG(version), "print the version, and end"},
	{"stop", false, FLAG(stop), "end the session once its image is complete"},
	{"with-client", false, FLAG(with_client), "the program's process too, by CRIU"},
	{"job", false, VALUE(job, "NAME"),
		"all sessions of a job together (restore: DIR that holds them); --server may be given several times"},
	{"deadline", false, VALUE(deadline, "SECONDS"),
		"how long the GPU may take to finish what it is doing (default 60)"},
	{"server-side", false, VALUE(server_side, "NAME"),
		"an image in the server's --image-dir instead of DIR"},
	{"to-memory", false, FLAG(to_memory), "keep the image in the memory of the server's host"},
	{"compress", false, FLAG(compress), "compress the contents with zstd"},
	{"incremental", false, VALUE(incremental, "BASE"),
		"write only what changed since that image of the session"},
	{"every", false, VALUE(every, "30s"),
		"a chain of images in DIR, one each time, until the session ends"},
	{"keep", false, VALUE(keep, "N"),
		"of --every: images of a chain before a new one begins (default 3)"},
	{"to", false, VALUE(to, "ADDRESS"), "the server where the session goes or is"},
	{"gpu", false, VALUE(gpu, "N"), "the GPU that the session's first one becomes"},
	{"place", false, VALUE(place, "N,N,..."),
		"of restore --job: the number of the --server, from 0, of each session in its order"},
	{"client-address", false, VALUE(client_address, "ADDRESS"),
		"where the client reaches that server, if elsewhere"},
	{"for", false, VALUE(pause_for, "30m"), "let it go on by itself after a time (s, m, h, d)"},
	{"until", false, VALUE(until, "18:00"), "let it go on by itself at a time of this clock"},
	{"follow", false, FLAG(follow), "go on printing what happens"},
};

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

static const struct option *find_option(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (strlen(options[i].name) == length &&
			strncmp(options[i].name, name, length) == 0)
			return &options[i];
	return NULL;
}

static void print_option(const struct option *option)
{
	char text[64];
	snprintf(text, sizeof text, "--%s%s%s", option->name, option->value ? " " : "",
		option->value ? option->value : "");
	printf("  %-24s %s\n", text, option->help);
}

void ckt_ctl_print_options(const struct ckt_ctl_command *command)
{
	for (size_t i = 0; command && i < sizeof options / sizeof *options; i++)
		if (!options[i].everywhere && has_word(command->options, options[i].name))
			print_option(&options[i]);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (options[i].everywhere)
			print_option(&options[i]);
}

/*
 * *at is the index of the option and moves past its value.  used: bit of each option met, to be
 * checked against the subcommand.
 */
static int take_option(int argc, char **argv, int *at, struct ckt_ctl_args *args, unsigned *used)
{
	const char *name = argv[*at] + 2;
	size_t length = strcspn(name, "=");
	const struct option *option =
		strncmp(argv[*at], "--", 2) == 0 ? find_option(name, length) : NULL;
	if (!option)
		return usage("unknown option '%s'%s", argv[*at], "");
	*used |= 1u << (option - options);
	if (option->flag_offset != SIZE_MAX) {
		if (name[length])
			return usage("--%s takes no value, but got '%s'", option->name,
				name + length + 1);
		*(bool *)((char *)args + option->flag_offset) = true;
		return CKT_EXIT_DONE;
	}
	const char *value = name[length] ? name + length + 1 : ++*at < argc ? argv[*at] : NULL;
	if (!value || !*value)
		return usage("--%s needs a value%s", option->name, "");
	*(const char **)((char *)args + option->value_offset) = value;
	if (option->value_offset == offsetof(struct ckt_ctl_args, server)) {
		if (args->server_count == CKT_CTL_SERVERS_MAX)
			return usage("--server: '%s' is one address too many%s", value, "");
		args->servers[args->server_count++] = value;
	}
	return CKT_EXIT_DONE;
}

static int check(
	const struct ckt_ctl_command *command, const struct ckt_ctl_args *args, unsigned used)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (used & 1u << i && !options[i].everywhere &&
			!has_word(command->options, options[i].name))
			return usage("--%s is no option of '%s'", options[i].name, command->name);
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
	unsigned used = 0;
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
