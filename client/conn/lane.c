/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in the client: their threads, and the pieces; see lane.h.  lane_open.c opens them. */
#include "client/conn/lane.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"
#include "client/conn/conn.h"
#include "client/conn/lane_set.h"
#include "client/conn/spin.h"

struct ckt_lane_set *ckt_lane_set_new(struct ckt_conn *conn)
{
	struct ckt_lane_set *set = calloc(1, sizeof *set);
	if (!set)
		return NULL;
	set->conn = conn;
	set->refs = 1;
	set->pieces = conn->lanes.pieces;
	set->queue_last = &set->queue;
	pthread_mutex_init(&set->lock, NULL);
	pthread_cond_init(&set->work, NULL);
	pthread_cond_init(&set->changed, NULL);
	return set;
}

void ckt_lane_set_free(struct ckt_lane_set *set)
{
	pthread_mutex_destroy(&set->lock);
	pthread_cond_destroy(&set->work);
	pthread_cond_destroy(&set->changed);
	free(set);
}

/* ---- Ends */

/* Precondition: locked. */
static void deliver(struct ckt_lane_piece *piece, enum ckt_lane_state state)
{
	piece->state = state;
	if (!piece->to_host) {
		piece->next = NULL;
		*piece->copy->last = piece;
		piece->copy->last = &piece->next;
		atomic_fetch_add(&piece->copy->ready, 1);
	}
	pthread_cond_broadcast(&piece->set->changed);
}

/* Precondition: locked. */
static struct ckt_lane_piece **find(struct ckt_lane_piece **list, uint64_t number)
{
	while (*list && (*list)->number != number)
		list = &(*list)->next;
	return list;
}

/* Loses what no thread is inside of.  Precondition: locked. */
static void lose(struct ckt_lane_piece **list)
{
	while (*list) {
		struct ckt_lane_piece *piece = *list;
		if (piece->inside) {
			list = &piece->next;
			continue;
		}
		*list = piece->next;
		deliver(piece, CKT_LANE_LOST);
	}
}

void ckt_lane_set_end(struct ckt_lane_set *set)
{
	pthread_mutex_lock(&set->lock);
	if (!set->gone) {
		set->gone = true;
		for (unsigned i = 0; i < set->count; i++)
			ckt_transport_shutdown(&set->lanes[i].transport);
		lose(&set->queue);
		set->queue_last = &set->queue;
		lose(&set->sent);
		lose(&set->expected);
		pthread_cond_broadcast(&set->work);
		pthread_cond_broadcast(&set->changed);
	}
	pthread_mutex_unlock(&set->lock);
}

/* ---- Sending */

/* Precondition: locked; unlocks meanwhile. */
static int send_piece(struct ckt_lane *lane)
{
	struct ckt_lane_set *set = lane->set;
	struct ckt_lane_piece *piece = set->queue;
	const struct ckt_lane_head head = {
		.kind = CKT_LANE_DATA, .size = piece->size, .piece = piece->number};
	set->queue = piece->next;
	if (!set->queue)
		set->queue_last = &set->queue;
	piece->next = set->sent;
	set->sent = piece;
	piece->state = CKT_LANE_MOVING;
	piece->inside = true;
	pthread_mutex_unlock(&set->lock);
	int result = ckt_lane_frame_write(&lane->transport, &head, piece->data);
	pthread_mutex_lock(&set->lock);
	piece->inside = false;
	if (piece->state == CKT_LANE_THERE || result || set->gone) {
		struct ckt_lane_piece **at = find(&set->sent, piece->number);
		*at = piece->next;
		deliver(piece, piece->state == CKT_LANE_THERE ? CKT_LANE_THERE : CKT_LANE_LOST);
	} else {
		piece->state = CKT_LANE_SENT;
	}
	return result;
}

