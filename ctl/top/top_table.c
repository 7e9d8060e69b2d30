/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of cricketctl top; see top_table.h. */
#include "ctl/top/top_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"

static void scaled(double value, double step, const char *units, char *ret_text, size_t size)
{
	unsigned unit = 0;
	for (; value >= step - 0.5 && unit + 1 < strlen(units); unit++)
		value /= step;
	if (!unit)
		snprintf(ret_text, size, "%.0f", value);
	else
		snprintf(ret_text, size, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void ckt_ctl_top_size(double bytes, char *ret_text, size_t size)
{
	scaled(bytes, 1024, " KMGTPE", ret_text, size);
}

static void number(bool known, double value, char *ret_text, size_t size)
{
	if (known)
		scaled(value, 1000, " kMGTPE", ret_text, size);
	else
		snprintf(ret_text, size, "-");
}

static void amount(bool known, double bytes, char *ret_text, size_t size)
{
	if (known)
		ckt_ctl_top_size(bytes, ret_text, size);
	else
		snprintf(ret_text, size, "-");
}

/* ---- What a column says of a session, and how two sessions compare */

#define TEXT_COLUMN(name, value)                                                          \
	static void name##_text(const struct ckt_top_session *s, char *text, size_t size) \
	{                                                                                 \
		snprintf(text, size, "%s", value(s));                                     \
	}                                                                                 \
	static int name##_compare(                                                        \
		const struct ckt_top_session *a, const struct ckt_top_session *b)         \
	{                                                                                 \
		return strcmp(value(a), value(b));                                        \
	}
/* What is not known is less than what is. */
#define NUMBER_COLUMN(name, known, value, format)                                                  \
	static void name##_text(const struct ckt_top_session *s, char *text, size_t size)          \
	{                                                                                          \
		format(known(s), (double)value(s), text, size);                                    \
	}                                                                                          \
	static int name##_compare(                                                                 \
		const struct ckt_top_session *a, const struct ckt_top_session *b)                  \
	{                                                                                          \
		double x = known(a) ? (double)value(a) : -1, y = known(b) ? (double)value(b) : -1; \
		return (x > y) - (x < y);                                                          \
	}

#define SESSION(s) ((s)->session)
#define PROGRAM(s) ((s)->program)
#define OWNER(s) ((s)->owner)
#define STATE(s) (ckt_ctl_state_name((s)->state))
TEXT_COLUMN(session, SESSION)
TEXT_COLUMN(program, PROGRAM)
TEXT_COLUMN(owner, OWNER)

/* With a mark if that was its state once, as ps shows it, but within the column. */
static void state_text(const struct ckt_top_session *s, char *text, size_t size)
{
	snprintf(text, size, s->answered ? "%s" : "%.7s?", STATE(s));
}

static int state_compare(const struct ckt_top_session *a, const struct ckt_top_session *b)
{
	return strcmp(STATE(a), STATE(b));
}

static void percent(bool known, double permille, char *ret_text, size_t size)
{
	if (known)
		snprintf(ret_text, size, "%.0f%%", permille / 10);
	else
		snprintf(ret_text, size, "-");
}

static void seconds(bool known, double ms, char *ret_text, size_t size)
{
	if (known)
		snprintf(ret_text, size, ms < 10000 ? "%.1fs" : "%.0fs", ms / 1000);
	else
		snprintf(ret_text, size, "-");
}

#define ALWAYS(s) true
#define RATED(s) ((s)->rated)
#define DIRECTED(s) ((s)->rated && (s)->directed)
#define HAS_SHARE(s) ((s)->share_permille >= 0)
#define HAS_SWAPPED(s) ((s)->swapped_bytes >= 0)
#define HAS_WAITING(s) ((s)->waiting_ms >= 0)
#define GPU(s) ((s)->gpu)
#define SHARE(s) ((s)->share_permille)
#define MEMORY(s) ((s)->memory_bytes)
#define SWAPPED(s) ((s)->swapped_bytes)
#define RECEIVED(s) ((s)->received_rate)
#define SENT(s) ((s)->sent_rate)
#define CALLS(s) ((s)->calls_rate)
#define WAITS(s) ((s)->waits_rate)
#define WAITING(s) ((s)->waiting_ms)
#define SWITCHING(s) ((s)->rated && (s)->switches_rate >= 0)
#define SWITCHES(s) ((s)->switches_rate)
NUMBER_COLUMN(gpu, ALWAYS, GPU, number)
NUMBER_COLUMN(share, HAS_SHARE, SHARE, percent)
NUMBER_COLUMN(memory, ALWAYS, MEMORY, amount)
NUMBER_COLUMN(swapped, HAS_SWAPPED, SWAPPED, amount)
NUMBER_COLUMN(received, DIRECTED, RECEIVED, amount)
NUMBER_COLUMN(sent, DIRECTED, SENT, amount)
NUMBER_COLUMN(calls, RATED, CALLS, number)
NUMBER_COLUMN(waits, RATED, WAITS, number)
NUMBER_COLUMN(waiting, HAS_WAITING, WAITING, seconds)
NUMBER_COLUMN(switches, SWITCHING, SWITCHES, number)

