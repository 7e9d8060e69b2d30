/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the INI file; see options.h. */
#include "server/daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size_text.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/option_table.h"

int ckt_options_gpus_parse(
	const char *text, unsigned ret_gpus[CKT_DEVICES_MAX], unsigned *ret_count)
{
	bool wanted[CKT_DEVICES_MAX] = {false};
	unsigned count = 0;
	if (strcmp(text, "all") == 0) {
		*ret_count = 0;
		return 0;
	}
	for (const char *p = text;;) {
		unsigned long range[2];
		for (int i = 0; i < 2; i++) {
			char *end;
			if (!isdigit((unsigned char)*p))
				return -EINVAL;
			range[i] = strtoul(p, &end, 10);
			if (range[i] >= CKT_DEVICES_MAX)
				return -EINVAL;
			p = end;
			if (i == 0 && *p == '-') {
				p++;
				continue;
			}
			if (i == 0)
				range[1] = range[0];
			break;
		}
		if (range[0] > range[1])
			return -EINVAL;
		for (unsigned long gpu = range[0]; gpu <= range[1]; gpu++)
			wanted[gpu] = true;
		if (!*p)
			break;
		if (*p++ != ',')
			return -EINVAL;
	}
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (wanted[gpu])
			ret_gpus[count++] = gpu;
	*ret_count = count;
	return 0;
}

static int count_parse(const char *text, unsigned *ret_count)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	unsigned long value = strtoul(text, &end, 10);
	if (*end || value > 1000000)
		return -EINVAL;
	*ret_count = (unsigned)value;
	return 0;
}