/* As send_piece: says what has come. */
static int send_arrived(struct ckt_lane *lane)
{
	struct ckt_lane_set *set = lane->set;
	uint8_t bytes[LANE_ARRIVED_MAX * CKT_LANE_HEAD_SIZE], *p = bytes;
	for (unsigned i = 0; i < set->arrived_count; i++, p += CKT_LANE_HEAD_SIZE)
		ckt_lane_head_put(p,
			&(struct ckt_lane_head){
				.kind = CKT_LANE_ARRIVED, .piece = set->arrived[i]});
	set->arrived_count = 0;
	pthread_mutex_unlock(&set->lock);
	int result = ckt_transport_write_all(&lane->transport, bytes, (size_t)(p - bytes), -1);
	pthread_mutex_lock(&set->lock);
	return result;
}

static void *writer(void *opaque)
{
	struct ckt_lane *lane = opaque;
	struct ckt_lane_set *set = lane->set;
	int result = 0;
	pthread_mutex_lock(&set->lock);
	while (!set->gone && !result) {
		if (lane->writing || (!set->arrived_count && !set->queue)) {
			pthread_cond_wait(&set->work, &set->lock);
			continue;
		}
		lane->writing = true;
		result = set->arrived_count ? send_arrived(lane) : send_piece(lane);
		lane->writing = false;
	}
	pthread_mutex_unlock(&set->lock);
	ckt_lane_set_end(set);
	return NULL;
}

/* ---- Receiving */

/* The worker has a piece. */
static int acknowledged(struct ckt_lane_set *set, uint64_t number)
{
	pthread_mutex_lock(&set->lock);
	struct ckt_lane_piece **at = find(&set->sent, number), *piece = *at;
	bool good = piece && piece->state != CKT_LANE_THERE;
	if (good && piece->state == CKT_LANE_MOVING) {
		/* Its writer is about to find out. */
		piece->state = CKT_LANE_THERE;
	} else if (good) {
		*at = piece->next;
		deliver(piece, CKT_LANE_THERE);
	}
	pthread_mutex_unlock(&set->lock);
	return good ? 0 : -EPROTO;
}

/* The program has its bytes, or gets them elsewhere. */
static void settle_piece(struct ckt_lane_piece *piece)
{
	struct ckt_lanes *lanes = &piece->set->conn->lanes;
	if (!piece->background)
		return;
	pthread_mutex_lock(&lanes->lock);
	if (piece->announced && !piece->settled)
		atomic_fetch_sub(&lanes->announced, 1);
	piece->settled = true;
	pthread_mutex_unlock(&lanes->lock);
}

/*
 * Tells the worker that the piece has come: at once if nobody writes to this lane and it takes the
 * words without a wait, else by a writer.  Precondition: locked; unlocks meanwhile.
 */
static int say_arrived(struct ckt_lane *lane, uint64_t piece)
{
	struct ckt_lane_set *set = lane->set;
	uint8_t bytes[CKT_LANE_HEAD_SIZE];
	ssize_t n = -EAGAIN;
	if (!lane->writing) {
		ckt_lane_head_put(
			bytes, &(struct ckt_lane_head){.kind = CKT_LANE_ARRIVED, .piece = piece});
		lane->writing = true;
		pthread_mutex_unlock(&set->lock);
		n = ckt_transport_write(&lane->transport, bytes, sizeof bytes);
		pthread_mutex_lock(&set->lock);
		lane->writing = false;
		if (n == sizeof bytes && !set->queue && !set->arrived_count)
			return 0;
	}
	if (n != sizeof bytes) {
		/* A worker that sends on without them is not honest. */
		if (n != -EAGAIN || set->arrived_count == LANE_ARRIVED_MAX)
			return n < 0 && n != -EAGAIN ? (int)n : -EIO;
		set->arrived[set->arrived_count++] = piece;
	}
	pthread_cond_broadcast(&set->work);
	return 0;
}

