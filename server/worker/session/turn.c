/* SPDX-License-Identifier: Apache-2.0 */
/* Turns on shared GPUs; see turn.h. */
#include "server/worker/session/turn.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/turn.h"
#include "rpc/wire.h"
#include "server/worker/libs/libs.h"
#include "server/worker/session/drain.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/session/pace.h"
#include "server/worker/worker.h"

/* For so long a turn's end is awaited by asking without pause. */
#define EAGER_NS INT64_C(2000000)

_Atomic bool ckt_turn_on;

struct gpu_turn {
	bool wanted, given;
	uint32_t number;
	int64_t end_ns; /* 0: none */
	int64_t pace_ns;
	bool eager; /* given back without a grace */
};

static struct {
	pthread_mutex_t lock;
	struct ckt_worker *worker;
	int channel;
	struct gpu_turn gpus[CKT_DEVICES_MAX];
	bool away; /* the executor stands still */
	/* The executor's. */
	int64_t stopped_ns; /* since when it waits for the GPU; 0: it does not */
	int64_t idle_ns;    /* since when it has no command; 0: it has */
	bool paced;         /* it waits for unfinished work of its own */
	int stopped_gpu;    /* whose next command waits; -1: none */
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER, .channel = -1, .stopped_gpu = -1};

/* ---- The channel */

/* Precondition: lock held.  Its thread closes it. */
static void leave(void)
{
	if (turns.channel >= 0)
		shutdown(turns.channel, SHUT_RDWR);
	turns.channel = -1;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		turns.gpus[gpu] = (struct gpu_turn){0};
	atomic_store(&ckt_turn_on, false);
}

