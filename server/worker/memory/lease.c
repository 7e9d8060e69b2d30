/* SPDX-License-Identifier: Apache-2.0 */
/* This worker's lease of memory; see lease.h. */
#include "server/worker/memory/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/timed_wait.h"
#include "rpc/lease.h"
#include "rpc/net.h"

/* What is asked for ahead: a round trip to the server then falls on 32 mappings of 0.1 ms. */
#define STEP_BYTES ((uint64_t)64 << 20)

unsigned ckt_lease_answer_ms = 10000;

static struct {
	pthread_mutex_t lock;
	pthread_mutex_t ask_lock; /* one question at a time; taken before lock */
	pthread_cond_t joined_cond;
	int channel;
	unsigned epoch; /* of the channel */
	bool joined, unlimited;
	uint32_t number; /* of the last question */
	_Atomic unsigned asking;
	_Atomic bool pressed;
	struct ckt_lease_wait *waits; /* ASKING or WAITING, or GRANTED with bytes reserved */
	struct {
		uint64_t used, leased;
		uint64_t reserved; /* of leased: for waits that were granted */
	} gpus[CKT_DEVICES_MAX];
} lease = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.ask_lock = PTHREAD_MUTEX_INITIALIZER,
	.joined_cond = PTHREAD_COND_INITIALIZER,
	.channel = -1,
	.unlimited = true};

void (*ckt_lease_changed)(void);
/* whose reserved bytes this thread's allocations use; NULL: nobody's */
static __thread struct ckt_lease_wait *used_wait;
static __thread struct ckt_lease_wait refused;

static void changed(void)
{
	if (ckt_lease_changed)
		ckt_lease_changed();
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + CKT_LEASE_GRANULE - 1) / CKT_LEASE_GRANULE * CKT_LEASE_GRANULE;
}

/* ---- The channel */

/* Precondition: lock held. */
static void leave(void)
{
	if (lease.channel < 0)
		return;
	/* Who waits there has a descriptor of its own. */
	shutdown(lease.channel, SHUT_RDWR);
	close(lease.channel);
	lease.channel = -1;
	lease.epoch++;
	for (struct ckt_lease_wait *w = lease.waits; w; w = w->next)
		if (w->state == CKT_LEASE_WAITING || w->state == CKT_LEASE_ASKING)
			w->state = CKT_LEASE_NOT_ASKED;
}

/* Of what is leased, what is neither used nor reserved.  Precondition: lock held. */
static uint64_t unused(unsigned gpu)
{
	uint64_t taken = round_up(lease.gpus[gpu].used) + lease.gpus[gpu].reserved;
	return lease.gpus[gpu].leased > taken ? lease.gpus[gpu].leased - taken : 0;
}