static int receive(struct ckt_lane *lane, const struct ckt_lane_head *head)
{
	struct ckt_lane_set *set = lane->set;
	pthread_mutex_lock(&set->lock);
	struct ckt_lane_piece *piece = *find(&set->expected, head->piece);
	bool good = piece && piece->state == CKT_LANE_WAITING && piece->size == head->size;
	if (good) {
		piece->state = CKT_LANE_MOVING;
		piece->inside = true;
	}
	pthread_mutex_unlock(&set->lock);
	if (!good)
		return -EPROTO;
	int result = ckt_transport_read_all(&lane->transport, piece->data, head->size);
	pthread_mutex_lock(&set->lock);
	*find(&set->expected, head->piece) = piece->next;
	piece->inside = false;
	deliver(piece, result ? CKT_LANE_LOST : CKT_LANE_THERE);
	if (!result)
		settle_piece(piece);
	if (!result)
		result = say_arrived(lane, head->piece);
	pthread_mutex_unlock(&set->lock);
	return result;
}

static void *reader(void *opaque)
{
	struct ckt_lane *lane = opaque;
	struct ckt_lane_head head;
	int result;
	do {
		result = ckt_lane_head_read(&lane->transport, &head);
		if (!result)
			result = head.kind == CKT_LANE_DATA ? receive(lane, &head)
							    : acknowledged(lane->set, head.piece);
	} while (!result);
	ckt_debug("a lane of session %s ended: error %d", lane->set->conn->session, -result);
	ckt_lane_set_end(lane->set);
	return NULL;
}

int ckt_lane_set_start(struct ckt_lane_set *set)
{
	int error = 0;
	for (unsigned i = 0; i < set->count && !error; i++) {
		struct ckt_lane *lane = &set->lanes[i];
		lane->set = set;
		error = ckt_thread_start(&lane->reader, 0, reader, lane);
		lane->reads = !error;
		if (!error)
			error = ckt_thread_start(&lane->writer, 0, writer, lane);
		lane->writes = !error;
	}
	return error;
}

void ckt_lane_set_join(struct ckt_lane_set *set)
{
	for (unsigned i = 0; i < set->count; i++) {
		struct ckt_lane *lane = &set->lanes[i];
		if (lane->reads)
			pthread_join(lane->reader, NULL);
		if (lane->writes)
			pthread_join(lane->writer, NULL);
		lane->reads = lane->writes = false;
		ckt_transport_close(&lane->transport);
	}
}

/* ---- Pieces */

unsigned ckt_lanes_count(const struct ckt_lane_set *set)
{
	return set->count;
}

/* Precondition: locked. */
static void number(struct ckt_lane_set *set, struct ckt_lane_piece *piece)
{
	piece->set = set;
	piece->number = atomic_fetch_add(&set->conn->lanes.last_piece, 1) + 1;
	piece->next = NULL;
}

void ckt_lane_send(struct ckt_lane_set *set, struct ckt_lane_piece *piece)
{
	pthread_mutex_lock(&set->lock);
	number(set, piece);
	if (set->gone) {
		deliver(piece, CKT_LANE_LOST);
	} else {
		piece->state = CKT_LANE_WAITING;
		*set->queue_last = piece;
		set->queue_last = &piece->next;
		pthread_cond_signal(&set->work);
	}
	pthread_mutex_unlock(&set->lock);
}

void ckt_lane_help(struct ckt_lane_set *set)
{
	struct ckt_lane *idle = NULL;
	int result = 0;
	pthread_mutex_lock(&set->lock);
	for (unsigned i = 0; i < set->count && !idle; i++)
		if (!set->lanes[i].writing)
			idle = &set->lanes[i];
	if (idle && set->queue && !set->gone) {
		idle->writing = true;
		result = send_piece(idle);
		idle->writing = false;
		if (set->queue || set->arrived_count)
			pthread_cond_broadcast(&set->work);
	}
	pthread_mutex_unlock(&set->lock);
	if (result)
		ckt_lane_set_end(set);
}