/* "tcp", "tcp+4" with four lanes, "-" if not known: as the column OVER of ps. */
static void over_text(const struct ckt_top_session *s, char *text, size_t size)
{
	if (*s->transport && s->lanes)
		snprintf(text, size, "%s+%u", s->transport, s->lanes);
	else
		snprintf(text, size, "%s", *s->transport ? s->transport : "-");
}

static int over_compare(const struct ckt_top_session *a, const struct ckt_top_session *b)
{
	return strcmp(a->transport, b->transport);
}

#define COLUMN(name) name##_text, name##_compare
const struct ckt_top_column ckt_top_columns[CKT_TOP_COLUMNS] = {
	{"SESSION", "ID of the session", 's', true, 8, 12, 0, COLUMN(session)},
	{"PROGRAM", "program of the session", 'p', true, 10, 24, 0, COLUMN(program)},
	{"OWNER", "user or token whose session it is", 'o', true, 8, 20, 2, COLUMN(owner)},
	{"STATE", "state of the session", 't', true, 8, 8, 1, COLUMN(state)},
	{"GPU", "number of the session's first GPU", 'g', false, 3, 3, 5, COLUMN(gpu)},
	{"SHARE", "share of the GPU's time", 'r', false, 5, 5, 4, COLUMN(share)},
	{"MEMORY", "device memory", 'm', false, 6, 6, 1, COLUMN(memory)},
	{"SWAPPED", "memory that waits on the host", 'w', false, 7, 7, 6, COLUMN(swapped)},
	{"IN/s", "bytes a second from the program", 'i', false, 6, 6, 3, COLUMN(received)},
	{"OUT/s", "bytes a second to the program", 'u', false, 6, 6, 3, COLUMN(sent)},
	{"CALLS/s", "calls a second", 'c', false, 7, 7, 2, COLUMN(calls)},
	{"WAITS/s", "calls a second that waited for a reply", 'a', false, 7, 7, 4, COLUMN(waits)},
	{"WAITING", "time since it waits for the GPU or memory", 'n', false, 7, 7, 6,
		COLUMN(waiting)},
	{"SWITCH/s", "turns on the GPU a second", 'e', false, 8, 8, 6, COLUMN(switches)},
	{"OVER", "transport, and lanes beside it", 'v', true, 6, 6, 5, COLUMN(over)},
};

/* ---- Lines */

static int width_of(const int widths[CKT_TOP_COLUMNS])
{
	int sum = -1;
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++)
		sum += widths[i] ? widths[i] + 1 : 0;
	return sum;
}

void ckt_ctl_top_layout(int width, int ret_widths[CKT_TOP_COLUMNS])
{
	memset(ret_widths, 0, CKT_TOP_COLUMNS * sizeof *ret_widths);
	for (int rank = 0; rank <= 6; rank++)
		for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++) {
			if (ckt_top_columns[i].rank != rank)
				continue;
			ret_widths[i] = ckt_top_columns[i].width;
			if (width_of(ret_widths) > width)
				ret_widths[i] = 0;
		}
	/* What is left goes to the texts, in their order. */
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++) {
		int left = width - width_of(ret_widths),
		    room = ckt_top_columns[i].width_max - ckt_top_columns[i].width;
		if (ret_widths[i] && left > 0)
			ret_widths[i] += left < room ? left : room;
	}
}

void ckt_ctl_top_line(const int widths[CKT_TOP_COLUMNS], const struct ckt_top_session *session,
	char *ret_line, size_t size)
{
	size_t at = 0;
	*ret_line = 0;
	for (unsigned i = 0; i < CKT_TOP_COLUMNS; i++) {
		char text[CKT_MESSAGE_MAX + 1];
		const struct ckt_top_column *column = &ckt_top_columns[i];
		if (!widths[i] || at + (size_t)widths[i] + 2 > size)
			continue;
		if (session)
			column->text(session, text, sizeof text);
		else
			snprintf(text, sizeof text, "%s", column->name);
		at += (size_t)snprintf(ret_line + at, size - at, "%s%*.*s", at ? " " : "",
			column->left ? -widths[i] : widths[i], widths[i], text);
	}
}

struct order {
	unsigned column;
	bool reverse;
};

static int by_order(const void *a, const void *b, void *opaque)
{
	const struct order *order = opaque;
	const struct ckt_top_column *column = &ckt_top_columns[order->column];
	int result = column->compare(a, b);
	/* Numbers begin with the largest. */
	if (column->left == order->reverse)
		result = -result;
	return result ? result : session_compare(a, b);
}

void ckt_ctl_top_sort(struct ckt_top_sample *sample, unsigned column, bool reverse)
{
	struct order order = {column, reverse};
	if (sample->count)
		qsort_r(sample->list, sample->count, sizeof *sample->list, by_order, &order);
}

int ckt_ctl_top_column(int key)
{
	for (int i = 0; i < CKT_TOP_COLUMNS; i++)
		if (ckt_top_columns[i].key == key)
			return i;
	return -1;
}