/* Precondition: lock held. */
static void give_back(unsigned gpu, uint64_t bytes)
{
	struct ckt_lease_message message = {.kind = CKT_LEASE_GIVE, .gpu = gpu, .bytes = bytes};
	if (bytes && lease.channel >= 0 &&
		send(lease.channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		lease.gpus[gpu].leased -= bytes;
}

bool ckt_lease_end(int status)
{
	struct ckt_lease_message message = {.kind = CKT_LEASE_END, .number = (uint32_t)status};
	pthread_mutex_lock(&lease.lock);
	bool sent = lease.channel >= 0 &&
		send(lease.channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			sizeof message;
	pthread_mutex_unlock(&lease.lock);
	return sent;
}

int ckt_lease_join(int channel, bool unlimited, ckt_worker_lease ret_list[CKT_DEVICES_MAX],
	ckt_worker_lease_res *ret_res)
{
	u_int count = 0;
	if (!ckt_net_is_packet_socket(channel)) {
		close(channel);
		return -EINVAL;
	}
	pthread_mutex_lock(&lease.lock);
	leave();
	lease.channel = channel;
	if (!lease.joined)
		lease.unlimited = unlimited;
	lease.joined = true;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		if (lease.gpus[gpu].leased)
			ret_list[count++] = (ckt_worker_lease){
				.gpu = gpu, .leased_bytes = lease.gpus[gpu].leased};
	*ret_res = (ckt_worker_lease_res){.unlimited = lease.unlimited, .gpus = {count, ret_list}};
	pthread_cond_broadcast(&lease.joined_cond);
	pthread_mutex_unlock(&lease.lock);
	changed();
	return 0;
}

bool ckt_lease_is_joined(void)
{
	pthread_mutex_lock(&lease.lock);
	bool joined = lease.channel >= 0;
	pthread_mutex_unlock(&lease.lock);
	return joined;
}

void ckt_lease_recall(ckt_worker_lease ret_list[CKT_DEVICES_MAX], ckt_worker_lease_res *ret_res)
{
	u_int count = 0;
	pthread_mutex_lock(&lease.lock);
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++) {
		uint64_t had = lease.gpus[gpu].leased,
			 used = round_up(lease.gpus[gpu].used) + lease.gpus[gpu].reserved;
		if (lease.unlimited || used < had)
			lease.gpus[gpu].leased = used;
		if (had || used)
			ret_list[count++] = (ckt_worker_lease){.gpu = gpu,
				.leased_bytes = lease.gpus[gpu].leased,
				.given_bytes = used < had ? had - used : 0};
	}
	*ret_res = (ckt_worker_lease_res){.gpus = {count, ret_list}};
	lease.unlimited = false;
	pthread_mutex_unlock(&lease.lock);
}

bool ckt_lease_is_asking(void)
{
	return atomic_load(&lease.asking) != 0;
}

/* ---- Questions.  Precondition of all: ask_lock held, lock not. */

/* The channel under a descriptor of the caller's; -1: no server came in time. */
static int channel_get(int64_t deadline_ms, unsigned *ret_epoch)
{
	pthread_mutex_lock(&lease.lock);
	while (lease.channel < 0) {
		int64_t left = deadline_ms - ckt_net_now_ms();
		if (left <= 0)
			break;
		ckt_cond_wait_until(&lease.joined_cond, &lease.lock, ckt_now_ns() + left * 1000000);
	}
	int fd = lease.channel < 0 ? -1 : fcntl(lease.channel, F_DUPFD_CLOEXEC, 3);
	*ret_epoch = lease.epoch;
	pthread_mutex_unlock(&lease.lock);
	return fd;
}

/* An answer: what it grants counts, whichever question it is for, while the channel is the same. */
static void take_answer(const struct ckt_lease_message *answer, unsigned epoch)
{
	pthread_mutex_lock(&lease.lock);
	if (epoch == lease.epoch && answer->gpu < CKT_DEVICES_MAX)
		lease.gpus[answer->gpu].leased += answer->bytes;
	pthread_mutex_unlock(&lease.lock);
}

/* Until the question's answer.  0, -ETIMEDOUT, or -ECONNRESET: the server has ended. */
static int await_answer(int fd, unsigned epoch, int64_t deadline_ms, uint32_t number,
	struct ckt_lease_message *ret_answer)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = deadline_ms - ckt_net_now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		poll(&p, 1, (int)left);
		ssize_t n = recv(fd, ret_answer, sizeof *ret_answer, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n != sizeof *ret_answer || ret_answer->kind != CKT_LEASE_ANSWER)
			return -ECONNRESET;
		take_answer(ret_answer, epoch);
		if (ret_answer->number == number)
			return 0;
	}
}

/*
 * 0 with the answer, or -errno: no server answered in time.  wait: the question is of that one, which
 * learns its number before it may end.
 */
static int ask(struct ckt_lease_message *question, struct ckt_lease_wait *wait,
	struct ckt_lease_message *ret_answer)
{
	int64_t deadline = ckt_net_now_ms() + ckt_lease_answer_ms;
	for (;;) {
		unsigned epoch;
		int fd = channel_get(deadline, &epoch);
		if (fd < 0)
			return -ENOTCONN;
		question->kind = CKT_LEASE_ASK;
		question->number = ++lease.number;
		if (wait) {
			pthread_mutex_lock(&lease.lock);
			wait->number = question->number;
			wait->state = CKT_LEASE_ASKING;
			pthread_mutex_unlock(&lease.lock);
		}
		int result = send(fd, question, sizeof *question, MSG_NOSIGNAL) < 0
			? -ECONNRESET
			: await_answer(fd, epoch, deadline, question->number, ret_answer);
		close(fd);
		if (result != -ECONNRESET)
			return result;
		pthread_mutex_lock(&lease.lock);
		if (epoch == lease.epoch)
			leave();
		pthread_mutex_unlock(&lease.lock);
	}
}

