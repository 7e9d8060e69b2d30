/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that strangers cause: some of each kind at once, then one a second, and how many were
 * left out. A flood of connections must fill neither a disk nor the journal.
 */
#include "server/daemon/log_limited.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/server.h"

enum { REFILL_MS = 1000, TELL_MS = 10000 };

static const char *const kinds[CKT_LIMITS] = {"refused hellos", "dropped connections",
	"missing descriptors", "images that could not be served", "refused system calls"};

static void tell(struct ckt_server *server, enum ckt_log_limit kind)
{
	struct ckt_log_bucket *bucket = &server->log_buckets[kind];
	if (bucket->suppressed)
		ckt_warning("left out %llu more messages about %s",
			(unsigned long long)bucket->suppressed, kinds[kind]);
	bucket->suppressed = 0;
}

static void tell_all(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, log_timer);
	for (int kind = 0; kind < CKT_LIMITS; kind++)
		tell(server, (enum ckt_log_limit)kind);
}

static bool take(struct ckt_log_bucket *bucket, unsigned burst)
{
	int64_t now = ckt_net_now_ms();
	if (!bucket->since_ms)
		bucket->since_ms = now;
	/* `used` decreases by one a second. */
	uint64_t back = (uint64_t)(now - bucket->since_ms) / REFILL_MS;
	bucket->since_ms += (int64_t)back * REFILL_MS;
	bucket->used = bucket->used > back ? bucket->used - (unsigned)back : 0;
	if (bucket->used >= burst)
		return false;
	bucket->used++;
	return true;
}

void ckt_daemon_log_limited(
	struct ckt_server *server, enum ckt_log_limit kind, const char *format, ...)
{
	struct ckt_log_bucket *bucket = &server->log_buckets[kind];
	char text[1024];
	va_list arguments;
	ckt_counters.strangers[kind]++;
	if (!take(bucket, server->options.log_burst)) {
		/* Logged once things calm down, or after ten seconds, whichever comes first. */
		if (!bucket->suppressed++ && !server->log_timer.link) {
			server->log_timer.fire = tell_all;
			ckt_timer_set(&server->loop, &server->log_timer, TELL_MS);
		}
		return;
	}
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	ckt_info("%s", text);
}

void ckt_daemon_log_limited_fini(struct ckt_server *server)
{
	tell_all(&server->log_timer);
	ckt_timer_clear(&server->log_timer);
}