/* A number of seconds, or with the unit s, m or h. */
static int seconds_parse(const char *text, unsigned *ret_seconds)
{
	static const struct {
		char unit;
		unsigned seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	char number[16];
	size_t length = strlen(text);
	unsigned count, each = 1;
	if (!length || length >= sizeof number)
		return -EINVAL;
	strcpy(number, text);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (number[length - 1] == units[i].unit) {
			number[length - 1] = 0;
			each = units[i].seconds;
			break;
		}
	if (count_parse(number, &count) || count > UINT_MAX / each)
		return -EINVAL;
	*ret_seconds = count * each;
	return 0;
}

static int flag_parse(const char *text, bool *ret_flag)
{
	static const char *const yes[] = {"yes", "true", "on", "1"},
				 *const no[] = {"no", "false", "off", "0"};
	for (unsigned i = 0; i < 4; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret_flag = strcmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

static void list_clear(struct ckt_list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		free(list->items[i]);
	list->count = 0;
}

static const struct ckt_server_option *find(const char *name)
{
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++)
		if (strcmp(ckt_server_options[i].option.name, name) == 0)
			return &ckt_server_options[i];
	return NULL;
}

/* replace: the first item of a list from this origin replaces those of the weaker origin. */
static int assign(struct ckt_options *options, const struct ckt_server_option *entry,
	const char *value, bool replace)
{
	void *member = (char *)options + entry->offset;
	if (entry->check && entry->check(value))
		return -EINVAL;
	switch (entry->type) {
	case CKT_SERVER_OPTION_TEXT: {
		char *copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(*(char **)member);
		*(char **)member = copy;
		return 0;
	}
	case CKT_SERVER_OPTION_LIST: {
		struct ckt_list *list = member;
		char *copy = list->count < CKT_LISTEN_MAX ? strdup(value) : NULL;
		if (!copy)
			return -ENOMEM;
		if (replace)
			list_clear(list);
		list->items[list->count++] = copy;
		return 0;
	}
	case CKT_SERVER_OPTION_SIZE:
		return ckt_size_parse(value, member);
	case CKT_SERVER_OPTION_COUNT:
		return count_parse(value, member);
	case CKT_SERVER_OPTION_SECONDS:
		return seconds_parse(value, member);
	case CKT_SERVER_OPTION_FLAG:
		return flag_parse(value, member);
	}
	return -EINVAL;
}

static uint64_t default_host_memory(void)
{
	const uint64_t least = (uint64_t)8 << 30;
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t quarter =
		pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 >> 30 << 30 : 0;
	return quarter > least ? quarter : least;
}

void ckt_options_init(struct ckt_options *options)
{
	*options = (struct ckt_options){
		.driver = strdup("auto"),
		.gpus = strdup("all"),
		.session_host_memory = default_host_memory(),
		.staging = (uint64_t)40 << 20,
		.module_cache_size = (uint64_t)1 << 30,
		.max_sessions = 256,
		.max_waiting = 1024,
		.max_connections_per_user = 128,
		.max_stages_per_user = 128,
		.max_delay = 10,
		.log_burst = 10,
		.grace = 10,
		.claim_timeout = 300,
		.replicate_lease = CKT_REPLICA_LEASE_S,
		.drain = 5,
		.max_wait = 60,
		.log = strdup("auto"),
		.log_level = strdup("info"),
		.cage = strdup("auto"),
		.worker_network = strdup("auto"),
	};
}

void ckt_options_fini(struct ckt_options *options)
{
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++) {
		void *member = (char *)options + ckt_server_options[i].offset;
		if (ckt_server_options[i].type == CKT_SERVER_OPTION_TEXT)
			free(*(char **)member);
		else if (ckt_server_options[i].type == CKT_SERVER_OPTION_LIST)
			list_clear(member);
	}
	*options = (struct ckt_options){0};
}

/* ---- Command line */

enum pass { PASS_CONFIG, PASS_ALL };

static int parse_pass(struct ckt_options *options, int argc, char *const *argv, enum pass pass,
	char *ret_message, size_t message_size)
{
	bool seen[CKT_SERVER_OPTIONS] = {false};
	for (int i = 1; i < argc; i++) {
		const char *argument = argv[i], *equals = strchr(argument, '=');
		char name[64] = "";
		if (strncmp(argument, "--", 2) == 0 &&
			(equals ? (size_t)(equals - argument) : strlen(argument)) < sizeof name)
			snprintf(name, sizeof name, "%.*s",
				equals ? (int)(equals - argument - 2) : (int)sizeof name - 1,
				argument + 2);
		const struct ckt_server_option *entry = *name ? find(name) : NULL;
		if (!entry) {
			snprintf(ret_message, message_size,
				"'%s' is no option of cricket-server: see cricket-server --help",
				argument);
			return -EINVAL;
		}
		const char *value = equals ? equals + 1 : NULL;
		if (!entry->option.argument && value) {
			snprintf(ret_message, message_size, "--%s takes no value, but got '%s'",
				name, value);
			return -EINVAL;
		}
		if (entry->option.argument && !value) {
			if (++i >= argc) {
				snprintf(ret_message, message_size, "--%s needs a value: %s", name,
					entry->remedy);
				return -EINVAL;
			}
			value = argv[i];
		}
		if (pass == PASS_CONFIG && entry->offset != offsetof(struct ckt_options, config))
			continue;
		if (assign(options, entry, value ? value : "yes",
			    !seen[entry - ckt_server_options])) {
			snprintf(ret_message, message_size, "--%s: '%s' is not valid: %s", name,
				value ? value : "", entry->remedy);
			return -EINVAL;
		}
		seen[entry - ckt_server_options] = true;
	}
	return 0;
}

int ckt_options_parse(struct ckt_options *options, int argc, char *const *argv, char *ret_message,
	size_t message_size)
{
	ckt_options_init(options);
	int result = parse_pass(options, argc, argv, PASS_CONFIG, ret_message, message_size);
	if (!result && options->config)
		result = ckt_options_load(options, options->config, ret_message, message_size);
	if (!result)
		result = parse_pass(options, argc, argv, PASS_ALL, ret_message, message_size);
	return result;
}

/* ---- INI file */

struct load {
	struct ckt_options *options;
	bool seen[CKT_SERVER_OPTIONS];
	bool failed;
	char problem[CKT_OPTION_MESSAGE_MAX];
};

static int __attribute__((format(printf, 2, 3)))
load_fail(struct load *load, const char *format, ...)
{
	if (!load->failed) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(load->problem, sizeof load->problem, format, arguments);
		va_end(arguments);
	}
	load->failed = true;
	return 0;
}