struct ckt_lane_piece *ckt_lane_next(struct ckt_lane_set *set, struct ckt_lane_copy *copy)
{
	struct ckt_spin spin = ckt_spin_begin();
	while (!atomic_load(&copy->ready) && ckt_spin_again(&spin))
		__builtin_ia32_pause();
	ckt_spin_end();
	pthread_mutex_lock(&set->lock);
	while (!copy->first)
		pthread_cond_wait(&set->changed, &set->lock);
	struct ckt_lane_piece *piece = copy->first;
	copy->first = piece->next;
	if (!copy->first)
		copy->last = &copy->first;
	atomic_fetch_sub(&copy->ready, 1);
	pthread_mutex_unlock(&set->lock);
	return piece;
}

bool ckt_lanes_have_room(struct ckt_lane_set *set)
{
	return atomic_load(&set->on_way) < set->pieces;
}

static void enter_background(struct ckt_lanes *lanes, struct ckt_lane_piece *piece)
{
	pthread_mutex_lock(&lanes->lock);
	piece->announced = piece->settled = false;
	piece->next_background = lanes->background;
	lanes->background = piece;
	pthread_mutex_unlock(&lanes->lock);
}

static void leave_background(struct ckt_lanes *lanes, struct ckt_lane_piece *piece)
{
	pthread_mutex_lock(&lanes->lock);
	struct ckt_lane_piece **at = &lanes->background;
	while (*at && *at != piece)
		at = &(*at)->next_background;
	if (*at)
		*at = piece->next_background;
	pthread_mutex_unlock(&lanes->lock);
}

void ckt_lane_expect(struct ckt_lane_set *set, struct ckt_lane_piece *piece)
{
	atomic_fetch_add(&set->on_way, 1);
	pthread_mutex_lock(&set->lock);
	number(set, piece);
	if (piece->background)
		enter_background(&set->conn->lanes, piece);
	piece->to_host = true;
	piece->state = set->gone ? CKT_LANE_LOST : CKT_LANE_WAITING;
	if (!set->gone) {
		piece->next = set->expected;
		set->expected = piece;
	}
	pthread_mutex_unlock(&set->lock);
}

bool ckt_lane_leave(struct ckt_lane_piece *piece)
{
	struct ckt_lane_set *set = piece->set;
	pthread_mutex_lock(&set->lock);
	if (piece->inside) {
		/* The worker gave its lanes up, and this one has not noticed. */
		pthread_mutex_unlock(&set->lock);
		ckt_lane_set_end(set);
		pthread_mutex_lock(&set->lock);
	}
	while (piece->inside)
		pthread_cond_wait(&set->changed, &set->lock);
	if (piece->state == CKT_LANE_WAITING)
		*find(&set->expected, piece->number) = piece->next;
	bool there = piece->state == CKT_LANE_THERE;
	piece->state = CKT_LANE_IDLE;
	pthread_mutex_unlock(&set->lock);
	return there;
}

void ckt_lane_end(struct ckt_lane_piece *piece)
{
	settle_piece(piece);
	if (piece->background)
		leave_background(&piece->set->conn->lanes, piece);
	atomic_fetch_sub(&piece->set->on_way, 1);
}

/* ---- Copies in the background */

void ckt_lanes_announce(struct ckt_conn *conn, uint64_t number)
{
	struct ckt_lanes *lanes = &conn->lanes;
	pthread_mutex_lock(&lanes->lock);
	struct ckt_lane_piece *piece = lanes->background;
	while (piece && piece->number != number)
		piece = piece->next_background;
	if (piece && !piece->announced && !piece->settled) {
		piece->announced = true;
		atomic_fetch_add(&lanes->announced, 1);
	}
	pthread_mutex_unlock(&lanes->lock);
}

static bool none_announced(void *data)
{
	return !atomic_load(&((struct ckt_conn *)data)->lanes.announced);
}

void ckt_lanes_settle(struct ckt_conn *conn)
{
	if (__builtin_expect(!none_announced(conn), 0))
		ckt_conn_wait_until(conn, none_announced, conn);
}
