/* The table of options; see options.h. */
#include "server/daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"

enum kind { KIND_TEXT, KIND_LIST, KIND_SIZE, KIND_COUNT, KIND_FLAG };

struct option_entry {
	const char *name;
	enum kind kind;
	size_t offset;
	int (*check)(const char *value);
	const char *argument; /* NULL: none */
	const char *remedy;   /* completes "NAME: 'VALUE' is not valid: " */
	const char *help;
	bool command_line_only;
};

static int check_address(const char *value)
{
	struct ckt_address address;
	char message[CKT_OPTION_MESSAGE_MAX];
	if (strcmp(value, "none") == 0)
		return 0;
	if (ckt_address_parse(value, &address, message, sizeof message) ||
		address.type != CKT_ADDRESS_TCP)
		return -EINVAL;
	return 0;
}

static int check_path(const char *value)
{
	return *value ? 0 : -EINVAL;
}

static int check_absolute(const char *value)
{
	return *value == '/' ? 0 : -EINVAL;
}

static int check_on_term(const char *value)
{
	return strncmp(value, "checkpoint:/", 12) == 0 ? 0 : -EINVAL;
}

static int check_positive(const char *value)
{
	return strspn(value, "0") == strlen(value) ? -EINVAL : 0;
}

static int check_driver(const char *value)
{
	return strcmp(value, "auto") == 0 || strcmp(value, "soft") == 0 ? 0 : check_absolute(value);
}

static int check_directories(const char *value)
{
	for (const char *p = value; *p; p += strcspn(p, ":") + (p[strcspn(p, ":")] == ':'))
		if (*p != '/')
			return -EINVAL;
	return *value ? 0 : -EINVAL;
}

static int check_gpus(const char *value)
{
	unsigned gpus[CKT_DEVICES_MAX], count;
	return ckt_options_gpus_parse(value, gpus, &count);
}

static int check_level(const char *value)
{
	enum ckt_log_level level;
	return ckt_log_level_parse(value, &level);
}

#define AT(member) offsetof(struct ckt_options, member)