static int load_line(void *user, const char *section, const char *name, const char *value)
{
	struct load *load = user;
	if (*section && strcmp(section, "server") != 0)
		return load_fail(
			load, "section [%s] is not known: the only one is [server]", section);
	const struct ckt_server_option *entry = find(name);
	if (!entry || entry->command_line_only)
		return load_fail(load,
			"key '%s' is not known: keys are the long options of cricket-server --help",
			name);
	if (assign(load->options, entry, value, !load->seen[entry - ckt_server_options]))
		return load_fail(load, "%s: '%s' is not valid: %s", name, value, entry->remedy);
	load->seen[entry - ckt_server_options] = true;
	return 1;
}

/* inih would read the rest of a longer line as a line of its own. */
static int find_long_line(FILE *file)
{
	char line[INI_MAX_LINE];
	int number = 0, found = 0;
	bool start = true;
	while (!found && fgets(line, sizeof line, file)) {
		number += start;
		start = strchr(line, '\n') != NULL;
		if (!start && !feof(file))
			found = number;
	}
	rewind(file);
	return found;
}

int ckt_options_load(
	struct ckt_options *options, const char *path, char *ret_message, size_t message_size)
{
	struct load load = {.options = options};
	FILE *file = fopen(path, "re");
	if (!file) {
		snprintf(ret_message, message_size, "--config: '%s': %s", path, strerror(errno));
		return -EINVAL;
	}
	int line = find_long_line(file);
	if (line) {
		load_fail(&load, "longer than %d characters", INI_MAX_LINE - 2);
	} else {
		/* The number of the first line that failed. */
		line = ini_parse_file(file, load_line, &load);
		if (line && !load.failed)
			load_fail(&load, "no 'key = value', [section] or comment");
	}
	fclose(file);
	if (line) {
		snprintf(ret_message, message_size, "%s:%d: %s", path, line, load.problem);
		return -EINVAL;
	}
	return 0;
}

static void print_size(uint64_t bytes, FILE *file)
{
	static const char units[] = "TGMK";
	for (unsigned i = 0; bytes && i < 4; i++) {
		unsigned shift = 10 * (4 - i);
		if (!(bytes & ((UINT64_C(1) << shift) - 1))) {
			fprintf(file, "%llu%c", (unsigned long long)(bytes >> shift), units[i]);
			return;
		}
	}
	fprintf(file, "%llu", (unsigned long long)bytes);
}

void ckt_options_print(const struct ckt_options *options, FILE *file)
{
	fprintf(file, "[server]\n");
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++) {
		const struct ckt_server_option *entry = &ckt_server_options[i];
		const void *member = (const char *)options + entry->offset;
		if (entry->command_line_only)
			continue;
		if (entry->type == CKT_SERVER_OPTION_LIST) {
			const struct ckt_list *list = member;
			for (unsigned item = 0; item < list->count; item++)
				fprintf(file, "%s = %s\n", entry->option.name, list->items[item]);
			if (!list->count)
				fprintf(file, "# %s =\n", entry->option.name);
			continue;
		}
		if (entry->type == CKT_SERVER_OPTION_TEXT && !*(char *const *)member) {
			fprintf(file, "# %s =\n", entry->option.name);
			continue;
		}
		fprintf(file, "%s = ", entry->option.name);
		if (entry->type == CKT_SERVER_OPTION_TEXT)
			fputs(*(char *const *)member, file);
		else if (entry->type == CKT_SERVER_OPTION_SIZE)
			print_size(*(const uint64_t *)member, file);
		else if (entry->type == CKT_SERVER_OPTION_COUNT ||
			entry->type == CKT_SERVER_OPTION_SECONDS)
			fprintf(file, "%u", *(const unsigned *)member);
		else
			fputs(*(const bool *)member ? "yes" : "no", file);
		fputc('\n', file);
	}
}

void ckt_options_help(FILE *file)
{
	fprintf(file,
		"usage: cricket-server [OPTION...]\n"
		"Lets CUDA programs on other machines (or in other processes) use the GPUs of this one.\n\n");
	for (unsigned i = 0; i < CKT_SERVER_OPTIONS; i++)
		ckt_option_print(&ckt_server_options[i].option, false, file);
	fprintf(file,
		"\nExit status: 0 a clean end, 1 a failure, 2 wrong options.  See cricket-server(8).\n");
}
