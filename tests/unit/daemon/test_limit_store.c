/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/policy/limit_store.c: the files of limits, and what is set beside them. */
#include "server/daemon/policy/limit_store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

static struct ckt_limit_table table;
static char message[1024];

static int read_all(const char *path)
{
	ckt_limit_table_free(&table);
	*message = 0;
	return ckt_limits_read_file(path, &table, message, sizeof message);
}

static void test_file(void)
{
	char path[128];
	snprintf(path, sizeof path, "%s", path_in("limits.conf"));
	write_file(path, "# all\n\njob=a memory=8G\n  job=b sessions=2 # two\njob=a share=5", 0600);
	IS(read_all(path), 0);
	IS(table.count, 2);
	IS(table.rules[0].sets, CKT_LIMIT_SETS_MEMORY | CKT_LIMIT_SETS_SHARE);
	write_file(path, "job=a memory=8G\n\njob=b memory=much\n", 0600);
	IS(read_all(path), -EINVAL);
	HAS(message, "limits.conf:3: 'memory=much': write a size");
	write_file(path, "", 0646);
	chmod(path, 0646);
	IS(read_all(path), -EPERM);
	HAS(message, "chmod o-w");
	unlink(path);
	IS(read_all(path), -ENOENT);
	HAS(message, "limits.conf: No such file");
}

static void test_directory(void)
{
	char directory_path[128], path[160];
	snprintf(directory_path, sizeof directory_path, "%s", path_in("limits.d"));
	ckt_limit_table_free(&table);
	IS(ckt_limits_read_directory(directory_path, &table, message, sizeof message), 0);
	MUST(mkdir(directory_path, 0755), 0);
	/* In the order of their names, and only those. */
	static const char *const names[] = {"20-b.conf", "10-a.conf", "30-c.confx", ".40.conf"};
	static const char *const rules[] = {
		"job=a memory=2G\n", "job=a memory=1G share=7\n", "nonsense\n", "nonsense\n"};
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof path, "%s/%s", directory_path, names[i]);
		write_file(path, rules[i], 0600);
	}
	IS(ckt_limits_read_directory(directory_path, &table, message, sizeof message), 0);
	IS(table.count, 1);
	IS(table.rules[0].memory_bytes, 2ll << 30);
	IS(table.rules[0].share, 7);
	snprintf(path, sizeof path, "%s/15.conf", directory_path);
	write_file(path, "job=a\n", 0600);
	IS(ckt_limits_read_directory(directory_path, &table, message, sizeof message), -EINVAL);
	HAS(message, "15.conf:1: 'job=a'");
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof path, "%s/%s", directory_path, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/15.conf", directory_path);
	unlink(path);
	rmdir(directory_path);
	ckt_limit_table_free(&table);
}

static int change(const char *line, bool clear)
{
	struct ckt_limit_rule rule;
	*message = 0;
	MUST(clear ? ckt_limit_key_parse(line, &rule, message, sizeof message)
		   : ckt_limit_rule_parse(line, &rule, message, sizeof message),
		0);
	return clear ? ckt_limits_clear(&server, &rule, message, sizeof message)
		     : ckt_limits_set(&server, &rule, message, sizeof message);
}

static void test_set(void)
{
	char path[128], state[CKT_PATH_MAX + 16];
	snprintf(path, sizeof path, "%s", path_in("limits.conf"));
	snprintf(state, sizeof state, "%s/limits", server.socket_dir);
	write_file(path, "job=a memory=8G sessions=3\n", 0600);
	server.options.limits = path;
	MUST(ckt_limits_open(&server, message, sizeof message), 0);
	IS(change("job=a memory=4G", false), 0);
	IS(change("job=b share=20", false), 0);
	IS(server.ledger.limits.count, 2);
	IS(server.ledger.limits.rules[0].memory_bytes, 4ll << 30);
	IS(server.ledger.limits.rules[0].sessions, 3);
	HAS(read_file(state), "job=a memory=4G\njob=b share=20\n");
	/* The next server finds it; a file that changes stays below it. */
	ckt_limits_close(&server);
	write_file(path, "job=a memory=9G sessions=5\n", 0600);
	MUST(ckt_limits_open(&server, message, sizeof message), 0);
	IS(server.ledger.limits.rules[0].memory_bytes, 4ll << 30);
	IS(server.ledger.limits.rules[0].sessions, 5);
	write_file(path, "job=c\n", 0600);
	ckt_limits_reload(&server);
	IS(server.ledger.limits.rules[0].sessions, 5);
	/* A broken file keeps a change out, too, and leaves what is kept as it was. */
	IS(change("job=b share=30", false), -EINVAL);
	HAS(message, "limits.conf:1: 'job=c'");
	HAS(read_file(state), "job=b share=20\n");
	write_file(path, "job=a memory=9G\n", 0600);
	ckt_limits_reload(&server);
	IS(server.ledger.limits.rules[0].sets, CKT_LIMIT_SETS_MEMORY);
	IS(change("job=b", true), 0);
	IS(change("job=b", true), -ENOENT);
	HAS(message, "cricketctl limit show");
	IS(change("job=a", true), 0);
	IS(server.ledger.limits.rules[0].memory_bytes, 9ll << 30);
	IS(change("job=a", true), -ENOENT);
	HAS(message, "from a file");
	ckt_limits_close(&server);
	IS(server.ledger.limits.count, 0);
	server.options.limits = NULL;
	server.ledger.context_bytes = 0;
	unlink(path);
	unlink(state);
}

UNIT_SUITE(limit_store, {"file", test_file}, {"directory", test_directory}, {"set", test_set})
