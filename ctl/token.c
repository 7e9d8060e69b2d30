/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl token add|list|revoke: the tokens of a server on this host, in the file that its option
 * --tokens names.  The server reads the file again by itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/size_text.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"
#include "rpc/token_file.h"

#define DEFAULT_FILE "/etc/cricket/tokens"

enum { SECRET_SIZE = 32, TEXT_SIZE = 4 + 2 * SECRET_SIZE + 1, MESSAGE_SIZE = 1024 };

static const char *path_of(const struct ckt_ctl_args *args)
{
	return args->tokens ? args->tokens : DEFAULT_FILE;
}

static int failed(const char *message)
{
	char clean[MESSAGE_SIZE];
	fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(message, clean, sizeof clean));
	return CKT_EXIT_REFUSED;
}

static int bad(const char *option, const char *value, const char *remedy)
{
	char clean[MESSAGE_SIZE];
	fprintf(stderr, "cricketctl: %s: '%s': %s\n", option,
		ckt_ctl_clean(value, clean, sizeof clean), remedy);
	return CKT_EXIT_USAGE;
}

/* ---- add */

static int take_projects(const char *text, struct ckt_token_entry *entry)
{
	for (const char *p = text; *p; p += *p == ',') {
		char name[CKT_TOKEN_NAME_MAX + 1] = "";
		size_t length = strcspn(p, ",");
		if (length < sizeof name)
			memcpy(name, p, length);
		if (!ckt_token_name_is_good(name) || entry->project_count == CKT_TOKEN_PROJECTS_MAX)
			return bad("--project", text,
				"write up to 8 names of a-z, 0-9, '.', '_' and '-', with commas between them");
		memcpy(entry->projects[entry->project_count++], name, sizeof name);
		p += length;
	}
	return CKT_EXIT_DONE;
}

static int take_limits(const struct ckt_ctl_args *args, struct ckt_token_entry *entry)
{
	char *end = NULL;
	unsigned long count = args->max_sessions ? strtoul(args->max_sessions, &end, 10) : 0;
	if (args->max_sessions && (*end || !count || count > 1000000))
		return bad("--max-sessions", args->max_sessions, "write a whole number above 0");
	entry->max_sessions = (unsigned)count;
	if (args->session_memory && ckt_size_parse(args->session_memory, &entry->session_memory))
		return bad("--session-memory", args->session_memory,
			"write a size such as 512M or 8G");
	if (args->session_host_memory &&
		ckt_size_parse(args->session_host_memory, &entry->session_host_memory))
		return bad("--session-host-memory", args->session_host_memory,
			"write a size such as 512M or 8G");
	if (args->expires &&
		(ckt_token_expiry_parse(args->expires, &entry->expires) ||
			entry->expires <= time(NULL)))
		return bad("--expires", args->expires,
			"write a day to come such as 2027-01-31, or 2027-01-31T12:00:00Z");
	return CKT_EXIT_DONE;
}

static int take_options(const struct ckt_ctl_args *args, struct ckt_token_entry *ret_entry)
{
	struct ckt_token_entry entry = {0};
	const char *name = args->words[1];
	if (!ckt_token_name_is_good(name))
		return bad("token add", name,
			"a name consists of 1 to 32 of a-z, 0-9, '.', '_' and '-'");
	snprintf(entry.name, sizeof entry.name, "%s", name);
	if (args->role && !ckt_role_parse(args->role, &entry.role))
		return bad("--role", args->role, "write user, operator or administrator");
	int status = args->project ? take_projects(args->project, &entry) : CKT_EXIT_DONE;
	if (status == CKT_EXIT_DONE && entry.role == CKT_ROLE_OPERATOR && !entry.project_count)
		status = bad("--role", args->role,
			"an operator controls the sessions of projects: name them with --project");
	if (status == CKT_EXIT_DONE)
		status = take_limits(args, &entry);
	*ret_entry = entry;
	return status;
}

/* "ckt-" and 256 random bits. */
static int make_token(char ret_text[TEXT_SIZE])
{
	uint8_t secret[SECRET_SIZE];
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return -EIO;
	strcpy(ret_text, "ckt-");
	for (size_t i = 0; i < sizeof secret; i++)
		snprintf(ret_text + 4 + 2 * i, 3, "%02x", secret[i]);
	explicit_bzero(secret, sizeof secret);
	return 0;
}

static int print_token(
	const struct ckt_ctl_args *args, const struct ckt_token_entry *entry, const char *text)
{
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:s, s:s, s:s}", "name", entry->name, "token",
			text, "file", path_of(args)));
	printf("%s\n", text);
	return ckt_ctl_flush();
}

