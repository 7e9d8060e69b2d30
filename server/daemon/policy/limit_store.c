/* SPDX-License-Identifier: Apache-2.0 */
/* The files of limits; see limit_store.h. */
#include "server/daemon/policy/limit_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/server.h"
#include "server/daemon/session/lease.h"
#include "server/daemon/session/memory_wait.h"
#include "server/daemon/session/quanta.h"
#include "server/daemon/session/turn.h"

#define HEAD "# What 'cricketctl limit set' said.  The server writes this file again.\n"

/* ---- Reading */

static int read_line(const char *path, unsigned number, char *line, struct ckt_limit_table *table,
	char *ret_message, size_t message_size)
{
	struct ckt_limit_rule rule;
	char why[CKT_OPTION_MESSAGE_MAX];
	line[strcspn(line, "\n")] = 0;
	int result = ckt_limit_rule_parse(line, &rule, why, sizeof why);
	if (result == -ENODATA)
		return 0;
	if (!result) {
		result = ckt_limit_table_put(table, &rule);
		snprintf(why, sizeof why, "out of memory");
	}
	if (result)
		snprintf(ret_message, message_size, "%s:%u: %s", path, number, why);
	return result;
}

int ckt_limits_read_file(
	const char *path, struct ckt_limit_table *table, char *ret_message, size_t message_size)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *line = NULL;
	size_t room = 0;
	int result = !file || fstat(fileno(file), &st) ? -errno : 0;
	if (!result && st.st_mode & S_IWOTH)
		result = -EPERM;
	if (result)
		snprintf(ret_message, message_size, "limits: %s: %s", path,
			result == -EPERM ? "everybody may write it: chmod o-w" : strerror(-result));
	for (unsigned number = 1; !result && getline(&line, &room, file) >= 0; number++)
		result = read_line(path, number, line, table, ret_message, message_size);
	free(line);
	if (file)
		fclose(file);
	return result;
}

static int is_configuration(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return entry->d_name[0] != '.' && length > 5 &&
		strcmp(entry->d_name + length - 5, ".conf") == 0;
}

int ckt_limits_read_directory(
	const char *path, struct ckt_limit_table *table, char *ret_message, size_t message_size)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_configuration, alphasort), result = 0;
	if (count < 0 && errno == ENOENT)
		return 0;
	if (count < 0) {
		result = -errno;
		snprintf(ret_message, message_size, "limits: %s: %s", path, strerror(-result));
		return result;
	}
	for (int i = 0; i < count; i++) {
		char name[CKT_PATH_MAX];
		snprintf(name, sizeof name, "%.3800s/%s", path, entries[i]->d_name);
		if (!result)
			result = ckt_limits_read_file(name, table, ret_message, message_size);
		free(entries[i]);
	}
	free(entries);
	return result;
}

static void state_path(const struct ckt_server *server, const char *suffix, char *ret_path)
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/limits%s", server->socket_dir, suffix);
}

static int add_set(const struct ckt_limit_table *from, struct ckt_limit_table *table)
{
	int result = 0;
	for (size_t i = 0; i < from->count && !result; i++) {
		struct ckt_limit_rule rule = from->rules[i];
		rule.live = true;
		result = ckt_limit_table_put(table, &rule);
	}
	return result;
}

/* All of them together become what counts. */
static int put_together(struct ckt_server *server, char *ret_message, size_t message_size)
{
	struct ckt_limit_table table = {0};
	int result =
		ckt_limits_read_directory(CKT_LIMITS_DIRECTORY, &table, ret_message, message_size);
	if (!result && server->options.limits)
		result = ckt_limits_read_file(
			server->options.limits, &table, ret_message, message_size);
	if (!result && add_set(&server->limits_set, &table)) {
		snprintf(ret_message, message_size, "limits: out of memory");
		result = -ENOMEM;
	}
	if (result) {
		ckt_limit_table_free(&table);
		return result;
	}
	ckt_limit_table_free(&server->ledger.limits);
	server->ledger.limits = table;
	ckt_lease_limits_changed(server);
	ckt_turns_limits_changed(server);
	ckt_quantum_limits_changed(server);
	return 0;
}