/* Precondition: lock held. */
static void tell(enum ckt_turn_kind kind, unsigned gpu, bool wants)
{
	struct ckt_turn_message message = {
		.kind = kind, .gpu = gpu, .number = turns.gpus[gpu].number, .wants = wants};
	if (send(turns.channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		sizeof message)
		leave();
}

/* Precondition: lock held. */
static void take(const struct ckt_turn_message *message)
{
	struct gpu_turn *turn = &turns.gpus[message->gpu];
	if (message->kind == CKT_TURN_GIVE) {
		turn->wanted = false;
		turn->given = !turns.away;
		turn->number = message->number;
		if (turns.away)
			tell(CKT_TURN_YIELD, message->gpu, false);
	} else if (!turn->given || turn->number != message->number) {
		return;
	}
	turn->end_ns = message->length_ns < 0 ? 0 : ckt_now_ns() + message->length_ns;
	turn->pace_ns = message->pace_ns;
	turn->eager = message->wants;
}

static void *receive(void *opaque)
{
	int channel = (int)(intptr_t)opaque;
	struct ckt_turn_message message;
	ssize_t n;
	while ((n = recv(channel, &message, sizeof message, 0)) == sizeof message ||
		(n < 0 && errno == EINTR)) {
		if (n < 0 || message.gpu >= CKT_DEVICES_MAX)
			continue;
		pthread_mutex_lock(&turns.lock);
		if (turns.channel == channel)
			take(&message);
		pthread_mutex_unlock(&turns.lock);
		ckt_executor_wake(turns.worker);
	}
	pthread_mutex_lock(&turns.lock);
	if (turns.channel == channel)
		leave();
	pthread_mutex_unlock(&turns.lock);
	close(channel);
	ckt_executor_wake(turns.worker);
	return NULL;
}

int ckt_turn_join(struct ckt_worker *worker, int channel)
{
	pthread_t thread;
	if (!ckt_net_is_packet_socket(channel)) {
		close(channel);
		return -EINVAL;
	}
	pthread_mutex_lock(&turns.lock);
	leave();
	turns.worker = worker;
	turns.channel = channel;
	int error = pthread_create(&thread, NULL, receive, (void *)(intptr_t)channel);
	if (error) {
		turns.channel = -1;
		close(channel);
	} else {
		pthread_detach(thread);
		atomic_store(&ckt_turn_on, true);
	}
	pthread_mutex_unlock(&turns.lock);
	return -error;
}

/* ---- The executor */

/* The context of the next command; NULL: it needs none, or is not there yet. */
static struct ckt_object *next_context(struct ckt_worker *worker)
{
	size_t have = worker->input.tail - worker->input.head, size;
	const uint8_t *p = worker->input.data + worker->input.head;
	struct ckt_call_header header;
	if (have < CKT_MARK_SIZE || ckt_mark_get(p, CKT_RECORD_MAX, &size) ||
		size < CKT_CALL_HEADER_SIZE || have < CKT_MARK_SIZE + size)
		return NULL;
	struct ckt_cursor cursor = {p + CKT_MARK_SIZE, p + CKT_MARK_SIZE + size};
	if (!ckt_call_header_get(&cursor, &header) || !ckt_library_of_prog(header.prog))
		return NULL;
	return ckt_objects_find_kind(&worker->objects, header.context, CKT_KIND_CONTEXT);
}

/* The turn as it is now; asks for it once. */
static struct gpu_turn turn_of(unsigned gpu)
{
	pthread_mutex_lock(&turns.lock);
	struct gpu_turn *turn = &turns.gpus[gpu];
	if (!turn->given && !turn->wanted && turns.channel >= 0) {
		turn->wanted = true;
		tell(CKT_TURN_WANT, gpu, true);
	}
	struct gpu_turn copy = *turn;
	/* The channel has just ended. */
	copy.given |= turns.channel < 0;
	pthread_mutex_unlock(&turns.lock);
	return copy;
}

static bool stops(struct ckt_worker *worker, struct ckt_object *context)
{
	unsigned gpu = worker->devices[context->ctx.device].number;
	if (gpu >= CKT_DEVICES_MAX || ckt_hostcalls_waiting(worker))
		return false;
	struct gpu_turn turn = turn_of(gpu);
	turns.stopped_gpu = (int)gpu;
	if (!turn.given || (turn.end_ns && ckt_now_ns() >= turn.end_ns))
		return true;
	turns.paced = turn.pace_ns && ckt_pace_stops(worker, context, turn.pace_ns);
	return turns.paced;
}

bool ckt_turn_stops(struct ckt_worker *worker)
{
	struct ckt_object *context = next_context(worker);
	turns.paced = false;
	turns.stopped_gpu = -1;
	if (context)
		turns.idle_ns = 0;
	bool stopped = context && stops(worker, context);
	if (!stopped) {
		turns.stopped_gpu = -1;
		turns.stopped_ns = 0;
	} else if (!turns.stopped_ns) {
		turns.stopped_ns = ckt_now_ns();
	}
	return stopped;
}

static void give_back(unsigned gpu, bool wants)
{
	ckt_pace_reset();
	pthread_mutex_lock(&turns.lock);
	if (turns.gpus[gpu].given && turns.channel >= 0) {
		turns.gpus[gpu].given = false;
		/* With the wish it need not ask again. */
		turns.gpus[gpu].wanted = wants;
		tell(CKT_TURN_YIELD, gpu, wants);
	}
	pthread_mutex_unlock(&turns.lock);
}

static bool is_busy(struct ckt_worker *worker, unsigned gpu)
{
	for (unsigned d = 0; d < worker->device_count; d++)
		if (worker->devices[d].number == gpu && ckt_streams_busy_on(worker, d))
			return true;
	return false;
}

/* Whether the turn is to end once the GPU is drained. */
static bool is_over(const struct gpu_turn *turn, bool idle, bool stopped, int64_t now_ns)
{
	return turn->given && turn->end_ns && (now_ns >= turn->end_ns || (idle && !stopped));
}

bool ckt_turn_look(struct ckt_worker *worker, bool idle)
{
	bool again = turns.paced;
	int64_t now = ckt_now_ns();
	if (idle && !turns.idle_ns)
		turns.idle_ns = now;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		pthread_mutex_lock(&turns.lock);
		struct gpu_turn turn = turns.gpus[gpu];
		pthread_mutex_unlock(&turns.lock);
		bool stopped = turns.stopped_gpu == (int)gpu;
		if (!is_over(&turn, idle, stopped, now))
			continue;
		if (is_busy(worker, gpu)) {
			again = true;
			turns.idle_ns = now;
		} else if (now >= turn.end_ns || turn.eager ||
			now - turns.idle_ns >= CKT_TURN_GRACE_NS) {
			give_back(gpu, stopped);
		}
	}
	return again && turns.stopped_ns && now - turns.stopped_ns < EAGER_NS;
}

bool ckt_turn_stopped(void)
{
	return ckt_turns_on() && turns.stopped_gpu >= 0;
}

bool ckt_turn_waits(void)
{
	bool waits = turns.paced;
	if (!ckt_turns_on())
		return false;
	pthread_mutex_lock(&turns.lock);
	for (unsigned gpu = 0; !waits && gpu < CKT_DEVICES_MAX; gpu++)
		waits = turns.gpus[gpu].given && turns.gpus[gpu].end_ns;
	pthread_mutex_unlock(&turns.lock);
	return waits;
}

void ckt_turn_leave(void)
{
	pthread_mutex_lock(&turns.lock);
	turns.away = true;
	pthread_mutex_unlock(&turns.lock);
	for (unsigned gpu = 0; ckt_turns_on() && gpu < CKT_DEVICES_MAX; gpu++)
		give_back(gpu, false);
}

void ckt_turn_return(void)
{
	pthread_mutex_lock(&turns.lock);
	turns.away = false;
	pthread_mutex_unlock(&turns.lock);
}
