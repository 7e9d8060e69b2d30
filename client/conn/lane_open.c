/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the client's lanes; see lane.h. */
#include <errno.h>

#include "base/log.h"
#include "base/thread.h"
#include "client/conn/conn.h"
#include "client/conn/lane_set.h"
#include "client/conn/settings.h"

enum { CONNECT_TIMEOUT_MS = 2000 };

/* Precondition: locked. */
static void set_unref(struct ckt_lane_set *set)
{
	if (!--set->refs)
		ckt_lane_set_free(set);
}

/* The connection's set, which ends here.  Precondition: nobody else finds it any more. */
static void end(struct ckt_conn *conn, struct ckt_lane_set *set)
{
	ckt_lane_set_end(set);
	ckt_lane_set_join(set);
	pthread_mutex_lock(&conn->lanes.lock);
	set_unref(set);
	pthread_mutex_unlock(&conn->lanes.lock);
}

static bool is_closing(struct ckt_conn *conn)
{
	pthread_mutex_lock(&conn->lanes.lock);
	bool closing = !conn->lanes.offered;
	pthread_mutex_unlock(&conn->lanes.lock);
	return closing;
}

/* 0 or -errno: no further lane is to be had. */
static int connect_lane(struct ckt_conn *conn, struct ckt_lane_set *set)
{
	char message[CKT_MESSAGE_MAX], moved[CKT_ADDRESS_MAX + 1];
	struct ckt_hello_ok ok = {0};
	struct ckt_transport found = CKT_TRANSPORT_NONE;
	int result = ckt_connect(conn, conn->address_text, CKT_HELLO_DATA, CONNECT_TIMEOUT_MS,
		&found, &ok, moved, sizeof moved, message, sizeof message);
	if (result) {
		ckt_debug("no further lane to %s: %s", conn->address_text, message);
		return result;
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)&ok);
	ckt_transport_move(&set->lanes[set->count++].transport, &found);
	return 0;
}

static struct ckt_lane_set *open_set(struct ckt_conn *conn, unsigned wanted)
{
	struct ckt_lane_set *set = ckt_lane_set_new(conn);
	int result = set ? 0 : -ENOMEM;
	while (!result && set->count < wanted && !is_closing(conn))
		result = connect_lane(conn, set);
	if (set && (!set->count || ckt_lane_set_start(set))) {
		end(conn, set);
		return NULL;
	}
	return set;
}

static void *open_lanes(void *opaque)
{
	struct ckt_conn *conn = opaque;
	struct ckt_lanes *lanes = &conn->lanes;
	pthread_mutex_lock(&lanes->lock);
	struct ckt_lane_set *old = lanes->set;
	unsigned wanted = ckt_settings.lanes < lanes->offered ? ckt_settings.lanes : lanes->offered;
	lanes->set = NULL;
	pthread_mutex_unlock(&lanes->lock);
	if (old)
		end(conn, old);
	lanes->number++;
	struct ckt_lane_set *set = open_set(conn, wanted);
	pthread_mutex_lock(&lanes->lock);
	/* Closed meanwhile, or not: the connection's next owner of the set. */
	if (set && lanes->offered) {
		lanes->set = set;
		set = NULL;
	}
	lanes->opening = false;
	pthread_mutex_unlock(&lanes->lock);
	if (set)
		end(conn, set);
	return NULL;
}

/* Precondition: locked, and no thread opens lanes. */
static void begin_to_open(struct ckt_conn *conn)
{
	struct ckt_lanes *lanes = &conn->lanes;
	/* It is about to end: it has nothing to do any more. */
	if (lanes->has_opener)
		pthread_join(lanes->opener, NULL);
	lanes->failures++;
	lanes->opening = lanes->has_opener = !ckt_thread_start(&lanes->opener, 0, open_lanes, conn);
}

struct ckt_lane_set *ckt_lanes_get(struct ckt_conn *conn)
{
	struct ckt_lanes *lanes = &conn->lanes;
	if (!ckt_settings.lanes)
		return NULL;
	pthread_mutex_lock(&lanes->lock);
	struct ckt_lane_set *set = lanes->set && !lanes->set->gone ? lanes->set : NULL;
	if (set)
		set->refs++;
	else if (lanes->offered && !lanes->opening && lanes->failures < LANE_FAILURES_MAX)
		begin_to_open(conn);
	pthread_mutex_unlock(&lanes->lock);
	return set;
}

void ckt_lanes_release(struct ckt_lane_set *set)
{
	struct ckt_conn *conn = set->conn;
	pthread_mutex_lock(&conn->lanes.lock);
	if (!set->gone)
		conn->lanes.failures = 0;
	set_unref(set);
	pthread_mutex_unlock(&conn->lanes.lock);
}

void ckt_lanes_close(struct ckt_conn *conn)
{
	struct ckt_lanes *lanes = &conn->lanes;
	pthread_mutex_lock(&lanes->lock);
	struct ckt_lane_set *set = lanes->set;
	bool has_opener = lanes->has_opener;
	lanes->set = NULL;
	lanes->offered = 0;
	lanes->has_opener = false;
	pthread_mutex_unlock(&lanes->lock);
	if (has_opener)
		pthread_join(lanes->opener, NULL);
	if (set)
		end(conn, set);
}

void ckt_lanes_allow(struct ckt_conn *conn, const struct ckt_hello_ok *ok)
{
	uint64_t offered = ckt_conn_told(ok, CKT_CAPABILITY_LANES),
		 pieces = ckt_conn_told(ok, CKT_CAPABILITY_LANE_PIECES);
	pthread_mutex_lock(&conn->lanes.lock);
	conn->lanes.offered = offered < CKT_LANES_MAX ? (unsigned)offered : CKT_LANES_MAX;
	conn->lanes.pieces = !pieces         ? 1
		: pieces < LANE_EXPECTED_MAX ? (unsigned)pieces
					     : LANE_EXPECTED_MAX;
	conn->lanes.failures = 0;
	pthread_mutex_unlock(&conn->lanes.lock);
}

void ckt_lanes_forked(struct ckt_conn *conn)
{
	struct ckt_lanes *lanes = &conn->lanes;
	pthread_mutex_init(&lanes->lock, NULL);
	/* The parent's threads are not here, and the child never calls. */
	for (unsigned i = 0; lanes->set && i < lanes->set->count; i++)
		ckt_transport_close(&lanes->set->lanes[i].transport);
	lanes->set = NULL;
	lanes->background = NULL;
	lanes->announced = 0;
	lanes->offered = 0;
	lanes->has_opener = lanes->opening = false;
}