int ckt_limits_open(struct ckt_server *server, char *ret_message, size_t message_size)
{
	char path[CKT_PATH_MAX];
	const char *budgets = server->options.gpu_memory;
	if (budgets)
		ckt_ledger_budgets_parse(budgets, server->ledger.budgets);
	server->ledger.context_bytes = server->driver.soft ? 0 : CKT_LEDGER_CONTEXT_BYTES;
	int result = ckt_memory_wait_open(server, ret_message, message_size);
	if (result)
		return result;
	ckt_quantum_open(server);
	state_path(server, "", path);
	result = access(path, F_OK)
		? 0
		: ckt_limits_read_file(path, &server->limits_set, ret_message, message_size);
	return result ? result : put_together(server, ret_message, message_size);
}

void ckt_limits_reload(struct ckt_server *server)
{
	char message[CKT_PATH_MAX + CKT_OPTION_MESSAGE_MAX];
	if (put_together(server, message, sizeof message))
		ckt_error("%s; the limits stay as they were", message);
	else
		ckt_info("limits read: %zu rules", server->ledger.limits.count);
}

/* ---- What is set */

static int write_set(const struct ckt_server *server, const struct ckt_limit_table *table)
{
	char path[CKT_PATH_MAX], fresh[CKT_PATH_MAX], line[CKT_LIMIT_LINE_MAX + 1];
	state_path(server, "", path);
	state_path(server, "-new", fresh);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return -errno;
	fputs(HEAD, file);
	for (size_t i = 0; i < table->count; i++) {
		ckt_limit_rule_text(&table->rules[i], line);
		fprintf(file, "%s\n", line);
	}
	bool good = !fflush(file) && !ferror(file) && !fsync(fd);
	int result = good ? 0 : -EIO;
	fclose(file);
	if (!result && rename(fresh, path))
		result = -errno;
	if (result)
		unlink(fresh);
	return result;
}

/* Takes the table over if it can be kept and put into effect. */
static int replace_set(struct ckt_server *server, struct ckt_limit_table *table, char *ret_message,
	size_t message_size)
{
	struct ckt_limit_table before = server->limits_set;
	int result = write_set(server, table);
	if (result) {
		snprintf(ret_message, message_size, "cannot keep the limit in %.300s/limits: %s",
			server->socket_dir, strerror(-result));
	} else {
		server->limits_set = *table;
		result = put_together(server, ret_message, message_size);
	}
	if (!result) {
		ckt_limit_table_free(&before);
		return 0;
	}
	server->limits_set = before;
	write_set(server, &before);
	ckt_limit_table_free(table);
	return result;
}

static int copy_set(const struct ckt_server *server, struct ckt_limit_table *ret_table)
{
	*ret_table = (struct ckt_limit_table){0};
	return add_set(&server->limits_set, ret_table);
}

int ckt_limits_set(struct ckt_server *server, const struct ckt_limit_rule *rule, char *ret_message,
	size_t message_size)
{
	struct ckt_limit_table table;
	int result = copy_set(server, &table);
	if (!result)
		result = ckt_limit_table_put(&table, rule);
	if (!result)
		return replace_set(server, &table, ret_message, message_size);
	ckt_limit_table_free(&table);
	snprintf(ret_message, message_size, "out of memory");
	return result;
}

int ckt_limits_clear(struct ckt_server *server, const struct ckt_limit_rule *key, char *ret_message,
	size_t message_size)
{
	struct ckt_limit_table table;
	if (!ckt_limit_table_find(&server->limits_set, key)) {
		snprintf(ret_message, message_size,
			ckt_limit_table_find(&server->ledger.limits, key)
				? "'%s=%.300s' has its limits from a file: change the file, and send the server SIGHUP"
				: "'%s=%.300s' has no limits: see cricketctl limit show",
			ckt_limit_key_name(key->key), key->name);
		return -ENOENT;
	}
	if (copy_set(server, &table)) {
		ckt_limit_table_free(&table);
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	ckt_limit_table_remove(&table, key);
	return replace_set(server, &table, ret_message, message_size);
}

void ckt_limits_close(struct ckt_server *server)
{
	ckt_quantum_close(server);
	ckt_memory_wait_close(server);
	ckt_limit_table_free(&server->limits_set);
	ckt_limit_table_free(&server->ledger.limits);
}
