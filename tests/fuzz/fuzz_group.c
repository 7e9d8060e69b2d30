/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the packets of groups of workers (rpc/group.h), as the server takes them
 * (server/daemon/session/group.c) and as a worker does (server/worker/session/group.c).
 *
 * One byte chooses the circumstances; then steps of STEP_BYTES each.  Other sessions say any packet
 * with any descriptor; the worker's own half speaks for the first session, or with a server that is
 * the input.  What the server passes on must go to a session of the same group that has the name,
 * and whoever asks gets either that or CKT_GROUP_NOBODY.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/server.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/session.h"
#include "server/worker/session/group.h"
#include "tests/fuzz/fuzz.h"

enum {
	SESSIONS = 4,
	NAMES = 300,
	RANKS = 4,
	STEP_BYTES = 8,
	STEPS_MAX = 200,
	ASKS_MAX = 64,
	CLAIMS = 70
};
/* Circumstances: the last session is restored, and so is the first; the server is the input. */
enum { LAST_IS_RESTORED = 1, FIRST_IS_RESTORED = 2, OTHER_CLAIMANT = 4, SERVER_IS_INPUT = 8 };
enum { SMALL_BUFFERS = 16 };
enum step {
	STEP_SAY,
	STEP_CLAIM,
	STEP_DROP,
	STEP_ASK,
	STEP_SERVE,
	STEP_JOIN,
	STEP_OPEN,
	STEP_CLOSE,
	STEP_READ,
	STEP_POOR,
	STEP_WAIT,
	STEPS
};
enum passed { PASS_NOTHING, PASS_PACKETS, PASS_STREAM, PASS_FILE, PASS_TWO, PASS_KINDS };

static struct ckt_server server;
static struct ckt_session sessions[SESSIONS];
static int channels[SESSIONS]; /* the workers' ends; -1 */
static bool claimed[SESSIONS][NAMES];
/* Of the worker's half. */
static int its_server = -1;
static unsigned char answers[NAMES]; /* by which function its claim is answered; 0: by none */
/* What asks wait for their answer: this end, and whether an offer of it came. */
static struct {
	int end;
	unsigned session;
	bool offered;
} asks[ASKS_MAX];
static unsigned ask_count;
static int open_error; /* of the next channel */

static struct ckt_group_name name_of(unsigned number)
{
	struct ckt_group_name name = {{(uint8_t)number, (uint8_t)(number >> 8), 7}};
	if (number % NAMES < SESSIONS)
		name = ckt_group_session(
			sessions[number % NAMES].id, sizeof sessions[number % NAMES].id);
	/* Four ranks of two communicators. */
	unsigned rank = number % NAMES - SESSIONS;
	if (number % NAMES > SESSIONS && rank <= RANKS) {
		memset(name.bytes, (int)rank & 1, sizeof name.bytes);
		memcpy(name.bytes, CKT_GROUP_RANK, CKT_GROUP_RANK_PREFIX);
		memcpy(name.bytes + CKT_GROUP_COMMUNICATOR, &rank, sizeof rank);
	}
	/* The server's own; there are no warm workers. */
	if (number % NAMES == SESSIONS)
		name = ckt_group_memory();
	return name;
}

static unsigned number_of(const struct ckt_group_name *name)
{
	unsigned number = 0;
	struct ckt_group_name other = name_of(0);
	while (number < NAMES && !ckt_group_same_name(&other, name))
		other = name_of(++number);
	return number;
}

/* ---- The server's surroundings */

/* The server's main program, which is not linked, has it. */
void ckt_server_session_gone(struct ckt_server *s)
{
	(void)s;
}

int __wrap_ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context);