static const struct option_entry table[] = {
	{"listen", KIND_LIST, AT(listen), check_address, "HOST:PORT",
		"write host:port, [v6-address]:port, 0.0.0.0:port for every interface, or none",
		"TCP address to listen on, port 0 for any free one; may be given\nseveral times; none, the default: no TCP, the UNIX socket alone"},
	{"address-file", KIND_TEXT, AT(address_file), check_path, "PATH",
		"give the path of a file to write",
		"write the addresses that clients can use to PATH, one a line"},
	{"socket", KIND_TEXT, AT(socket), check_absolute, "PATH", "give an absolute path",
		"UNIX socket; sessions keep theirs in PATH.d (default\n/run/cricket/socket for root, else\n$XDG_RUNTIME_DIR/cricket/socket)"},
	{"driver", KIND_TEXT, AT(driver), check_driver, "soft|auto|PATH",
		"write soft, auto or the absolute path of a libcuda.so.1",
		"CUDA driver of the sessions (default auto: the machine's\nlibcuda.so.1 if it finds a GPU, else the soft GPU)"},
	{"library-path", KIND_TEXT, AT(library_path), check_directories, "DIR:DIR",
		"give absolute paths, with colons between them",
		"where the genuine libraries (cuBLAS, cuFFT ...) are looked for\nbefore CUDA toolkits, Python's packages and the loader's\ndirectories"},
	{"gpus", KIND_TEXT, AT(gpus), check_gpus, "LIST",
		"write all, or the driver's numbers such as 0,2-3",
		"GPUs that sessions get (default all)"},
	{"session-memory", KIND_SIZE, AT(session_memory), NULL, "SIZE",
		"write a size such as 512M or 8G, or 0 for no limit",
		"device memory that one session may take (default 0: no limit)"},
	{"session-host-memory", KIND_SIZE, AT(session_host_memory), NULL, "SIZE",
		"write a size such as 512M or 8G, or 0 for no limit",
		"memory of this host that one session may take for modules,\ngraphs, replies and the like (default a quarter of the\nhost's, 8G at least; 0: no limit)"},
	{"max-sessions", KIND_COUNT, AT(max_sessions), NULL, "N",
		"write a whole number, or 0 for no limit",
		"sessions at one time (default 256; 0: no limit)"},
	{"max-sessions-per-user", KIND_COUNT, AT(max_sessions_per_user), NULL, "N",
		"write a whole number, or 0 for three quarters of --max-sessions",
		"sessions of one user, of the token or of one anonymous address\n(default 0: three quarters of --max-sessions)"},
	{"max-waiting", KIND_COUNT, AT(max_waiting), check_positive, "N",
		"write a whole number above 0",
		"connections that have not said hello (default 1024)"},
	{"max-waiting-per-peer", KIND_COUNT, AT(max_waiting_per_peer), NULL, "N",
		"write a whole number, or 0 for half of --max-waiting",
		"of those, from one address or user (default 0: half of them)"},
	{"max-connections-per-user", KIND_COUNT, AT(max_connections_per_user), NULL, "N",
		"write a whole number, or 0 for no limit",
		"connections of cricketctl, and of images' files, of one user;\nhalf of them may wait for events (default 128; 0: no limit)"},
	{"max-stages-per-user", KIND_COUNT, AT(max_stages_per_user), NULL, "N",
		"write a whole number, or 0 for no limit",
		"images of one user that travel at one time (default 128;\n0: no limit)"},
	{"image-space", KIND_SIZE, AT(image_space), NULL, "SIZE",
		"write a size such as 500G, or 0 for half of the file system",
		"bytes of one user's images in --image-dir (default 0: half of\nthe file system)"},
	{"max-delay", KIND_COUNT, AT(max_delay), NULL, "SECONDS", "write a whole number of seconds",
		"longest wait for the answer to a wrong token (default 10)"},
	{"log-burst", KIND_COUNT, AT(log_burst), check_positive, "N",
		"write a whole number above 0",
		"messages of one kind about strangers at once, then one a second\n(default 10)"},
	{"token-file", KIND_TEXT, AT(token_file), check_path, "FILE",
		"give the path of a file with at least 16 random characters, mode 0600",
		"TCP clients must know this token (CRICKET_TOKEN_FILE)"},
	{"insecure", KIND_FLAG, AT(insecure), NULL, NULL, "write yes or no",
		"let TCP clients in that show no token"},
	{"user", KIND_TEXT, AT(user), check_path, "NAME", "give the name of a user",
		"user of the workers when started by root (default cricket,\nor nobody where there is no such user)"},
	{"grace", KIND_COUNT, AT(grace), NULL, "SECONDS", "write a whole number of seconds",
		"time that running sessions get after SIGTERM (default 10)"},
	{"claim-timeout", KIND_COUNT, AT(claim_timeout), NULL, "SECONDS",
		"write a whole number of seconds",
		"time that a restored session waits for its client (default 300)"},
	{"image-dir", KIND_TEXT, AT(image_dir), check_absolute, "DIR", "give an absolute path",
		"images that travel or stay here (default: the socket's name\nwith .images), mode 0700"},
	{"image-memory", KIND_SIZE, AT(image_memory), NULL, "SIZE",
		"write a size such as 512M or 8G, or 0 for half of the host's memory",
		"host memory that images kept there may take together\n(default 0: half of the host's)"},
	{"hooks", KIND_TEXT, AT(hooks), check_absolute, "DIR", "give an absolute path",
		"executables that are run for every event of a session"},
	{"on-term", KIND_TEXT, AT(on_term), check_on_term, "ACTION",
		"write checkpoint: and the absolute path of a directory",
		"checkpoint:DIR writes every session to DIR/SESSION at SIGTERM"},
	{"log-level", KIND_TEXT, AT(log_level), check_level, "LEVEL",
		"write error, warning, info, debug or quiet",
		"error, warning, info, debug or quiet (default info)"},
	{"config", KIND_TEXT, AT(config), check_path, "FILE", "give the path of an INI file",
		"read options from FILE; the command line goes before it", true},
	{"print-config", KIND_FLAG, AT(print_config), NULL, NULL, "",
		"print the options in effect as such a file, and end", true},
	{"version", KIND_FLAG, AT(version), NULL, NULL, "", "print the version, and end", true},
	{"help", KIND_FLAG, AT(help), NULL, NULL, "", "print this, and end", true},
};
enum { TABLE_SIZE = sizeof table / sizeof *table };

int ckt_options_size_parse(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	char *end;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	unsigned shift = 0;
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end)
		return -EINVAL;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = (uint64_t)value << shift;
	return 0;
}

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

