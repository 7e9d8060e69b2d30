/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl top */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"
#include "ctl/top/top_sample.h"
#include "ctl/top/top_screen.h"
#include "ctl/top/top_table.h"

enum { DELAY_MS = 1000, DELAY_MS_MIN = 100, DELAY_MS_MAX = 3600000 };

static int parse_delay(const char *text, int *ret_ms)
{
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : DELAY_MS / 1000.0;
	if ((end && *end) || !(seconds * 1000 >= DELAY_MS_MIN && seconds * 1000 <= DELAY_MS_MAX)) {
		fprintf(stderr,
			"cricketctl: --delay: '%s' is no number of seconds from 0.1 to 3600; give one, such as 2\n",
			text);
		return CKT_EXIT_USAGE;
	}
	*ret_ms = (int)(seconds * 1000);
	return CKT_EXIT_DONE;
}

/* A terminal's width; what goes elsewhere has all columns. */
static int width_of_output(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40 ||
		size.ws_col > CKT_TOP_WIDTH_MAX)
		return CKT_TOP_WIDTH_MAX;
	return size.ws_col;
}

static int print_text(struct ckt_top_sample *sample)
{
	int widths[CKT_TOP_COLUMNS];
	char line[CKT_TOP_WIDTH_MAX + 1];
	ckt_ctl_top_layout(width_of_output(), widths);
	ckt_ctl_top_sort(sample, 0, false);
	ckt_ctl_top_line(widths, NULL, line, sizeof line);
	puts(line);
	for (size_t i = 0; i < sample->count; i++) {
		ckt_ctl_top_line(widths, &sample->list[i], line, sizeof line);
		puts(line);
	}
	return ckt_ctl_flush();
}

static int failed(int status, const struct ckt_top_sample *sample)
{
	if (status != CKT_EXIT_DONE)
		fprintf(stderr, "cricketctl: %s\n", sample->problem);
	return status;
}

/* Two readings, so that there are rates. */
static int once(const struct ckt_ctl_args *args, struct ckt_top_source *source, int delay_ms)
{
	struct ckt_top_sample before, now = {0};
	int status = failed(ckt_ctl_top_read(source, NULL, &before), &before);
	if (status == CKT_EXIT_DONE) {
		struct timespec pause = {delay_ms / 1000, delay_ms % 1000 * 1000000L};
		while (before.count && nanosleep(&pause, &pause) && errno == EINTR)
			;
		status = failed(ckt_ctl_top_read(source, &before, &now), &now);
	}
	if (status == CKT_EXIT_DONE)
		status = args->json ? ckt_ctl_json_print(ckt_ctl_top_json(&now)) : print_text(&now);
	ckt_ctl_top_free(&before);
	ckt_ctl_top_free(&now);
	return status;
}

int ckt_ctl_top(const struct ckt_ctl_args *args)
{
	struct ckt_top_source source;
	int delay_ms, status = parse_delay(args->delay, &delay_ms);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_top_open(args, &source);
	if (status != CKT_EXIT_DONE)
		return status;
	status = args->once || args->json ? once(args, &source, delay_ms)
					  : ckt_ctl_top_screen(&source, delay_ms);
	ckt_ctl_top_close(&source);
	return status;
}
