/* SPDX-License-Identifier: Apache-2.0 */
/* CRICKET_STATS=1: the counters of all threads, added up. */
#include <stdio.h>
#include <unistd.h>

#include "client/trace/recorder.h"
#include "client/trace/ticks.h"

enum { SHOWN = 10 };

struct total {
	uint32_t number;
	uint64_t calls, ticks, longest;
};

/* Static: a program may end in a signal handler, where malloc's lock may be taken. */
static struct total totals[CKT_TRACE_SITES_MAX];

static bool costs_more(const struct total *a, const struct total *b)
{
	return a->ticks != b->ticks ? a->ticks > b->ticks : a->number < b->number;
}

/* Brings the SHOWN that cost most to the front, in order. */
static void sort_front(uint32_t count)
{
	for (uint32_t i = 0; i < count && i < SHOWN; i++) {
		uint32_t most = i;
		for (uint32_t j = i + 1; j < count; j++)
			if (costs_more(&totals[j], &totals[most]))
				most = j;
		struct total swapped = totals[i];
		totals[i] = totals[most];
		totals[most] = swapped;
	}
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_thread(const struct ckt_trace_thread *t)
{
	for (uint32_t i = 0; i < ckt_trace_state.name_count; i++) {
		const struct ckt_trace_counter *counter = &t->counters[i];
		uint64_t longest = read_counter(&counter->longest);
		totals[i].calls += read_counter(&counter->calls);
		totals[i].ticks += read_counter(&counter->ticks);
		if (longest > totals[i].longest)
			totals[i].longest = longest;
	}
}

static double us_per_tick(void)
{
	const struct ckt_trace_state *s = &ckt_trace_state;
	uint64_t ticks = ckt_ticks_now(s->counter) - s->start_ticks;
	return ticks ? (double)(ckt_now_ns() - s->start_ns) / 1000 / (double)ticks : 0.001;
}

static void print(int fd, uint32_t count, double scale)
{
	const struct ckt_trace_state *s = &ckt_trace_state;
	uint64_t calls = 0, commands = 0, waits = 0, waited = 0;
	for (uint32_t i = 0; i < count; i++)
		calls += totals[i].calls;
	for (const struct ckt_trace_thread *t = s->threads; t; t = t->next) {
		commands += read_counter(&t->commands);
		waits += read_counter(&t->waits);
		waited += read_counter(&t->wait_ticks);
	}
	dprintf(fd,
		"cricket: %llu calls, %llu commands sent, %llu waits of %.3f ms together, "
		"%llu bytes sent, %llu bytes received\n",
		(unsigned long long)calls, (unsigned long long)commands, (unsigned long long)waits,
		(double)waited * scale / 1000, (unsigned long long)read_counter(&s->bytes_sent),
		(unsigned long long)read_counter(&s->bytes_received));
	if (read_counter(&s->lost))
		dprintf(fd, "cricket: %llu calls of threads beyond the first %d are not counted\n",
			(unsigned long long)read_counter(&s->lost), CKT_TRACE_THREADS_MAX);
	dprintf(fd, "%12s %14s %12s %12s  %s\n", "CALLS", "TOTAL_US", "MEAN_US", "MAX_US", "NAME");
	for (uint32_t i = 0; i < count && i < SHOWN && totals[i].calls; i++)
		dprintf(fd, "%12llu %14.1f %12.3f %12.1f  %s\n",
			(unsigned long long)totals[i].calls, (double)totals[i].ticks * scale,
			(double)totals[i].ticks * scale / (double)totals[i].calls,
			(double)totals[i].longest * scale, s->names[totals[i].number]);
}

void ckt_trace_summary(int fd)
{
	uint32_t count = ckt_trace_state.name_count;
	for (uint32_t i = 0; i < count; i++)
		totals[i] = (struct total){.number = i};
	for (const struct ckt_trace_thread *t = ckt_trace_state.threads; t; t = t->next)
		add_thread(t);
	sort_front(count);
	print(fd, count, us_per_tick());
}
