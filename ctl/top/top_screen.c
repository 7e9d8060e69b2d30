/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl top on a terminal; see top_screen.h. */
#include "ctl/top/top_screen.h"

#include <curses.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timed_wait.h"
#include "ctl/print.h"
#include "ctl/top/top_table.h"
#include "rpc/worker.h"

enum {
	LOOK_MS = 100, /* how long a key is waited for before the screen looks for a new sample */
	HEAD_LINES = 3,
	FOOT_LINES = 1,
	WIDTH_MIN = 40,
	HEIGHT_MIN = 8,
	ESCAPE = 27,
	CONTROL_L = 12
};

/* What the reading thread and the screen share. */
struct feed {
	struct ckt_top_source *source;
	int delay_ms;
	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t cond;
	bool stop, paused, fresh;
	struct ckt_top_sample latest; /* moves to the screen when it is fresh */
};

enum page { PAGE_TABLE, PAGE_DETAILS, PAGE_HELP };

struct screen {
	struct feed *feed;
	struct ckt_top_sample sample;
	unsigned column;
	bool reverse, paused;
	enum page page;
	char chosen[CKT_SESSION_ID_SIZE + 1]; /* the session with the bar */
	size_t first;                         /* the row at the top */
};

/* ---- Reading */

static void copy_sample(const struct ckt_top_sample *from, struct ckt_top_sample *ret_copy)
{
	*ret_copy = *from;
	ret_copy->list = from->count ? malloc(from->count * sizeof *from->list) : NULL;
	if (ret_copy->list)
		memcpy(ret_copy->list, from->list, from->count * sizeof *from->list);
	else
		ret_copy->count = 0;
}

/* Precondition: locked. */
static void sleep_until_next(struct feed *feed)
{
	int64_t until = ckt_now_ns() + feed->delay_ms * INT64_C(1000000);
	while (!feed->stop && ckt_cond_wait_until(&feed->cond, &feed->lock, until) == 0)
		;
	while (!feed->stop && feed->paused)
		pthread_cond_wait(&feed->cond, &feed->lock);
}

static void *feed_thread(void *opaque)
{
	struct feed *feed = opaque;
	struct ckt_top_sample before = {0};
	pthread_mutex_lock(&feed->lock);
	while (!feed->stop) {
		struct ckt_top_sample now, copy;
		pthread_mutex_unlock(&feed->lock);
		ckt_ctl_top_read(feed->source, &before, &now);
		copy_sample(&now, &copy);
		ckt_ctl_top_free(&before);
		before = now;
		pthread_mutex_lock(&feed->lock);
		ckt_ctl_top_free(&feed->latest);
		feed->latest = copy;
		feed->fresh = true;
		sleep_until_next(feed);
	}
	pthread_mutex_unlock(&feed->lock);
	ckt_ctl_top_free(&before);
	return NULL;
}

/* Whether there is a new sample, which the screen then has. */
static bool take_sample(struct screen *screen)
{
	struct feed *feed = screen->feed;
	pthread_mutex_lock(&feed->lock);
	bool fresh = feed->fresh;
	if (fresh) {
		ckt_ctl_top_free(&screen->sample);
		screen->sample = feed->latest;
		feed->latest = (struct ckt_top_sample){0};
		feed->fresh = false;
	}
	pthread_mutex_unlock(&feed->lock);
	if (fresh)
		ckt_ctl_top_sort(&screen->sample, screen->column, screen->reverse);
	return fresh;
}

/* ---- Drawing */

static void put(int line, int attributes, const char *text)
{
	attron(attributes);
	mvaddnstr(line, 0, text, COLS);
	attroff(attributes);
}

/* The row of the chosen session; where it is gone, the first one is chosen. */
static size_t chosen_row(struct screen *screen)
{
	for (size_t i = 0; i < screen->sample.count; i++)
		if (strcmp(screen->sample.list[i].session, screen->chosen) == 0)
			return i;
	snprintf(screen->chosen, sizeof screen->chosen, "%s",
		screen->sample.count ? screen->sample.list[0].session : "");
	return 0;
}