/* ---- Memory */

/* NULL: this thread uses nothing reserved of that GPU.  Precondition: lock held. */
static struct ckt_lease_wait *used_of(unsigned gpu)
{
	bool uses = used_wait && used_wait->gpu == gpu && used_wait->state == CKT_LEASE_GRANTED;
	return uses ? used_wait : NULL;
}

/* What is reserved, and not for this thread.  Precondition: lock held. */
static uint64_t reserved_for_others(unsigned gpu)
{
	const struct ckt_lease_wait *wait = used_of(gpu);
	return lease.gpus[gpu].reserved - (wait ? wait->granted : 0);
}

/* Precondition: lock held. */
static bool fits(unsigned gpu, uint64_t bytes)
{
	return lease.unlimited ||
		round_up(lease.gpus[gpu].used + bytes) + reserved_for_others(gpu) <=
		lease.gpus[gpu].leased;
}

/*
 * What a thread takes of the bytes reserved for it is not reserved any more, or other threads would
 * miss it twice.  What it gives back meanwhile is again: it may take the same once more.
 * Precondition: lock held.
 */
static void set_used(unsigned gpu, uint64_t bytes)
{
	uint64_t before = round_up(lease.gpus[gpu].used), after = round_up(bytes);
	struct ckt_lease_wait *wait = used_of(gpu);
	lease.gpus[gpu].used = bytes;
	if (!wait)
		return;
	uint64_t granted = wait->granted + before;
	granted = granted > after ? granted - after : 0;
	lease.gpus[gpu].reserved = lease.gpus[gpu].reserved - wait->granted + granted;
	wait->granted = granted;
}

/* Counts them if they fit, or if forced.  Otherwise *ret_need: what is missing. */
static bool take_here(unsigned gpu, uint64_t bytes, bool forced, uint64_t *ret_need)
{
	pthread_mutex_lock(&lease.lock);
	bool good = forced || fits(gpu, bytes);
	if (good)
		set_used(gpu, lease.gpus[gpu].used + bytes);
	else
		*ret_need = round_up(lease.gpus[gpu].used + bytes) + reserved_for_others(gpu) -
			lease.gpus[gpu].leased;
	pthread_mutex_unlock(&lease.lock);
	return good;
}

static void note_refused(unsigned gpu, uint64_t bytes)
{
	pthread_mutex_lock(&lease.lock);
	refused = (struct ckt_lease_wait){
		.gpu = gpu, .bytes = bytes, .total = lease.gpus[gpu].used + bytes};
	pthread_mutex_unlock(&lease.lock);
}

static bool take_asking(unsigned gpu, uint64_t bytes, enum ckt_lease_how how)
{
	bool forced = how == CKT_LEASE_FORCED, follows = how == CKT_LEASE_FOLLOWED;
	uint64_t need = 0;
	struct ckt_lease_message answer = {.bytes = 1};
	/* What a recall took meanwhile is missing in the answer: then once more. */
	while (!take_here(gpu, bytes, false, &need)) {
		struct ckt_lease_message question = {.gpu = gpu,
			.flags = forced   ? CKT_LEASE_FORCE
				: follows ? CKT_LEASE_FOLLOW
					  : 0,
			.bytes = need,
			.want = follows ? need : need + STEP_BYTES};
		bool asked = !ask(&question, NULL, &answer);
		if (asked && (answer.bytes || (follows && answer.flags & CKT_LEASE_FOLLOW)))
			continue;
		if (asked && !forced && !follows && answer.flags & CKT_LEASE_MAY_WAIT)
			note_refused(gpu, bytes);
		return forced && take_here(gpu, bytes, true, &need);
	}
	return true;
}

bool ckt_lease_take(unsigned gpu, uint64_t bytes, enum ckt_lease_how how)
{
	uint64_t need;
	if (gpu >= CKT_DEVICES_MAX)
		return false;
	if (take_here(gpu, bytes, false, &need))
		return true;
	if (how == CKT_LEASE_HAD)
		return false;
	atomic_fetch_add(&lease.asking, 1);
	pthread_mutex_lock(&lease.ask_lock);
	bool good = take_asking(gpu, bytes, how);
	pthread_mutex_unlock(&lease.ask_lock);
	atomic_fetch_sub(&lease.asking, 1);
	return good;
}