static int add(const struct ckt_ctl_args *args)
{
	struct ckt_token_entry entry;
	struct ckt_token token = {.size_bytes = TEXT_SIZE - 1};
	char text[TEXT_SIZE], message[MESSAGE_SIZE];
	int status = take_options(args, &entry);
	if (status != CKT_EXIT_DONE)
		return status;
	if (make_token(text))
		return failed("cannot get random bytes for a token");
	memcpy(token.bytes, text, token.size_bytes);
	ckt_token_verifier_make(&token, &entry.verifier);
	explicit_bzero(&token, sizeof token);
	if (ckt_token_file_add(path_of(args), &entry, message, sizeof message))
		return failed(message);
	status = print_token(args, &entry, text);
	explicit_bzero(text, sizeof text);
	if (status != CKT_EXIT_DONE) {
		/* Nobody has seen it. */
		ckt_token_file_remove(path_of(args), entry.name, message, sizeof message);
		return status;
	}
	fprintf(stderr,
		"cricketctl: token '%s' is in %s now; what is printed above is shown only this once: "
		"its user keeps it in a file of mode 600 that CRICKET_TOKEN_FILE names\n",
		entry.name, path_of(args));
	return CKT_EXIT_DONE;
}

/* ---- list */

static const char *expiry_text(const struct ckt_token_entry *entry, char ret_text[32])
{
	struct tm tm;
	if (!entry->expires)
		return "never";
	strftime(ret_text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&entry->expires, &tm));
	return ret_text;
}

static json_t *entry_json(const struct ckt_token_entry *entry)
{
	char expires[32];
	json_t *projects = json_array();
	for (unsigned i = 0; i < entry->project_count; i++)
		json_array_append_new(projects, json_string(entry->projects[i]));
	json_t *object = json_pack("{s:s, s:s, s:o}", "name", entry->name, "role",
		ckt_role_name(entry->role), "projects", projects);
	json_object_set_new(object, "max_sessions", json_integer(entry->max_sessions));
	json_object_set_new(
		object, "session_memory_bytes", json_integer((json_int_t)entry->session_memory));
	json_object_set_new(object, "session_host_memory_bytes",
		json_integer((json_int_t)entry->session_host_memory));
	json_object_set_new(object, "expires",
		entry->expires ? json_string(expiry_text(entry, expires)) : json_null());
	json_object_set_new(
		object, "expired", json_boolean(entry->expires && entry->expires <= time(NULL)));
	return object;
}

static void entry_line(const struct ckt_token_entry *entry)
{
	char projects[CKT_TOKEN_PROJECTS_MAX * (CKT_TOKEN_NAME_MAX + 1) + 1] = "-",
									  sessions[16] = "-",
									  memory[32] = "-",
									  expires[32];
	for (unsigned i = 0, at = 0; i < entry->project_count; i++)
		at += (unsigned)snprintf(projects + at, sizeof projects - at, "%s%s", i ? "," : "",
			entry->projects[i]);
	if (entry->max_sessions)
		snprintf(sessions, sizeof sessions, "%u", entry->max_sessions);
	if (entry->session_memory)
		ckt_ctl_size_text(entry->session_memory, memory, sizeof memory);
	printf("%-20s %-13s %8s %9s  %-20s  %s%s\n", entry->name, ckt_role_name(entry->role),
		sessions, memory, expiry_text(entry, expires), projects,
		entry->expires && entry->expires <= time(NULL) ? "  (expired)" : "");
}

static int list(const struct ckt_ctl_args *args)
{
	struct ckt_token_file file;
	char message[MESSAGE_SIZE];
	json_t *tokens = json_array();
	if (ckt_token_file_read(path_of(args), &file, message, sizeof message)) {
		json_decref(tokens);
		return failed(message);
	}
	if (!args->json)
		printf("%-20s %-13s %8s %9s  %-20s  %s\n", "NAME", "ROLE", "SESSIONS", "MEMORY",
			"EXPIRES", "PROJECTS");
	for (unsigned i = 0; i < file.count; i++) {
		if (args->json)
			json_array_append_new(tokens, entry_json(&file.entries[i]));
		else
			entry_line(&file.entries[i]);
	}
	ckt_token_file_free(&file);
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:o}", "tokens", tokens));
	json_decref(tokens);
	return ckt_ctl_flush();
}

/* ---- revoke */

static int revoke_token(const struct ckt_ctl_args *args)
{
	char message[MESSAGE_SIZE];
	const char *name = args->words[1];
	if (!ckt_token_name_is_good(name))
		return bad("token revoke", name, "see cricketctl token list");
	if (ckt_token_file_remove(path_of(args), name, message, sizeof message))
		return failed(message);
	fprintf(stderr,
		"cricketctl: token '%s' is revoked; programs that are connected with it go on: see "
		"cricketctl ps, and end them with cricketctl kill\n",
		name);
	return CKT_EXIT_DONE;
}

int ckt_ctl_token(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *name;
		int words;
		int (*run)(const struct ckt_ctl_args *args);
	} actions[] = {{"add", 2, add}, {"list", 1, list}, {"revoke", 2, revoke_token}};
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(args->words[0], actions[i].name) == 0 &&
			args->word_count == actions[i].words)
			return actions[i].run(args);
	return bad("token", args->words[0],
		"write add NAME, list or revoke NAME: see cricketctl token --help");
}