int __wrap_ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context)
{
	(void)xdr_args, (void)args, (void)xdr_result, (void)result_size, (void)timeout_ms;
	if (proc == CKT_WORKER_OWNER_GONE) {
		/* Every other worker is an earlier one, which gets a packet. */
		fuzz_insist(pass_fd < 0, "a descriptor with an end");
		done(session, context, (session - sessions) % 2 ? -EOPNOTSUPP : 0, NULL);
		return 0;
	}
	fuzz_insist(proc == CKT_WORKER_GROUP && pass_fd >= 0, "another call");
	if (open_error) {
		close(pass_fd);
		done(session, context, open_error, NULL);
		return open_error == -EPIPE ? open_error : 0;
	}
	channels[session - sessions] = pass_fd;
	done(session, context, 0, NULL);
	return 0;
}

static void stop(struct ckt_timer *timer)
{
	(void)timer;
	server.loop.stop = true;
}

static void run_loop(void)
{
	struct pollfd ready = {.fd = server.loop.epoll_fd, .events = POLLIN};
	for (int i = 0; i < 64 && poll(&ready, 1, 0) > 0; i++) {
		struct ckt_timer timer = {.fire = stop};
		server.loop.stop = false;
		ckt_timer_set(&server.loop, &timer, 0);
		ckt_loop_run(&server.loop);
		ckt_timer_clear(&timer);
	}
}

static void join(void)
{
	int ends[2];
	fuzz_insist(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "no sockets");
	if (its_server >= 0)
		close(its_server);
	its_server = ends[0];
	ckt_group_join(ends[1]);
}

/* ---- What goes along with packets */

/* Two descriptors, the caller's; the second one, or both, may be -1. */
static void make_passed(enum passed kind, int ret_fds[2])
{
	int ends[2] = {-1, -1};
	ret_fds[0] = ret_fds[1] = -1;
	if (kind == PASS_FILE) {
		ret_fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	} else if (kind == PASS_STREAM) {
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
		ret_fds[0] = ends[0];
		close(ends[1]);
	} else if (kind != PASS_NOTHING) {
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
		ret_fds[0] = ends[0];
		if (kind == PASS_TWO)
			ret_fds[1] = dup(ends[0]);
		close(ends[1]);
	}
}

static bool send_packet(int channel, const struct ckt_group_message *packet, size_t size,
	const int *fds, unsigned fd_count)
{
	uint8_t bytes[2 * sizeof *packet] = {0};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} room = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	memcpy(bytes, packet, sizeof *packet);
	struct iovec part = {.iov_base = bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd_count) {
		room.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&room.header), fds, fd_count * sizeof(int));
		message.msg_control = &room;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

/* ---- The server's half */

/* By what the header says of groups, not by the function that the server calls. */
static bool may_meet(unsigned a, unsigned b)
{
	const struct ckt_session *one = &sessions[a], *other = &sessions[b];
	if (a == b)
		return true;
	if (one->phase != other->phase)
		return false;
	return one->phase == CKT_SESSION_STARTING ? one->claimant.owner == other->claimant.owner
						  : one->uid == other->uid;
}

static void take_offers(unsigned index)
{
	for (;;) {
		struct ckt_group_message packet;
		struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		union ckt_net_fd_room room;
		uint32_t serial;
		ckt_net_fd_expect(&message, &room);
		ssize_t n = channels[index] < 0
			? -1
			: recvmsg(channels[index], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n <= 0)
			return;
		int fd = ckt_net_fd_take(&message);
		unsigned number = number_of(&packet.name);
		if (n == sizeof packet && packet.kind == CKT_GROUP_GONE && fd < 0)
			continue;
		fuzz_insist(n == sizeof packet && packet.kind == CKT_GROUP_OFFER && fd >= 0,
			"what the server says is neither an offer nor an end");
		fuzz_insist(number == index || (number < NAMES && claimed[index][number]),
			"an offer for a name that the session has not");
		/* Whose it is stands in the socket. */
		if (recv(fd, &serial, sizeof serial, MSG_DONTWAIT) == sizeof serial &&
			serial < ask_count) {
			fuzz_insist(may_meet(asks[serial].session, index),
				"an offer to a session of another group");
			fuzz_insist(!asks[serial].offered, "a question is passed on twice");
			asks[serial].offered = true;
		}
		close(fd);
	}
}