void ckt_lease_give(unsigned gpu, uint64_t bytes)
{
	if (gpu >= CKT_DEVICES_MAX)
		return;
	pthread_mutex_lock(&lease.lock);
	set_used(gpu, lease.gpus[gpu].used - bytes);
	uint64_t more = unused(gpu);
	if (!lease.unlimited && (lease.pressed || lease.waits))
		give_back(gpu, more);
	else if (!lease.unlimited && more > 2 * STEP_BYTES)
		give_back(gpu, more - STEP_BYTES);
	pthread_mutex_unlock(&lease.lock);
}

void ckt_lease_give_spare(unsigned gpu)
{
	if (gpu >= CKT_DEVICES_MAX)
		return;
	pthread_mutex_lock(&lease.lock);
	uint64_t used = round_up(lease.gpus[gpu].used), leased = lease.gpus[gpu].leased;
	if (!lease.unlimited && lease.channel >= 0 && leased > used) {
		struct ckt_lease_message message = {
			.kind = CKT_LEASE_GIVE, .gpu = gpu, .bytes = leased - used};
		if (send(lease.channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
			lease.gpus[gpu].leased = used;
	}
	pthread_mutex_unlock(&lease.lock);
}

bool ckt_lease_info(unsigned gpu, uint64_t *ret_total, uint64_t *ret_free)
{
	struct ckt_lease_message question = {.gpu = gpu}, answer;
	pthread_mutex_lock(&lease.lock);
	bool unlimited = lease.unlimited;
	pthread_mutex_unlock(&lease.lock);
	if (unlimited || gpu >= CKT_DEVICES_MAX)
		return false;
	pthread_mutex_lock(&lease.ask_lock);
	int result = ask(&question, NULL, &answer);
	pthread_mutex_unlock(&lease.ask_lock);
	if (!result && answer.total == CKT_LEASE_NO_LIMIT)
		return false;
	pthread_mutex_lock(&lease.lock);
	uint64_t leased = lease.gpus[gpu].leased, more = unused(gpu);
	pthread_mutex_unlock(&lease.lock);
	/* Without a server: what nobody has to be asked for. */
	*ret_free = more + (result ? 0 : answer.left);
	*ret_total = result ? leased : answer.total;
	return true;
}

void ckt_lease_wish(unsigned gpu)
{
	struct ckt_lease_message question = {.gpu = gpu};
	struct ckt_lease_message answer;
	pthread_mutex_lock(&lease.ask_lock);
	ask(&question, NULL, &answer);
	pthread_mutex_unlock(&lease.ask_lock);
}

/* ---- Waits */

bool ckt_lease_refused(struct ckt_lease_wait *ret_wait)
{
	bool was = refused.bytes != 0;
	*ret_wait = refused;
	refused = (struct ckt_lease_wait){0};
	return was;
}

void ckt_lease_use_reserved(struct ckt_lease_wait *wait)
{
	used_wait = wait;
}

bool ckt_lease_uses_reserved(void)
{
	return used_wait != NULL;
}

/* Granted now.  Precondition: lock held. */
static void reserve(struct ckt_lease_wait *wait, uint64_t bytes)
{
	wait->state = CKT_LEASE_GRANTED;
	wait->granted = bytes;
	lease.gpus[wait->gpu].reserved += bytes;
}

static struct ckt_lease_wait **place_of(const struct ckt_lease_wait *wait)
{
	struct ckt_lease_wait **place = &lease.waits;
	while (*place && *place != wait)
		place = &(*place)->next;
	return place;
}

/* What it needs beside what is used, once nothing unused is left.  Precondition: lock held. */
static uint64_t enter(struct ckt_lease_wait *wait)
{
	uint64_t used = lease.gpus[wait->gpu].used, total = used + wait->bytes;
	if (wait->total > total)
		total = wait->total;
	wait->state = CKT_LEASE_ASKING;
	wait->granted = 0;
	if (!*place_of(wait)) {
		wait->next = lease.waits;
		lease.waits = wait;
	}
	give_back(wait->gpu, unused(wait->gpu));
	return round_up(total) - round_up(used);
}

/* Precondition: lock held. */
static void take_off(struct ckt_lease_wait *wait)
{
	struct ckt_lease_wait **place = place_of(wait);
	if (*place)
		*place = wait->next;
}

void ckt_lease_wait_begin(struct ckt_lease_wait *wait)
{
	struct ckt_lease_message answer;
	atomic_fetch_add(&lease.asking, 1);
	pthread_mutex_lock(&lease.ask_lock);
	pthread_mutex_lock(&lease.lock);
	uint64_t need = enter(wait);
	pthread_mutex_unlock(&lease.lock);
	struct ckt_lease_message question = {
		.gpu = wait->gpu, .flags = CKT_LEASE_WAIT, .bytes = need, .want = need};
	int result = need ? ask(&question, wait, &answer) : 0;
	pthread_mutex_lock(&lease.lock);
	if (!need)
		reserve(wait, 0);
	else if (result)
		wait->state = CKT_LEASE_NOT_ASKED;
	else if (answer.bytes)
		reserve(wait, answer.bytes);
	else if (wait->state == CKT_LEASE_ASKING)
		wait->state = answer.flags & CKT_LEASE_WAIT ? CKT_LEASE_WAITING : CKT_LEASE_REFUSED;
	pthread_mutex_unlock(&lease.lock);
	pthread_mutex_unlock(&lease.ask_lock);
	atomic_fetch_sub(&lease.asking, 1);
}

enum ckt_lease_wait_state ckt_lease_wait_state(const struct ckt_lease_wait *wait)
{
	pthread_mutex_lock(&lease.lock);
	enum ckt_lease_wait_state state = wait->state;
	pthread_mutex_unlock(&lease.lock);
	return state;
}

void ckt_lease_wait_end(struct ckt_lease_wait *wait, bool keep_place)
{
	pthread_mutex_lock(&lease.lock);
	take_off(wait);
	if (wait->state == CKT_LEASE_GRANTED)
		lease.gpus[wait->gpu].reserved -= wait->granted;
	if (wait->state == CKT_LEASE_GRANTED && (lease.pressed || lease.waits) && !lease.unlimited)
		give_back(wait->gpu, unused(wait->gpu));
	struct ckt_lease_message message = {.kind = CKT_LEASE_WITHDRAW,
		.number = wait->number,
		.gpu = wait->gpu,
		.flags = keep_place ? CKT_LEASE_KEEP_PLACE : 0};
	if (wait->state == CKT_LEASE_WAITING && lease.channel >= 0)
		send(lease.channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
	wait->state = CKT_LEASE_NOT_ASKED;
	wait->granted = 0;
	pthread_mutex_unlock(&lease.lock);
}

bool ckt_lease_waited(const ckt_worker_waited_args *args)
{
	if (args->gpu >= CKT_DEVICES_MAX || args->bytes % CKT_LEASE_GRANULE ||
		args->bytes > INT64_MAX / CKT_DEVICES_MAX)
		return false;
	pthread_mutex_lock(&lease.lock);
	lease.gpus[args->gpu].leased += args->bytes;
	struct ckt_lease_wait *wait = lease.waits;
	while (wait &&
		(wait->number != args->number || wait->gpu != args->gpu ||
			(wait->state != CKT_LEASE_WAITING && wait->state != CKT_LEASE_ASKING)))
		wait = wait->next;
	if (wait && args->bytes)
		reserve(wait, args->bytes);
	else if (wait)
		wait->state = CKT_LEASE_REFUSED;
	else if (!lease.unlimited)
		give_back(args->gpu, unused(args->gpu)); /* it was withdrawn meanwhile */
	pthread_mutex_unlock(&lease.lock);
	changed();
	return true;
}

void ckt_lease_press(bool on)
{
	pthread_mutex_lock(&lease.lock);
	lease.pressed = on;
	for (unsigned gpu = 0; on && !lease.unlimited && gpu < CKT_DEVICES_MAX; gpu++)
		give_back(gpu, unused(gpu));
	pthread_mutex_unlock(&lease.lock);
}

bool ckt_lease_is_pressed(void)
{
	return lease.pressed;
}

void ckt_lease_reset(void)
{
	pthread_mutex_lock(&lease.lock);
	leave();
	lease.pressed = false;
	lease.waits = NULL;
	refused = (struct ckt_lease_wait){0};
	lease.joined = false;
	lease.unlimited = true;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		lease.gpus[gpu].used = lease.gpus[gpu].leased = lease.gpus[gpu].reserved = 0;
	pthread_mutex_unlock(&lease.lock);
}
