/* SPDX-License-Identifier: Apache-2.0 */
/* See in_child.h. */
#include "in_child.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/ckt-trace-XXXXXX";

struct ckt_trace_site *site(unsigned number)
{
	static struct ckt_trace_site sites[] = {{"one", CKT_TRACE_RUNTIME, 0},
		{"two", CKT_TRACE_DRIVER, 0}, {"three", CKT_TRACE_LIBRARY, 0}};
	return &sites[number];
}

const char *own_path(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", directory, name);
	return path;
}

int unit_setup(int argc, char **argv);
void unit_teardown(int status);

int unit_setup(int argc, char **argv)
{
	(void)argc, (void)argv;
	return mkdtemp(directory) ? 0 : 2;
}

void unit_teardown(int status)
{
	char command[300];
	(void)status;
	snprintf(command, sizeof command, "rm -rf %s", directory);
	if (system(command))
		perror(command);
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

int in_child(const char *trace, const char *stats, void (*function)(void))
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		int fd = open(own_path("said"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, 2);
		close(fd);
		set("CRICKET_TRACE", trace);
		set("CRICKET_STATS", stats);
		ckt_trace_start();
		function();
		ckt_trace_end();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *file_text(const char *path)
{
	static char text[8 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return text;
}

const char *child_said(void)
{
	return file_text(own_path("said"));
}

unsigned occurs(const char *text, const char *part)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
		n++;
	return n;
}