/* Every question that the server has taken was passed on, or nobody has the name. */
static void check_asks(void)
{
	for (unsigned i = 0; i < ask_count; i++) {
		char byte = 0;
		ssize_t n = recv(asks[i].end, &byte, 1, MSG_DONTWAIT);
		fuzz_insist(n <= 0 || byte == CKT_GROUP_NOBODY, "the server says something else");
		fuzz_insist(n <= 0 || !asks[i].offered, "passed on, and nobody");
		close(asks[i].end);
	}
	ask_count = 0;
}

static void open_channel(unsigned index, int error, bool input_is_server)
{
	int small = 1;
	open_error = error;
	if (!sessions[index].group.open) {
		/* Of a channel that the server has closed. */
		take_offers(index);
		memset(claimed[index], 0, sizeof claimed[index]);
	}
	bool was_open = sessions[index].group.open;
	ckt_group_open(&sessions[index]);
	if (was_open || error || index || input_is_server)
		return;
	/* The worker's half speaks for this one: what it claims is told at once. */
	for (unsigned i = 0; i < NAMES; i++)
		claimed[0][i] = answers[i] != 0;
	setsockopt(sessions[0].group.channel.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	ckt_group_join(channels[0]);
	channels[0] = -1;
}

/* Asks as a worker does, with a number in the socket that tells whose it is. */
static int make_question(unsigned index)
{
	int ends[2];
	uint32_t serial = ask_count;
	if (ask_count == ASKS_MAX || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	(void)!send(ends[0], &serial, sizeof serial, MSG_DONTWAIT);
	asks[ask_count].session = index;
	asks[ask_count].offered = false;
	asks[ask_count++].end = ends[0];
	return ends[1];
}

static void say(const uint8_t *step, unsigned number)
{
	unsigned index = step[1] % SESSIONS;
	enum passed kind = step[4] % PASS_KINDS;
	struct ckt_group_message packet = {
		.kind = step[2], .nth = step[3], .name = name_of(number)};
	size_t size = step[7] ? step[7] % (2 * sizeof packet) : sizeof packet;
	int fds[2];
	make_passed(kind, fds);
	if (kind == PASS_PACKETS && packet.kind == CKT_GROUP_ASK) {
		close(fds[0]);
		fds[0] = make_question(index);
	}
	unsigned count = fds[0] < 0 ? 0 : kind == PASS_TWO ? 2 : 1;
	bool is_good = size == sizeof packet && packet.kind >= CKT_GROUP_CLAIM &&
		packet.kind <= CKT_GROUP_ASK && (packet.kind == CKT_GROUP_ASK) == (count > 0);
	if (packet.kind == CKT_GROUP_DROP && !(step[1] & 0x40)) {
		/* Of the time when it had the name. */
		run_loop();
		take_offers(index);
	}
	bool was_open = sessions[index].group.open && channels[index] >= 0;
	if (channels[index] >= 0)
		was_open &= send_packet(channels[index], &packet, size, fds, count);
	if (was_open && is_good && packet.kind == CKT_GROUP_CLAIM)
		claimed[index][number] = true;
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	/* Several may come at once. */
	if (step[1] & 0x40)
		return;
	run_loop();
	if (was_open && is_good && packet.kind == CKT_GROUP_DROP)
		claimed[index][number] = false;
	if (was_open)
		fuzz_insist(is_good || !sessions[index].group.open, "a malformed packet is taken");
}

/* ---- The worker's half */

static unsigned answered_by, answered_name;

static void note(const struct ckt_group_name *name, int connection, unsigned by)
{
	int type = 0;
	socklen_t size = sizeof type;
	getsockopt(connection, SOL_SOCKET, SO_TYPE, &type, &size);
	fuzz_insist(type == SOCK_SEQPACKET, "a question over what is no socket for packets");
	answered_by = by;
	answered_name = number_of(name);
}

static void answer_any(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)worker;
	note(name, connection, 1);
}

static void answer_one(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)worker;
	note(name, connection, 2);
}

