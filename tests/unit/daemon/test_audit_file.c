/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/audit/audit_file.c: what may be an audit log, rotation, and a disk that is full.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit_file.h"

static struct ckt_audit_file *open_or_fail(const char *path)
{
	char message[1024] = "";
	struct ckt_audit_file *file = NULL;
	if (!IS(ckt_audit_file_open(path, &file, message, sizeof message), 0))
		fprintf(stderr, "%s\n", message);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	return file;
}

static void put(struct ckt_audit_file *file, const char *text)
{
	ckt_audit_file_put(file, strdup(text));
}

static void test_lines(void)
{
	const char *path = path_in("audit-lines");
	struct stat st;
	struct ckt_audit_file *file = open_or_fail(path);
	put(file, "{\"a\":1}");
	put(file, "{\"a\":2}");
	ckt_audit_file_close(file);
	TEXT(read_file(path), "{\"a\":1}\n{\"a\":2}\n");
	MUST(stat(path, &st), 0);
	IS(st.st_mode & 07777, 0600);
	/* A later server appends. */
	file = open_or_fail(path);
	/* One that could not be made counts, in the next one. */
	ckt_audit_file_put(file, NULL);
	ckt_audit_file_put(file, NULL);
	put(file, "{\"a\":3}");
	put(file, "{\"a\":4}");
	ckt_audit_file_close(file);
	TEXT(read_file(path), "{\"a\":1}\n{\"a\":2}\n{\"a\":3,\"lost\":2}\n{\"a\":4}\n");
	ckt_audit_file_close(NULL);
}

static void test_refused(void)
{
	char path[256], message[1024];
	struct ckt_audit_file *file = NULL;
	static const char *const says[] = {"No such file or directory: give a path in a directory",
		"Is a directory", "give the path of a file, not of a link", "chmod go-w",
		"No such device", "it is not a regular file"};
	snprintf(path, sizeof path, "%s/audit-none/log", directory);
	char *paths[] = {path, directory, path_in("audit-link"), path_in("audit-open"),
		path_in("audit-fifo"), (char *)"/dev/null"};
	MUST(symlink("audit-lines", paths[2]), 0);
	write_file(paths[3], "", 0620);
	MUST(mkfifo(paths[4], 0600), 0);
	for (size_t i = 0; i < COUNT(paths); i++) {
		YES(ckt_audit_file_open(paths[i], &file, message, sizeof message) < 0);
		HAS(message, says[i]);
		HAS(message, "--audit: '");
		HAS(message, paths[i]);
	}
	CU_ASSERT_PTR_NULL(file);
	/* Others may read it, if that is what its owner wants. */
	chmod(paths[3], 0644);
	ckt_audit_file_close(open_or_fail(paths[3]));
}

static void test_reopened(void)
{
	char path[256], old[256];
	snprintf(path, sizeof path, "%s/audit-rotated", directory);
	snprintf(old, sizeof old, "%s/audit-rotated.1", directory);
	struct ckt_audit_file *file = open_or_fail(path);
	put(file, "{\"a\":1}");
	MUST(rename(path, old), 0);
	put(file, "{\"a\":2}");
	/* The lines before it go to the old file, the ones after it to the new one. */
	ckt_audit_file_reopen(file);
	put(file, "{\"a\":3}");
	ckt_audit_file_close(file);
	TEXT(read_file(old), "{\"a\":1}\n{\"a\":2}\n");
	TEXT(read_file(path), "{\"a\":3}\n");
	/* A name that cannot be opened: the old file goes on. */
	file = open_or_fail(path);
	MUST(rename(path, old), 0);
	MUST(mkdir(path, 0700), 0);
	ckt_audit_file_reopen(file);
	put(file, "{\"a\":4}");
	ckt_audit_file_close(file);
	TEXT(read_file(old), "{\"a\":3}\n{\"a\":4}\n");
	rmdir(path);
}

/* Whether a write(2) of the thread that writes has been refused: it blocks the signal of that, which is pending then. */
static bool was_refused(void)
{
	bool pending = false;
	char path[64], line[128];
	unsigned long long signals;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *task; tasks && (task = readdir(tasks));) {
		snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task->d_name);
		FILE *file = fopen(path, "re");
		while (file && fgets(line, sizeof line, file))
			if (sscanf(line, "SigPnd: %llx", &signals) == 1)
				pending = pending || signals >> (SIGXFSZ - 1) & 1;
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return pending;
}

/* RLIMIT_FSIZE stands for the disk: the file takes 100 bytes, and later more. */
static void test_full(void)
{
	const char *path = path_in("audit-full");
	struct rlimit before, small;
	char line[61];
	snprintf(line, sizeof line, "{\"a\":\"%052d\"}", 7);
	IS(strlen(line), 60);
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	MUST(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){100, before.rlim_max};
	MUST(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct ckt_audit_file *file = open_or_fail(path);
	put(file, line);
	put(file, line);
	put(file, line);
	ckt_audit_file_close(file);
	struct stat st;
	IS(stat(path, &st), 0);
	IS(st.st_size, 100);
	MUST(truncate(path, 0), 0);
	small.rlim_cur = 100;
	file = open_or_fail(path);
	put(file, line);
	put(file, line);
	put(file, line);
	/* The second is cut off, and the third is refused: then the thread has failed with both. */
	for (int i = 0; i < 6000 && !was_refused(); i++)
		usleep(10000);
	YES(was_refused());
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, handler);
	put(file, "{\"a\":1}");
	put(file, "{\"a\":2}");
	ckt_audit_file_close(file);
	const char *text = read_file(path);
	IS(strncmp(text, line, 60), 0);
	/* What is left of the torn line ends before the next one, which carries the count. */
	HAS(text, "000000\n{\"a\":1,\"lost\":2}\n{\"a\":2}\n");
}

static void *put_many(void *file)
{
	for (int i = 0; i < 1000; i++)
		put(file, "{\"b\":1}");
	return NULL;
}

/* Lines of several threads do not mix, and a queue that is full loses lines and says how many. */
static void test_queue(void)
{
	const char *path = path_in("audit-queue");
	struct ckt_audit_file *file = open_or_fail(path);
	pthread_t threads[3];
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, put_many, file);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	ckt_audit_file_close(file);
	struct stat st;
	MUST(stat(path, &st), 0);
	IS(st.st_size, 3000 * 8);
	/* One line that no queue holds. */
	file = open_or_fail(path);
	char *huge = malloc(CKT_AUDIT_QUEUE_BYTES + 2);
	memset(huge, 'x', CKT_AUDIT_QUEUE_BYTES + 1);
	huge[CKT_AUDIT_QUEUE_BYTES + 1] = 0;
	ckt_audit_file_put(file, huge);
	put(file, "{\"c\":1}");
	ckt_audit_file_close(file);
	MUST(stat(path, &st), 0);
	IS(st.st_size, 3000 * 8 + 17);
}

UNIT_SUITE(audit_file, {"lines", test_lines}, {"refused", test_refused},
	{"reopened", test_reopened}, {"full", test_full}, {"queue", test_queue})
