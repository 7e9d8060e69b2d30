/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of automatic images; see automatic_metrics.h. */
#include "server/daemon/metrics/automatic_metrics.h"

#include <time.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/metrics/families.h"
#include "server/daemon/session/session.h"

/*
 * How old the state is to which the session would go back; 0 where that is the state of now.  Without
 * an image: since its begin.
 */
static double age_of(const struct ckt_session *session, time_t now)
{
	const struct ckt_chain_state *state = &session->chain->state;
	uint64_t in_image = state->count ? state->executed : 0;
	time_t since = state->count ? (time_t)state->when : session->started;
	return session->status.executed > in_image && now > since ? (double)(now - since) : 0;
}

static void put_replicas(const struct ckt_server *server, struct ckt_metric_writer *to)
{
	struct ckt_replica_facts facts;
	ckt_metric_begin(to, CKT_METRIC_REPLICA_BEHIND);
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->phase == CKT_SESSION_LIVE && ckt_replica_facts(server, s->id, &facts))
			ckt_metric_put(to, (const char *const[]){"session", s->id, NULL},
				s->status.executed > facts.executed
					? (double)(s->status.executed - facts.executed)
					: 0);
	ckt_metric_begin(to, CKT_METRIC_REPLICA_LEASE);
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->phase == CKT_SESSION_LIVE && ckt_replica_facts(server, s->id, &facts))
			ckt_metric_put(to, (const char *const[]){"session", s->id, NULL},
				facts.lease_ms * 1e-3);
	uint64_t bytes;
	unsigned held = ckt_replica_held(&bytes);
	ckt_metric_begin(to, CKT_METRIC_REPLICAS_HELD);
	ckt_metric_put(to, NULL, held);
	ckt_metric_begin(to, CKT_METRIC_REPLICA_BYTES);
	ckt_metric_put(to, NULL, (double)bytes);
}

void ckt_metrics_put_automatic(const struct ckt_server *server, struct ckt_metric_writer *to)
{
	const struct ckt_counters *counters = &ckt_counters;
	time_t now = time(NULL);
	ckt_metric_begin(to, CKT_METRIC_AUTOMATIC_PERIOD);
	ckt_metric_put(to, NULL, server->automatic ? server->automatic->seconds : 0);
	ckt_metric_begin(to, CKT_METRIC_AUTOMATIC_IMAGES);
	ckt_metric_put(to, (const char *const[]){"result", "written", NULL},
		(double)counters->automatic_images);
	ckt_metric_put(to, (const char *const[]){"result", "failed", NULL},
		(double)counters->automatic_failures);
	ckt_metric_begin(to, CKT_METRIC_AUTOMATIC_BYTES);
	ckt_metric_put(to, NULL, (double)counters->automatic_bytes);
	ckt_metric_begin(to, CKT_METRIC_AUTOMATIC_SECONDS);
	ckt_metric_put(to, NULL, (double)counters->automatic_last_ms * 1e-3);
	ckt_metric_begin(to, CKT_METRIC_AUTOMATIC_AGE);
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		if (s->chain && s->phase == CKT_SESSION_LIVE)
			ckt_metric_put(
				to, (const char *const[]){"session", s->id, NULL}, age_of(s, now));
	ckt_metric_begin(to, CKT_METRIC_RETURNS);
	ckt_metric_put(to, (const char *const[]){"from", "image", NULL},
		(double)counters->returns_from_image);
	ckt_metric_put(to, (const char *const[]){"from", "nothing", NULL},
		(double)counters->returns_from_nothing);
	put_replicas(server, to);
}
