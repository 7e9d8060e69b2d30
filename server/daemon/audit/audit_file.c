/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log as a file; see audit_file.h. */
#include "server/daemon/audit/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/timed_wait.h"
#include "rpc/net.h"

enum { TELL_MS = 60000, CLOSE_SECONDS = 2, THREAD_STACK = 256 << 10 };

struct line {
	struct line *next;
	char *text; /* NULL: open the path again */
	size_t size;
};

struct ckt_audit_file {
	char *path;
	pthread_t thread;
	/* The thread's alone. */
	int fd;
	bool torn;       /* the file does not end with a line's end */
	int64_t told_ms; /* when the server's log last spoke of lost lines; 0: never */
	/* Of both, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct line *first, **end;
	size_t queued_bytes;
	uint64_t lost;         /* lines, since the last one that was written */
	bool closing, written; /* and all lines are */
};

/* Whether to trust what is open: a log that another user writes to proves nothing. */
static int check_opened(int fd, char *ret_message, size_t message_size)
{
	struct stat st;
	if (fstat(fd, &st)) {
		snprintf(ret_message, message_size, "%s", strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(ret_message, message_size,
			"it is not a regular file: give the path of a file");
		return -EINVAL;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(ret_message, message_size,
			"other users may write to it: chmod go-w, or give another path");
		return -EPERM;
	}
	return 0;
}

/* O_NONBLOCK: the path may name a FIFO, whose reader is missing. */
static int open_path(const char *path, int *ret_fd, char *ret_message, size_t message_size)
{
	char problem[256];
	int fd = open(
		path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	int result = fd < 0 ? -errno : check_opened(fd, problem, sizeof problem);
	if (!result) {
		*ret_fd = fd;
		return 0;
	}
	if (fd < 0)
		snprintf(problem, sizeof problem, "%s: %s", strerror(errno),
			errno == ELOOP ? "give the path of a file, not of a link"
				       : "give a path in a directory that the server can write to");
	else
		close(fd);
	snprintf(ret_message, message_size, "--audit: '%s': %s", path, problem);
	return result;
}

/* ---- The thread */

static void reopen(struct ckt_audit_file *file)
{
	char message[1024];
	int fd;
	if (open_path(file->path, &fd, message, sizeof message)) {
		ckt_warning("%s; the audit log continues in the file that is open", message);
		return;
	}
	close(file->fd);
	file->fd = fd;
	file->torn = false;
}

static void tell_lost(struct ckt_audit_file *file, const char *why)
{
	int64_t now = ckt_net_now_ms();
	if (file->told_ms && now - file->told_ms < TELL_MS)
		return;
	file->told_ms = now;
	ckt_warning("audit log '%s': %s: lines are lost until there is room; free some, or move "
		    "the log",
		file->path, why);
}

/* {"a":1} becomes {"a":1,"lost":7} and a line's end, after one that a torn line lacks. */
static size_t complete(
	const struct ckt_audit_file *file, const struct line *line, uint64_t lost, char *ret_text)
{
	size_t used = 0;
	if (file->torn)
		ret_text[used++] = '\n';
	memcpy(ret_text + used, line->text, line->size);
	used += line->size;
	if (lost)
		used += (size_t)sprintf(
				ret_text + used - 1, ",\"lost\":%llu}", (unsigned long long)lost) -
			1;
	ret_text[used++] = '\n';
	return used;
}

/* False: it is lost. */
static bool write_line(struct ckt_audit_file *file, const struct line *line, uint64_t lost)
{
	char *text = malloc(line->size + 64);
	ssize_t size = text ? (ssize_t)complete(file, line, lost, text) : 0, n;
	if (!text) {
		tell_lost(file, "out of memory");
		return false;
	}
	do
		n = write(file->fd, text, (size_t)size);
	while (n < 0 && errno == EINTR);
	if (n != size)
		tell_lost(file, n < 0 ? strerror(errno) : "no space is left for a whole line");
	if (n > 0)
		file->torn = text[n - 1] != '\n';
	free(text);
	return n == size;
}

static void line_free(struct line *line)
{
	free(line->text);
	free(line);
}

static void *file_thread(void *opaque)
{
	struct ckt_audit_file *file = opaque;
	pthread_mutex_lock(&file->lock);
	for (;;) {
		struct line *line = file->first;
		uint64_t lost = file->lost;
		if (!line && file->closing)
			break;
		if (!line) {
			pthread_cond_wait(&file->work, &file->lock);
			continue;
		}
		pthread_mutex_unlock(&file->lock);
		bool written = line->text && write_line(file, line, lost);
		if (!line->text)
			reopen(file);
		pthread_mutex_lock(&file->lock);
		/* Others may have added to the count meanwhile. */
		if (written)
			file->lost -= lost;
		else if (line->text)
			file->lost++;
		file->queued_bytes -= line->size;
		file->first = line->next;
		if (!file->first)
			file->end = &file->first;
		line_free(line);
	}
	file->written = true;
	pthread_cond_signal(&file->work);
	pthread_mutex_unlock(&file->lock);
	return NULL;
}

/* ---- The others */

static int start_thread(struct ckt_audit_file *file)
{
	return ckt_thread_start(&file->thread, THREAD_STACK, file_thread, file);
}

static void file_free(struct ckt_audit_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}

int ckt_audit_file_open(
	const char *path, struct ckt_audit_file **ret_file, char *ret_message, size_t message_size)
{
	struct ckt_audit_file *file = calloc(1, sizeof *file);
	int result = -ENOMEM;
	if (file) {
		file->fd = -1;
		file->path = strdup(path);
		file->end = &file->first;
		pthread_mutex_init(&file->lock, NULL);
		pthread_cond_init(&file->work, NULL);
	}
	if (file && file->path) {
		result = open_path(path, &file->fd, ret_message, message_size);
		if (result) {
			file_free(file);
			return result;
		}
		result = start_thread(file);
	}
	if (result) {
		snprintf(ret_message, message_size, "--audit: '%s': %s", path, strerror(-result));
		if (file)
			file_free(file);
		return result;
	}
	*ret_file = file;
	return 0;
}

void ckt_audit_file_close(struct ckt_audit_file *file)
{
	if (!file)
		return;
	pthread_mutex_lock(&file->lock);
	file->closing = true;
	pthread_cond_signal(&file->work);
	int64_t until = ckt_now_ns() + CLOSE_SECONDS * INT64_C(1000000000);
	while (!file->written && ckt_cond_wait_until(&file->work, &file->lock, until) == 0)
		;
	bool written = file->written;
	pthread_mutex_unlock(&file->lock);
	/* A disk that does not answer must not keep the server alive; the process ends now. */
	if (!written) {
		ckt_warning("audit log '%s': its disk does not answer: lines are lost", file->path);
		pthread_detach(file->thread);
		return;
	}
	pthread_join(file->thread, NULL);
	pthread_mutex_destroy(&file->lock);
	pthread_cond_destroy(&file->work);
	file_free(file);
}

/* Takes the line over; without one, a line is lost. */
static void queue(struct ckt_audit_file *file, struct line *line)
{
	pthread_mutex_lock(&file->lock);
	if (line && file->queued_bytes + line->size <= CKT_AUDIT_QUEUE_BYTES) {
		*file->end = line;
		file->end = &line->next;
		file->queued_bytes += line->size;
		line = NULL;
		pthread_cond_signal(&file->work);
	} else {
		file->lost++;
	}
	pthread_mutex_unlock(&file->lock);
	if (line)
		line_free(line);
}

void ckt_audit_file_put(struct ckt_audit_file *file, char *text)
{
	struct line *line = text ? malloc(sizeof *line) : NULL;
	if (line)
		*line = (struct line){.text = text, .size = strlen(text)};
	else
		free(text);
	queue(file, line);
}

void ckt_audit_file_reopen(struct ckt_audit_file *file)
{
	struct line *line = calloc(1, sizeof *line);
	if (line)
		queue(file, line);
}