static void draw_head(const struct screen *screen)
{
	const struct ckt_top_sample *sample = &screen->sample;
	char line[CKT_TOP_PROBLEM_MAX + 64], memory[32];
	unsigned running = 0;
	double bytes = 0;
	for (size_t i = 0; i < sample->count; i++) {
		running += sample->list[i].answered && sample->list[i].state == CKT_STATE_RUNNING;
		bytes += (double)sample->list[i].memory_bytes;
	}
	snprintf(line, sizeof line, "cricketctl top  %s%s", screen->feed->source->address,
		screen->paused ? "  (paused)" : "");
	put(0, A_BOLD, line);
	ckt_ctl_top_size(bytes, memory, sizeof memory);
	if (*sample->problem)
		snprintf(line, sizeof line, "%s", sample->problem);
	else
		snprintf(line, sizeof line, "%zu sessions, %u running, %s of device memory",
			sample->count, running, memory);
	put(1, 0, line);
}

static void draw_table(struct screen *screen)
{
	int widths[CKT_TOP_COLUMNS], at = 0;
	size_t rows = (size_t)(LINES - HEAD_LINES - FOOT_LINES), chosen = chosen_row(screen);
	char line[CKT_TOP_WIDTH_MAX + 1];
	ckt_ctl_top_layout(COLS < CKT_TOP_WIDTH_MAX ? COLS : CKT_TOP_WIDTH_MAX, widths);
	ckt_ctl_top_line(widths, NULL, line, sizeof line);
	attron(A_REVERSE);
	mvhline(HEAD_LINES - 1, 0, ' ', COLS);
	put(HEAD_LINES - 1, A_REVERSE, line);
	/* The column that it is sorted by is underlined. */
	for (unsigned i = 0; i < screen->column; i++)
		at += widths[i] ? widths[i] + 1 : 0;
	attroff(A_REVERSE);
	if (widths[screen->column])
		mvchgat(HEAD_LINES - 1, at, widths[screen->column],
			A_REVERSE | A_UNDERLINE | A_BOLD, 0, NULL);
	if (chosen < screen->first)
		screen->first = chosen;
	if (chosen >= screen->first + rows)
		screen->first = chosen - rows + 1;
	for (size_t i = screen->first; i < screen->sample.count && i < screen->first + rows; i++) {
		ckt_ctl_top_line(widths, &screen->sample.list[i], line, sizeof line);
		put(HEAD_LINES + (int)(i - screen->first), i == chosen ? A_STANDOUT : 0, line);
	}
}

static void detail(int *line, const char *name, const char *value)
{
	char text[CKT_MESSAGE_MAX + 64];
	if (!value || !*value || *line >= LINES - FOOT_LINES)
		return;
	snprintf(text, sizeof text, "%-12s %s", name, value);
	put((*line)++, 0, text);
}

static void draw_details(struct screen *screen)
{
	char text[CKT_MESSAGE_MAX + 1];
	int line = HEAD_LINES;
	size_t row = chosen_row(screen);
	if (row >= screen->sample.count) {
		put(line, 0, "there is no session");
		return;
	}
	const struct ckt_top_session *session = &screen->sample.list[row];
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++) {
		ckt_top_columns[i].text(session, text, sizeof text);
		detail(&line, ckt_top_columns[i].name, text);
	}
	detail(&line, "CLIENT", session->client);
	snprintf(text, sizeof text, "%u", session->client_pid);
	detail(&line, "PID", text);
	snprintf(text, sizeof text, "%u", session->worker_pid);
	detail(&line, "WORKER", text);
	detail(&line, "STARTED", ckt_ctl_time_text(session->started, text, sizeof text));
	detail(&line, "PROJECT", session->project);
	detail(&line, "JOB", session->job);
	detail(&line, "NOTE", session->note);
}

static void draw_help(void)
{
	static const char *const keys[] = {"up, down, page up, page down   choose a session",
		"enter   details of that session, and back", "space   pause, and go on",
		"R   the other way round", "h   this help, and back", "q   quit"};
	char text[CKT_TOP_WIDTH_MAX];
	int line = HEAD_LINES - 1;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		put(line++, 0, keys[i]);
	put(line++, A_BOLD, "sort by:");
	for (unsigned i = 0; i < CKT_TOP_COLUMNS && line < LINES - FOOT_LINES; i++) {
		snprintf(text, sizeof text, "%c   %-8s  %s", ckt_top_columns[i].key,
			ckt_top_columns[i].name, ckt_top_columns[i].meaning);
		put(line++, 0, text);
	}
}