static void answer_two(struct ckt_worker *worker, const struct ckt_group_name *name, int connection)
{
	(void)worker;
	note(name, connection, 3);
}

static void claim(unsigned number, unsigned char how)
{
	static const ckt_group_answer functions[] = {answer_any, answer_one, answer_two, NULL};
	struct ckt_group_name name = name_of(number);
	int result = ckt_group_claim(&name, functions[how & 3]);
	if (result == -ENOMEM || result == -ENOSPC)
		return;
	answers[number] = how & 3 ? 1 + (how & 3) : 1;
	claimed[0][number] = true;
}

static void drop(unsigned number)
{
	struct ckt_group_name name = name_of(number);
	ckt_group_drop(&name);
	answers[number] = 0;
}

static bool was_told_gone;

static void note_gone(struct ckt_worker *worker, const struct ckt_group_name *name)
{
	(void)worker, (void)name;
	was_told_gone = true;
}

static void serve(void)
{
	answered_by = 0;
	was_told_gone = false;
	ckt_group_serve(NULL, answer_any, note_gone);
	fuzz_insist(!answered_by || !was_told_gone, "one packet is a question and an end");
	/* A claim without an answer of its own, and no claim: the caller's answer. */
	if (answered_by && answered_name < NAMES) {
		unsigned char by = answers[answered_name];
		fuzz_insist(answered_by == (by == 2 || by == 3 ? by : 1), "another's answer");
	}
}

static void ask(unsigned number, unsigned nth)
{
	struct ckt_group_name name = name_of(number);
	int connection = nth & 1 ? ckt_group_ask_now(&name, nth) : ckt_group_ask(&name, nth);
	fuzz_insist(connection >= 0 || connection == -ENOTCONN, "neither a connection nor none");
	run_loop();
	if (connection >= 0)
		close(connection);
}

