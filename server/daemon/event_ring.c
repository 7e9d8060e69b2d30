/* SPDX-License-Identifier: Apache-2.0 */
/* The last events; see event_ring.h. */
#include "server/daemon/event_ring.h"

#include <stddef.h>
#include <time.h>

#include "rpc/net.h"

enum { KEPT_SESSIONS = 512, KEPT_DECISIONS = 2048 };

struct ring {
	struct ckt_kept_event *events;
	size_t size;
	uint64_t told;
};

static struct ckt_kept_event of_sessions[KEPT_SESSIONS], of_decisions[KEPT_DECISIONS];
static struct ring sessions = {of_sessions, KEPT_SESSIONS, 0},
		   decisions = {of_decisions, KEPT_DECISIONS, 0};
static uint64_t last;

uint64_t ckt_event_ring_last(void)
{
	return last;
}

struct ckt_kept_event *ckt_event_ring_add(bool decision, uint64_t folded)
{
	struct ring *ring = decision ? &decisions : &sessions;
	struct ckt_kept_event *event = &ring->events[ring->told++ % ring->size];
	last += 1 + folded;
	*event = (struct ckt_kept_event){.number = last,
		.folded = folded,
		.when = time(NULL),
		.at_ms = ckt_net_now_ms(),
		.facts = {.gpu = -1}};
	return event;
}

static size_t count_of(const struct ring *ring)
{
	return ring->told < ring->size ? (size_t)ring->told : ring->size;
}

/* The index-th of those that are kept, oldest first. */
static struct ckt_kept_event *at(const struct ring *ring, size_t index)
{
	return &ring->events[(ring->told - count_of(ring) + index) % ring->size];
}

/* How many of them have that number or a lower one. */
static size_t up_to(const struct ring *ring, uint64_t number)
{
	size_t low = 0, high = count_of(ring);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (at(ring, middle)->number <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ckt_kept_event *next_of(const struct ring *ring, uint64_t after)
{
	size_t index = up_to(ring, after);
	return index < count_of(ring) ? at(ring, index) : NULL;
}

struct ckt_kept_event *ckt_event_ring_next(uint64_t after, bool with_decisions)
{
	struct ckt_kept_event *event = next_of(&sessions, after);
	struct ckt_kept_event *other = with_decisions ? next_of(&decisions, after) : NULL;
	return !event || (other && other->number < event->number) ? other : event;
}

/* How many events after that number are kept, each of those that one stands for. */
static uint64_t kept_after(const struct ring *ring, uint64_t after)
{
	uint64_t count = 0;
	for (size_t i = up_to(ring, after); i < count_of(ring); i++) {
		const struct ckt_kept_event *event = at(ring, i);
		uint64_t of_it = 1 + event->folded, behind = event->number - after;
		count += of_it < behind ? of_it : behind;
	}
	return count;
}

uint64_t ckt_event_ring_lost(uint64_t after)
{
	if (!after || after >= last)
		return 0;
	return last - after - kept_after(&sessions, after) - kept_after(&decisions, after);
}