static const struct option_entry *find(const char *name)
{
	for (unsigned i = 0; i < TABLE_SIZE; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* replace: the first item of a list from this origin replaces those of the weaker origin. */
static int assign(struct ckt_options *options, const struct option_entry *entry, const char *value,
	bool replace)
{
	void *member = (char *)options + entry->offset;
	if (entry->check && entry->check(value))
		return -EINVAL;
	switch (entry->kind) {
	case KIND_TEXT: {
		char *copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(*(char **)member);
		*(char **)member = copy;
		return 0;
	}
	case KIND_LIST: {
		struct ckt_list *list = member;
		char *copy = list->count < CKT_LISTEN_MAX ? strdup(value) : NULL;
		if (!copy)
			return -ENOMEM;
		if (replace)
			list_clear(list);
		list->items[list->count++] = copy;
		return 0;
	}
	case KIND_SIZE:
		return ckt_options_size_parse(value, member);
	case KIND_COUNT:
		return count_parse(value, member);
	case KIND_FLAG:
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
		.max_sessions = 256,
		.max_waiting = 1024,
		.max_connections_per_user = 128,
		.max_stages_per_user = 128,
		.max_delay = 10,
		.log_burst = 10,
		.grace = 10,
		.claim_timeout = 300,
		.log_level = strdup("info"),
	};
}

void ckt_options_fini(struct ckt_options *options)
{
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		void *member = (char *)options + table[i].offset;
		if (table[i].kind == KIND_TEXT)
			free(*(char **)member);
		else if (table[i].kind == KIND_LIST)
			list_clear(member);
	}
	*options = (struct ckt_options){0};
}

/* ---- Command line */

enum pass { PASS_CONFIG, PASS_ALL };

static int parse_pass(struct ckt_options *options, int argc, char *const *argv, enum pass pass,
	char *ret_message, size_t message_size)
{
	bool seen[TABLE_SIZE] = {false};
	for (int i = 1; i < argc; i++) {
		const char *argument = argv[i], *equals = strchr(argument, '=');
		char name[64] = "";
		if (strncmp(argument, "--", 2) == 0 &&
			(equals ? (size_t)(equals - argument) : strlen(argument)) < sizeof name)
			snprintf(name, sizeof name, "%.*s",
				equals ? (int)(equals - argument - 2) : (int)sizeof name - 1,
				argument + 2);
		const struct option_entry *entry = *name ? find(name) : NULL;
		if (!entry) {
			snprintf(ret_message, message_size,
				"'%s' is no option of cricket-server: see cricket-server --help",
				argument);
			return -EINVAL;
		}
		const char *value = equals ? equals + 1 : NULL;
		if (!entry->argument && value) {
			snprintf(ret_message, message_size, "--%s takes no value, but got '%s'",
				name, value);
			return -EINVAL;
		}
		if (entry->argument && !value) {
			if (++i >= argc) {
				snprintf(ret_message, message_size, "--%s needs a value: %s", name,
					entry->remedy);
				return -EINVAL;
			}
			value = argv[i];
		}
		if (pass == PASS_CONFIG && entry->offset != AT(config))
			continue;
		if (assign(options, entry, value ? value : "yes", !seen[entry - table])) {
			snprintf(ret_message, message_size, "--%s: '%s' is not valid: %s", name,
				value ? value : "", entry->remedy);
			return -EINVAL;
		}
		seen[entry - table] = true;
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
	bool seen[TABLE_SIZE];
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
	const struct option_entry *entry = find(name);
	if (!entry || entry->command_line_only)
		return load_fail(load,
			"key '%s' is not known: keys are the long options of cricket-server --help",
			name);
	if (assign(load->options, entry, value, !load->seen[entry - table]))
		return load_fail(load, "%s: '%s' is not valid: %s", name, value, entry->remedy);
	load->seen[entry - table] = true;
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
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		const struct option_entry *entry = &table[i];
		const void *member = (const char *)options + entry->offset;
		if (entry->command_line_only)
			continue;
		if (entry->kind == KIND_LIST) {
			const struct ckt_list *list = member;
			for (unsigned item = 0; item < list->count; item++)
				fprintf(file, "%s = %s\n", entry->name, list->items[item]);
			continue;
		}
		if (entry->kind == KIND_TEXT && !*(char *const *)member) {
			fprintf(file, "# %s =\n", entry->name);
			continue;
		}
		fprintf(file, "%s = ", entry->name);
		if (entry->kind == KIND_TEXT)
			fputs(*(char *const *)member, file);
		else if (entry->kind == KIND_SIZE)
			print_size(*(const uint64_t *)member, file);
		else if (entry->kind == KIND_COUNT)
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
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		char head[64];
		snprintf(head, sizeof head, "--%s%s%s", table[i].name, table[i].argument ? " " : "",
			table[i].argument ? table[i].argument : "");
		for (const char *text = table[i].help; text;) {
			const char *end = strchr(text, '\n');
			fprintf(file, "  %-24s %.*s\n", text == table[i].help ? head : "",
				end ? (int)(end - text) : INT_MAX, text);
			text = end ? end + 1 : NULL;
		}
	}
	fprintf(file,
		"\nExit status: 0 a clean end, 1 a failure, 2 wrong options.  See cricket-server(8).\n");
}
