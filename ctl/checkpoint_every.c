/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl checkpoint SESSION DIR --every 30s --keep 3: DIR/0001, DIR/0002, ... until the session
 * or this process ends.
 *
 * Each image builds on the one before, and after KEEP of them a complete image begins a new chain.
 * The images of a chain are removed together, once KEEP newer ones do not need it, so every image
 * in DIR can always be restored.
 */
#include "ctl/checkpoint_every.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/checkpoint.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/pause.h"
#include "ctl/server.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { NUMBER_MAX = 999999, KEEP_MAX = 1000, LIST_MAX = 2 * KEEP_MAX + 64 };

struct series {
	char directory[CKT_CTL_PATH_SIZE];
	unsigned keep;
	unsigned next;        /* number of the next image */
	unsigned since_whole; /* images of the chain so far; 0: the next begins one */
	/* ours, oldest first, and the whole image that each builds on */
	unsigned numbers[LIST_MAX], chain_of[LIST_MAX];
	unsigned count;
	struct ckt_ctl_base base;
};

static void image_path(
	const struct series *series, unsigned number, char ret_path[CKT_CTL_PATH_SIZE + 16])
{
	snprintf(ret_path, CKT_CTL_PATH_SIZE + 16, "%s/%04u", series->directory, number);
}

static int parse(const struct ckt_ctl_args *args, struct series *series, int64_t *ret_period_s)
{
	char *end;
	if (!ckt_ctl_parse_duration(args->every, ret_period_s)) {
		fprintf(stderr,
			"cricketctl: --every: '%s' is not valid: write a number with s, m, h or d, such as 30s\n",
			args->every);
		return CKT_EXIT_USAGE;
	}
	series->keep = 3;
	if (args->keep) {
		unsigned long keep = *args->keep >= '0' && *args->keep <= '9'
			? strtoul(args->keep, &end, 10)
			: 0;
		if (!keep || *end || keep > KEEP_MAX) {
			fprintf(stderr,
				"cricketctl: --keep: '%s' is not valid: write a number of images from 1 to %d\n",
				args->keep, KEEP_MAX);
			return CKT_EXIT_USAGE;
		}
		series->keep = (unsigned)keep;
	}
	return CKT_EXIT_DONE;
}

/* Images of an earlier run stay, because we do not know which chains need them. */
static int open_series(const char *path, struct series *series)
{
	int status = ckt_ctl_path_copy(path, series->directory);
	if (status != CKT_EXIT_DONE)
		return status;
	if (mkdir(series->directory, 0700) && errno != EEXIST)
		return ckt_ctl_refuse(series->directory, strerror(errno));
	DIR *dir = opendir(series->directory);
	if (!dir)
		return ckt_ctl_refuse(series->directory, strerror(errno));
	for (struct dirent *entry; (entry = readdir(dir));) {
		size_t length = strlen(entry->d_name);
		unsigned long number = strspn(entry->d_name, "0123456789") == length && length <= 6
			? strtoul(entry->d_name, NULL, 10)
			: 0;
		if (number >= series->next)
			series->next = (unsigned)number + 1;
	}
	closedir(dir);
	if (!series->next)
		series->next = 1;
	return series->next > NUMBER_MAX
		? ckt_ctl_refuse(
			  series->directory, "has no room for more images: name another directory")
		: CKT_EXIT_DONE;
}

/*
 * Removes a chain with no image among the newest. Newest first, so that an interruption leaves no
 * image without its base.
 */
static void prune(struct series *series)
{
	char path[CKT_CTL_PATH_SIZE + 16];
	if (series->count <= series->keep)
		return;
	unsigned needed = series->chain_of[series->count - series->keep], gone = 0;
	while (gone < series->count && series->chain_of[gone] < needed)
		gone++;
	for (unsigned i = gone; i > 0; i--) {
		image_path(series, series->numbers[i - 1], path);
		ckt_ctl_tree_remove(AT_FDCWD, path, 0);
	}
	series->count -= gone;
	memmove(series->numbers, series->numbers + gone, series->count * sizeof *series->numbers);
	memmove(series->chain_of, series->chain_of + gone,
		series->count * sizeof *series->chain_of);
}

static int save_one(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, struct series *series)
{
	char path[CKT_CTL_PATH_SIZE + 16], id[CKT_CONTROL_IMAGE_ID];
	bool whole = series->since_whole == 0 || series->since_whole >= series->keep;
	image_path(series, series->next, path);
	int status = ckt_ctl_save_next(args, server, whole ? NULL : &series->base, path, id);
	if (status == CKT_EXIT_REFUSED && !whole) {
		/*
		 * Another checkpoint came in between, or this worker cannot write an increment: a
		 * complete image always works.
		 */
		whole = true;
		status = ckt_ctl_save_next(args, server, NULL, path, id);
	}
	if (status != CKT_EXIT_DONE)
		return status;
	series->since_whole = whole ? 1 : series->since_whole + 1;
	series->numbers[series->count] = series->next;
	series->chain_of[series->count] =
		whole ? series->next : series->chain_of[series->count - 1];
	series->count++;
	snprintf(series->base.path, sizeof series->base.path, "%.4000s/%04u", series->directory,
		series->next);
	memcpy(series->base.id, id, sizeof series->base.id);
	series->next++;
	prune(series);
	return CKT_EXIT_DONE;
}

/* Signals are handled while we wait, so an image that has begun is finished. */
static bool wait_until(int64_t due_ms)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	int64_t left = due_ms - ckt_net_now_ms();
	struct timespec timeout = {.tv_sec = left > 0 ? left / 1000 : 0,
		.tv_nsec = left > 0 ? left % 1000 * 1000000 : 0};
	return sigtimedwait(&set, NULL, &timeout) < 0;
}

int ckt_ctl_every(const struct ckt_ctl_args *args)
{
	static struct series series;
	int64_t period_s;
	sigset_t set;
	series = (struct series){0};
	int status = parse(args, &series, &period_s);
	if (status == CKT_EXIT_DONE)
		status = open_series(args->words[1], &series);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (bool first = true; status == CKT_EXIT_DONE; first = false) {
		int64_t begun_ms = ckt_net_now_ms();
		struct ckt_ctl_server server;
		/* Connects each time anew, because the server may have been restarted. */
		status = ckt_ctl_connect_near(args, &server);
		if (status == CKT_EXIT_DONE) {
			status = ckt_ctl_check_session(args->words[0]);
			if (status == CKT_EXIT_DONE)
				status = save_one(args, &server, &series);
			ckt_ctl_disconnect(&server);
		}
		/* The program has ended, and so does the series. */
		if (status == CKT_EXIT_NO_SESSION && !first)
			return CKT_EXIT_DONE;
		if (status == CKT_EXIT_DONE && !wait_until(begun_ms + period_s * 1000))
			return CKT_EXIT_DONE;
	}
	return status;
}
