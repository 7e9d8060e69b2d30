/* The command line of cricketctl; see ctl.h. */
#include <string.h>

#include "ctl.h"

struct option {
	const char *name;
	bool everywhere;
	size_t flag_offset, value_offset;	/* one of the two; SIZE_MAX: not */
};

#define FLAG(member) offsetof(struct ckt_ctl_args, member), SIZE_MAX
#define VALUE(member) SIZE_MAX, offsetof(struct ckt_ctl_args, member)

static const struct option options[] = {
	{"server", true, VALUE(server)},    {"json", true, FLAG(json)},	      {"help", true, FLAG(help)}, {"version", true, FLAG(version)},
	{"stop", false, FLAG(stop)},	    {"deadline", false, VALUE(deadline)}, {"gpu", false, VALUE(gpu)},
	{"to", false, VALUE(to)},	    {"client-address", false, VALUE(client_address)},
	{"incremental", false, VALUE(incremental)}, {"every", false, VALUE(every)}, {"keep", false, VALUE(keep)},
	{"server-side", false, VALUE(server_side)}, {"to-memory", false, FLAG(to_memory)}, {"compress", false, FLAG(compress)},
	{"with-client", false, FLAG(with_client)},
	{"for", false, VALUE(pause_for)},   {"until", false, VALUE(until)},   {"follow", false, FLAG(follow)},
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
		if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
			return &options[i];
	return NULL;
}

/* *at is the index of the option and moves past its value.  used: bit of each option met, to be checked against the subcommand. */
static int take_option(int argc, char **argv, int *at, struct ckt_ctl_args *args, unsigned *used)
{
	const char *name = argv[*at] + 2;
	size_t length = strcspn(name, "=");
	const struct option *option = strncmp(argv[*at], "--", 2) == 0 ? find_option(name, length) : NULL;
	if (!option)
		return usage("'%s' is no option%s", argv[*at], "");
	*used |= 1u << (option - options);
	if (option->flag_offset != SIZE_MAX) {
		if (name[length])
			return usage("--%s takes no value, but got '%s'", option->name, name + length + 1);
		*(bool *)((char *)args + option->flag_offset) = true;
		return CKT_EXIT_DONE;
	}
	const char *value = name[length] ? name + length + 1 : ++*at < argc ? argv[*at] : NULL;
	if (!value || !*value)
		return usage("--%s needs a value%s", option->name, "");
	*(const char **)((char *)args + option->value_offset) = value;
	return CKT_EXIT_DONE;
}

static int check(const struct ckt_ctl_command *command, const struct ckt_ctl_args *args, unsigned used)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (used & 1u << i && !options[i].everywhere && !has_word(command->options, options[i].name))
			return usage("--%s is no option of '%s'", options[i].name, command->name);
	if (args->help || args->version)
		return CKT_EXIT_DONE;
	if (args->word_count < command->min_words || (args->word_count > command->max_words && !command->rest))
		return usage(args->word_count < command->min_words ? "something is missing; write: cricketctl %s%s"
								   : "'%s' is too much; write: cricketctl %s",
			     args->word_count < command->min_words ? command->synopsis : args->words[command->max_words],
			     args->word_count < command->min_words ? "" : command->synopsis);
	return CKT_EXIT_DONE;
}

int ckt_ctl_parse(const struct ckt_ctl_command *commands, int argc, char **argv, struct ckt_ctl_args *ret_args,
		  const struct ckt_ctl_command **ret_command)
{
	struct ckt_ctl_args args = {0};
	const struct ckt_ctl_command *command = NULL;
	unsigned used = 0;
	int words = 1;	/* the words are moved to the front of argv, which is ours */
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
			for (command = commands; command->name && strcmp(command->name, argv[i]) != 0;)
				command++;
			if (!command->name)
				return usage("'%s' is no subcommand%s", argv[i], "");
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