static void draw(struct screen *screen)
{
	erase();
	if (COLS < WIDTH_MIN || LINES < HEIGHT_MIN) {
		put(0, 0, "the terminal is too small");
		refresh();
		return;
	}
	draw_head(screen);
	if (screen->page == PAGE_TABLE)
		draw_table(screen);
	else if (screen->page == PAGE_DETAILS)
		draw_details(screen);
	else
		draw_help();
	put(LINES - 1, A_DIM,
		"q quit  space pause  enter details  letters sort  R reverse  h help");
	refresh();
}

/* ---- Keys */

static void move_bar(struct screen *screen, long by)
{
	long row = (long)chosen_row(screen) + by, last = (long)screen->sample.count - 1;
	row = row > last ? last : row;
	if (last >= 0)
		snprintf(screen->chosen, sizeof screen->chosen, "%s",
			screen->sample.list[row < 0 ? 0 : row].session);
}

static void pause_feed(struct screen *screen)
{
	struct feed *feed = screen->feed;
	pthread_mutex_lock(&feed->lock);
	screen->paused = feed->paused = !feed->paused;
	pthread_cond_signal(&feed->cond);
	pthread_mutex_unlock(&feed->lock);
}

static void sort_by(struct screen *screen, int key)
{
	int column = ckt_ctl_top_column(key);
	if (column < 0)
		return;
	screen->reverse = screen->column == (unsigned)column && !screen->reverse;
	screen->column = (unsigned)column;
}

/* Whether to go on. */
static bool obey(struct screen *screen, int key)
{
	long page = LINES - HEAD_LINES - FOOT_LINES;
	switch (key) {
	case 'q':
		return false;
	case ESCAPE:
		screen->page = PAGE_TABLE;
		break;
	case '\r':
	case '\n':
	case KEY_ENTER:
		screen->page = screen->page == PAGE_DETAILS ? PAGE_TABLE : PAGE_DETAILS;
		break;
	case 'h':
	case '?':
		screen->page = screen->page == PAGE_HELP ? PAGE_TABLE : PAGE_HELP;
		break;
	case ' ':
		pause_feed(screen);
		break;
	case 'R':
		screen->reverse = !screen->reverse;
		break;
	case KEY_UP:
	case KEY_DOWN:
		move_bar(screen, key == KEY_UP ? -1 : 1);
		break;
	case KEY_PPAGE:
	case KEY_NPAGE:
		move_bar(screen, key == KEY_PPAGE ? -page : page);
		break;
	case CONTROL_L:
		clear();
		break;
	default:
		sort_by(screen, key);
	}
	ckt_ctl_top_sort(&screen->sample, screen->column, screen->reverse);
	return true;
}

static void show(struct screen *screen)
{
	bool on = true;
	draw(screen);
	while (on) {
		int key = getch();
		if (key == ERR) {
			if (!isatty(STDIN_FILENO))
				break; /* the terminal is gone */
			if (take_sample(screen))
				draw(screen);
			continue;
		}
		on = obey(screen, key);
		if (on)
			draw(screen);
	}
}

static int refuse(const char *cause)
{
	fprintf(stderr, "cricketctl: top: %s; print one sample with --once\n", cause);
	return CKT_EXIT_USAGE;
}

int ckt_ctl_top_screen(struct ckt_top_source *source, int delay_ms)
{
	struct feed feed = {
		.source = source, .delay_ms = delay_ms, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct screen screen = {.feed = &feed, .column = (unsigned)ckt_ctl_top_column('s')};
	pthread_t thread;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refuse("stdin or stdout is no terminal");
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return refuse("unknown terminal: TERM names none that ncurses knows");
	pthread_cond_init(&feed.cond, NULL);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	set_escdelay(LOOK_MS);
	timeout(LOOK_MS);
	bool reading = pthread_create(&thread, NULL, feed_thread, &feed) == 0;
	if (reading)
		show(&screen);
	pthread_mutex_lock(&feed.lock);
	feed.stop = true;
	pthread_cond_signal(&feed.cond);
	pthread_mutex_unlock(&feed.lock);
	endwin();
	delscreen(terminal);
	if (reading)
		pthread_join(thread, NULL);
	else
		fprintf(stderr, "cricketctl: top: cannot start a thread\n");
	ckt_ctl_top_free(&feed.latest);
	ckt_ctl_top_free(&screen.sample);
	pthread_cond_destroy(&feed.cond);
	return reading ? CKT_EXIT_DONE : CKT_EXIT_REFUSED;
}
