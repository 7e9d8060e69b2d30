/* SPDX-License-Identifier: Apache-2.0 */
/* Watches processes from outside; see process_watch.h. */
#include "ctl/client/process_watch.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/client/process.h"
#include "rpc/net.h"

/* A line of a small file of /proc/PID that begins with key. */
static bool read_line(pid_t pid, const char *name, const char *key, char *ret_line, size_t size)
{
	char path[64];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(ret_line, (int)size, file))
		found = strncmp(ret_line, key, strlen(key)) == 0;
	if (file)
		fclose(file);
	return found;
}

static uint64_t read_number(pid_t pid, const char *name, const char *key)
{
	char line[256];
	uint64_t value = 0;
	if (read_line(pid, name, key, line, sizeof line))
		sscanf(line + strlen(key), "%" SCNu64, &value);
	return value;
}

static uint64_t read_ticks(pid_t pid)
{
	char line[512];
	uint64_t user = 0, system = 0;
	if (read_line(pid, "stat", "", line, sizeof line) && strrchr(line, ')'))
		sscanf(strrchr(line, ')') + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
			&system);
	return user + system;
}

/* All descendants of the process, without itself. */
static void each_below(pid_t ancestor, void (*visit)(pid_t pid, void *data), void *data)
{
	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		if (pid && pid != ancestor && ckt_ctl_process_is_below(pid, ancestor))
			visit(pid, data);
	}
	if (dir)
		closedir(dir);
}

static void add_work(pid_t pid, void *data)
{
	struct ckt_watch *sum = data;
	uint64_t got = read_number(pid, "io", "rchar:"), put = read_number(pid, "io", "wchar:");
	sum->read_bytes += got;
	sum->written_bytes += put;
	/* A process that has started or ended is a change too. */
	sum->work += read_ticks(pid) + got + put + (uint64_t)pid * 1000003;
}

void ckt_ctl_watch_begin(struct ckt_watch *watch)
{
	*watch = (struct ckt_watch){.changed_ms = ckt_net_now_ms()};
}

int64_t ckt_ctl_watch_look(struct ckt_watch *watch)
{
	struct ckt_watch now = {.changed_ms = ckt_net_now_ms()};
	each_below(getpid(), add_work, &now);
	if (now.work == watch->work)
		now.changed_ms = watch->changed_ms;
	*watch = now;
	return ckt_net_now_ms() - watch->changed_ms;
}

struct list {
	pid_t pids[CKT_PROCESS_TREE_MAX];
	unsigned count;
};

/* Ended processes are ours to reap, or their own parents'. */
static void stop_one(pid_t pid, void *data)
{
	struct list *list = data;
	if (ckt_ctl_process_is_over(pid))
		waitpid(pid, NULL, WNOHANG);
	else if (list->count < CKT_PROCESS_TREE_MAX && kill(pid, SIGSTOP) == 0)
		list->pids[list->count++] = pid;
}

/*
 * A killed process's children get another parent and are no longer among our descendants: first
 * find all, then kill all.
 */
void ckt_ctl_watch_kill(void)
{
	static struct list list;
	for (unsigned round = 0; round < 500; round++) {
		list.count = 0;
		each_below(getpid(), stop_one, &list);
		if (!list.count)
			return;
		for (unsigned i = 0; i < list.count; i++)
			kill(list.pids[i], SIGKILL);
		usleep(10000);
	}
}

static void add_resident(pid_t pid, void *data)
{
	*(uint64_t *)data += read_number(pid, "status", "VmRSS:") << 10;
}

uint64_t ckt_ctl_watch_resident(pid_t pid)
{
	uint64_t sum = 0;
	add_resident(pid, &sum);
	each_below(pid, add_resident, &sum);
	return sum;
}