/* The server of the worker's half says something; what the worker told it is checked. */
static void play_server(const uint8_t *step, unsigned number)
{
	struct ckt_group_message packet = {.kind = step[2] % 6, .name = name_of(number)}, told;
	enum passed kind = step[4] % PASS_KINDS;
	size_t size = step[7] ? step[7] % (2 * sizeof packet) : sizeof packet;
	int fds[2];
	if (its_server < 0)
		return;
	while (recv(its_server, &told, sizeof told, MSG_DONTWAIT) == sizeof told)
		fuzz_insist(told.kind >= CKT_GROUP_CLAIM && told.kind <= CKT_GROUP_ASK &&
				number_of(&told.name) < NAMES,
			"the worker tells something else");
	make_passed(kind, fds);
	send_packet(its_server, &packet, size, fds, fds[0] < 0 ? 0 : kind == PASS_TWO ? 2 : 1);
	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- Steps */

static void join_what_is_none(enum passed kind)
{
	int fds[2];
	make_passed(kind == PASS_STREAM ? PASS_STREAM : PASS_FILE, fds);
	fuzz_insist(ckt_group_join(fds[0]) == -EINVAL, "a channel that is none");
}

static void close_channel(unsigned index, uint8_t how, bool input_is_server)
{
	if (input_is_server && index == 0 && its_server >= 0) {
		close(its_server);
		its_server = -1;
	}
	if (how & 0x80) {
		ckt_group_close(&sessions[index]);
	} else if (channels[index] >= 0) {
		close(channels[index]);
		channels[index] = -1;
	}
	run_loop();
	if (channels[index] >= 0 && !sessions[index].group.open) {
		close(channels[index]);
		channels[index] = -1;
	}
}

static void do_step(const uint8_t *step, bool input_is_server)
{
	static const int errors[] = {0, 0, 0, 0, 0, 0, -ETIMEDOUT, -EPIPE};
	unsigned index = step[1] % SESSIONS, number = ((unsigned)step[5] << 8 | step[6]) % NAMES;
	switch (step[0] % STEPS) {
	case STEP_SAY:
		if (input_is_server && index == 0)
			play_server(step, number);
		else
			say(step, number);
		break;
	case STEP_CLAIM:
		for (unsigned i = 0; i <= (step[4] & 0x80 ? CLAIMS : 0); i++)
			claim((number + i) % NAMES, step[3]);
		break;
	case STEP_DROP:
		drop(number);
		run_loop();
		/* It was told, unless the server was away, or busy. */
		break;
	case STEP_ASK:
		ask(number, step[3] % 4);
		break;
	case STEP_SERVE:
		serve();
		break;
	case STEP_JOIN:
		if (step[4] % PASS_KINDS > PASS_PACKETS)
			join_what_is_none(step[4] % PASS_KINDS);
		else if (input_is_server)
			join();
		break;
	case STEP_OPEN:
		open_channel(index, errors[step[4] % 8], input_is_server);
		break;
	case STEP_CLOSE:
		close_channel(index, step[1], input_is_server);
		break;
	case STEP_READ:
		take_offers(index);
		break;
	case STEP_POOR:
		fuzz_fail_allocation(step[4] % 4);
		break;
	default:
		ckt_group_away_ms = step[4] % 64 == 63 ? 1 : 0;
	}
}

static void begin(uint8_t how)
{
	static const uint32_t uids[SESSIONS] = {1000, 1000, 1001, 1000};
	int small = 1;
	memset(claimed, 0, sizeof claimed);
	for (unsigned i = 0; i < SESSIONS; i++) {
		sessions[i].uid = uids[i];
		sessions[i].phase = CKT_SESSION_LIVE;
		sessions[i].restore = false;
		sessions[i].serial = i + 1;
		sessions[i].group = (struct ckt_group_member){.channel = {.fd = -1}};
		sessions[i].claimant.owner = i == 3 && how & OTHER_CLAIMANT ? 1001 : 1000;
		sessions[i].next = i + 1 < SESSIONS ? &sessions[i + 1] : NULL;
		channels[i] = -1;
	}
	for (unsigned i = 0; i < SESSIONS; i += SESSIONS - 1)
		if (how & (i ? LAST_IS_RESTORED : FIRST_IS_RESTORED)) {
			sessions[i].phase = CKT_SESSION_STARTING;
			sessions[i].restore = true;
			sessions[i].uid = CKT_UID_UNKNOWN;
		}
	for (unsigned i = 0; i < SESSIONS; i++) {
		open_channel(i, 0, how & SERVER_IS_INPUT);
		if (how & SMALL_BUFFERS)
			setsockopt(sessions[i].group.channel.fd, SOL_SOCKET, SO_SNDBUF, &small,
				sizeof small);
	}
	if (how & SERVER_IS_INPUT)
		join();
}

static void end(void)
{
	fuzz_fail_allocation(0);
	ckt_group_away_ms = 0;
	for (unsigned i = 0; i < SESSIONS; i++) {
		run_loop();
		take_offers(i);
		ckt_group_close(&sessions[i]);
		fuzz_insist(sessions[i].group.partner_count < SESSIONS,
			"more partners than there are sessions");
		free(sessions[i].group.partners);
		if (channels[i] >= 0)
			close(channels[i]);
	}
	check_asks();
	if (its_server >= 0)
		close(its_server);
	its_server = -1;
	/* What is on its way, and then the end of the channel. */
	for (unsigned i = 0; i < 64; i++)
		serve();
	for (unsigned i = 0; i < NAMES; i++)
		if (answers[i])
			drop(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	bool input_is_server = data[0] & SERVER_IS_INPUT;
	begin(data[0]);
	data++, size--;
	for (unsigned n = 0; n < STEPS_MAX && size >= STEP_BYTES; n++) {
		do_step(data, input_is_server);
		data += STEP_BYTES, size -= STEP_BYTES;
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		fuzz_insist(!ckt_group_has_ranks(&sessions[i]) || sessions[i].group.claim_count,
			"a rank that was not claimed");
	end();
	return 0;
}

/* ---- Steps that make sense */

static void put_step(uint8_t *to, unsigned *seed)
{
	static const uint8_t often[] = {STEP_SAY, STEP_SAY, STEP_SAY, STEP_SAY, STEP_CLAIM,
		STEP_ASK, STEP_SERVE, STEP_READ};
	unsigned number = fuzz_random(seed) % (fuzz_random(seed) % 4 ? 2 * SESSIONS : NAMES);
	to[0] = fuzz_random(seed) % 4 ? often[fuzz_random(seed) % sizeof often]
				      : (uint8_t)(fuzz_random(seed) % STEPS);
	to[1] = (uint8_t)(fuzz_random(seed) % SESSIONS);
	if (fuzz_random(seed) % 8 == 0)
		to[1] |= (uint8_t)(0x40u << fuzz_random(seed) % 2);
	to[2] = (uint8_t)(1 + fuzz_random(seed) % 4);
	to[3] = fuzz_random(seed) % 4 ? 0 : (uint8_t)fuzz_random(seed);
	to[4] = to[2] == CKT_GROUP_ASK || to[2] == CKT_GROUP_OFFER ? PASS_PACKETS : PASS_NOTHING;
	if (to[0] != STEP_SAY || fuzz_random(seed) % 8 == 0)
		to[4] = (uint8_t)fuzz_random(seed);
	to[5] = (uint8_t)(number >> 8);
	to[6] = (uint8_t)number;
	to[7] = fuzz_random(seed) % 16 ? 0 : (uint8_t)fuzz_random(seed);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (!size || fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t count = (size - 1) / STEP_BYTES, at = fuzz_random(&seed) % (count + 1);
	uint8_t *place = data + 1 + at * STEP_BYTES;
	size_t behind = (count - at) * STEP_BYTES;
	switch (fuzz_random(&seed) % 4) {
	case 0:
		if (at < count) {
			place[fuzz_random(&seed) % STEP_BYTES] = (uint8_t)fuzz_number(0, &seed);
			break;
		}
		data[0] = (uint8_t)fuzz_random(&seed);
		break;
	case 1:
		if (at < count) {
			memmove(place, place + STEP_BYTES, behind - STEP_BYTES);
			count--;
		}
		break;
	default:
		if (1 + (count + 1) * STEP_BYTES > max_size)
			break;
		memmove(place + STEP_BYTES, place, behind);
		put_step(place, &seed);
		count++;
	}
	return 1 + count * STEP_BYTES;
}

static void write_seeds(const char *directory)
{
	for (unsigned number = 0; number < 32; number++) {
		uint8_t seed[1 + 64 * STEP_BYTES] = {(uint8_t)number};
		unsigned random = number + 1;
		char name[16];
		for (unsigned i = 0; i < 64; i++)
			put_step(seed + 1 + (size_t)i * STEP_BYTES, &random);
		snprintf(name, sizeof name, "group-%u", number);
		fuzz_write_seed(directory, name, seed, sizeof seed);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const ids[SESSIONS] = {
		"0123456789ab", "0123456789cd", "0123456789ef", "abcdef012345"};
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	struct ckt_group_name name;
	(void)argc, (void)argv;
	if (directory) {
		write_seeds(directory);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_ERROR, NULL);
	fuzz_insist(!ckt_loop_init(&server.loop) && ckt_group_init() >= 0, "no loop");
	server.sessions = sessions;
	for (unsigned i = 0; i < SESSIONS; i++) {
		sessions[i].server = &server;
		snprintf(sessions[i].id, sizeof sessions[i].id, "%s", ids[i]);
	}
	name = name_of(1);
	fuzz_insist(!ckt_group_joined() && ckt_group_ask(&name, 0) == -ENOTCONN, "no channel yet");
	ckt_group_away_ms = 0;
	return 0;
}
