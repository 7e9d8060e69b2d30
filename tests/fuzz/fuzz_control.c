/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: connections to the server, from their hello to the calls of cricketctl
 * (server/daemon/peer), with sessions whose workers answer what the input says.
 *
 * Four bytes choose the circumstances; then steps, each one byte for what it does, one for how, a
 * two-byte length and that many bytes.  A step is what a peer, a worker or the clock does.  Calls to
 * workers end here (-Wl,--wrap), no process is started and no signal sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/greeting.h"
#include "rpc/record.h"
#include "rpc/session_key.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/events.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_certificate.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/server.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"
#include "tests/fuzz/control_steps.h"

static struct ckt_server server;
static struct ckt_tokens tokens;
static struct ckt_token single;
static struct ckt_session_key key;
static char directory[64] = "/dev/shm/ckt-fuzz-XXXXXX";
static int image_dir = -1;

/* ---- What the server would do to others */

struct request {
	struct ckt_session *session;
	ckt_request_done done;
	void *context;
	xdrproc_t xdr;
	size_t size;
};
static struct request requests[REQUESTS_MAX];
static unsigned request_count;

int __wrap_ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context);
int __wrap_ckt_session_create(struct ckt_server *of, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size);
pid_t __wrap_fork(void);
int __wrap_ckt_tls_process_take(struct ckt_server *of, int tcp_fd, int *ret_fd);
int __wrap_ckt_automatic_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX]);
int __wrap_kill(pid_t pid, int signal);
void ckt_server_session_gone(struct ckt_server *s);

int __wrap_ckt_session_call(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, int timeout_ms,
	ckt_request_done done, void *context)
{
	uint8_t *data = NULL;
	size_t size = 0;
	(void)timeout_ms;
	int result = request_count == REQUESTS_MAX
		? -ETIMEDOUT
		: ckt_net_encode_call(1, CRICKET_WORKER_PROG, proc, xdr_args, args, &data, &size);
	free(data);
	if (pass_fd >= 0)
		close(pass_fd);
	if (!result)
		requests[request_count++] =
			(struct request){session, done, context, xdr_result, result_size};
	return result;
}

/* What the images on the disk would say, the client's process says. */
int __wrap_ckt_automatic_resume(
	struct ckt_peer *peer, struct ckt_session **ret_session, char ret_message[CKT_MESSAGE_MAX])
{
	static const int errors[] = {-ENOENT, -ENOENT, -EACCES, -EPERM, -EIO};
	unsigned choice = peer->hello.pid % 8;
	for (*ret_session = server.sessions; *ret_session; *ret_session = (*ret_session)->next)
		if (choice > 4 && (*ret_session)->phase == CKT_SESSION_STARTING)
			return 0;
	snprintf(ret_message, CKT_MESSAGE_MAX, "no images");
	return choice > 4 ? -ENOENT : errors[choice];
}

/* ---- Sessions that sleep: no image and no timer, only what is listed of them */

static struct ckt_automatic_chain chains[SESSIONS];
static struct ckt_sleeper asleep[SESSIONS], *first_asleep;

const struct ckt_sleeper *__wrap_ckt_sleep_first(void);
void __wrap_ckt_sleep_end(struct ckt_sleeper *sleeper, const char *why);
int __wrap_ckt_sleep_keep(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX]);

const struct ckt_sleeper *__wrap_ckt_sleep_first(void)
{
	return first_asleep;
}

void __wrap_ckt_sleep_end(struct ckt_sleeper *sleeper, const char *why)
{
	(void)why;
	for (struct ckt_sleeper **at = &first_asleep; *at; at = &(*at)->next)
		if (*at == sleeper) {
			*at = sleeper->next;
			return;
		}
	fuzz_insist(false, "it does not sleep");
}

int __wrap_ckt_sleep_keep(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX])
{
	static const int errors[] = {-ENOENT, -EACCES, -ENOMEM};
	snprintf(ret_message, CKT_MESSAGE_MAX, "not now");
	return errors[peer->hello.pid % 3];
}

/* By id, as control_ids are. */
static void fall_asleep(unsigned i, uint32_t owner)
{
	struct ckt_sleeper **at = &first_asleep;
	snprintf(chains[i].id, sizeof chains[i].id, "%s", control_ids[i]);
	asleep[i] = (struct ckt_sleeper){.chain = &chains[i],
		.owner = owner,
		.since = 1000,
		.program = "sleeps",
		.host = "there",
		.gpu = -1};
	while (*at && strcmp((*at)->chain->id, control_ids[i]) < 0)
		at = &(*at)->next;
	asleep[i].next = *at;
	*at = &asleep[i];
}

/* No process has a key here. */
int __wrap_ckt_tls_process_take(struct ckt_server *of, int tcp_fd, int *ret_fd)
{
	(void)of, (void)tcp_fd, (void)ret_fd;
	return -EAGAIN;
}

pid_t __wrap_fork(void)
{
	errno = EAGAIN;
	return -1;
}

int __wrap_kill(pid_t pid, int signal)
{
	(void)pid, (void)signal;
	errno = ESRCH;
	return -1;
}

void ckt_server_session_gone(struct ckt_server *s)
{
	ckt_peer_session_gone(s);
}

/* Ends the request at that place, with what the bytes decode to, or with the error. */
static void end_request(unsigned at, int error, const uint8_t *bytes, size_t size)
{
	struct request request = requests[at];
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	memmove(&requests[at], &requests[at + 1], (--request_count - at) * sizeof request);
	/* The server has that memory before it asks. */
	static max_align_t room[256];
	void *result = request.size ? memset(room, 0, sizeof room) : NULL;
	fuzz_insist(request.size <= sizeof room, "a large result");
	if (!error && result)
		error = ckt_net_decode(&c, request.xdr, result);
	request.done(request.session, request.context, error, error ? NULL : result);
	if (result && !error)
		xdr_free(request.xdr, result);
}

/* ---- Sessions */

static void new_session(const char *id, uint32_t owner, bool live)
{
	struct ckt_session *session = calloc(1, sizeof *session), **place = &server.sessions;
	fuzz_insist(session, "no memory");
	*session = (struct ckt_session){.server = &server,
		.serial = ++server.session_serial,
		.phase = live ? CKT_SESSION_LIVE : CKT_SESSION_STARTING,
		.pid = -1,
		.uid = owner,
		.gpu = -1,
		.pidfd.fd = -1,
		.status = {.program_name = strdup("program"),
			.client = strdup("there"),
			.note = strdup(""),
			.session = strdup(id),
			.state = CKT_STATE_RUNNING}};
	snprintf(session->id, sizeof session->id, "%s", id);
	for (int i = 0; i < CKT_LINKS; i++)
		session->links[i].stream.source.fd = -1;
	while (*place && strcmp((*place)->id, id) < 0)
		place = &(*place)->next;
	session->next = *place;
	*place = session;
	server.session_count++;
}

static void tell(struct ckt_wait **list, struct ckt_session *session, int error)
{
	while (*list) {
		struct ckt_wait *wait = *list;
		*list = wait->next;
		wait->call(session, wait->context, error, error ? "the worker ended" : "");
		free(wait);
	}
}

/* As session.c does when a worker has ended. */
static void end_session(struct ckt_session *session)
{
	struct ckt_session **place = &server.sessions;
	while (*place != session)
		place = &(*place)->next;
	*place = session->next;
	server.session_count--;
	ckt_timer_clear(&session->timer);
	for (unsigned at = 0; at < request_count;)
		if (requests[at].session == session)
			end_request(at, -ECONNRESET, (const uint8_t *)"", 0);
		else
			at++;
	tell(&session->on_started, session, -EIO);
	tell(&session->on_gone, session, 0);
	ckt_daemon_event(session, CKT_EVENT_ENDED, "exit code 0");
	ckt_timer_clear(&session->timer);
	ckt_timer_clear(&session->pause_timer);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&session->status);
	free(session->job_hold);
	free(session);
	ckt_server_session_gone(&server);
}

static struct ckt_session *session_at(unsigned index)
{
	struct ckt_session *session = server.sessions;
	while (session && index-- % SESSIONS)
		session = session->next;
	return session;
}

int __wrap_ckt_session_create(struct ckt_server *of, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	static const int errors[] = {-ENODEV, -EINVAL, -EIO};
	unsigned full = of->session_count;
	/* As many as the rest of the input may end. */
	if (full >= 2 * SESSIONS || (spec->hello && spec->hello->pid % 8 > 4)) {
		snprintf(ret_message, message_size, "no worker could be started");
		return errors[full % 3];
	}
	char id[CKT_SESSION_ID_SIZE + 1];
	fuzz_fail_allocation(0);
	snprintf(id, sizeof id, "%012x", (unsigned)of->session_serial + 1);
	new_session(id, spec->uid, false);
	*ret_session = ckt_session_find(of, id);
	(*ret_session)->restore = !spec->hello;
	(*ret_session)->claim_refused = !spec->hello && spec->gpu == 1;
	return 0;
}

/* ---- Peers */

static int peers[PEERS] = {-1, -1};

static void stop(struct ckt_timer *timer)
{
	(void)timer;
	server.loop.stop = true;
}

static void run_loop(void)
{
	struct pollfd ready = {.fd = server.loop.epoll_fd, .events = POLLIN};
	for (int i = 0; i < 16 && poll(&ready, 1, 0) > 0; i++) {
		struct ckt_timer timer = {.fire = stop};
		server.loop.stop = false;
		ckt_timer_set(&server.loop, &timer, 0);
		ckt_loop_run(&server.loop);
		ckt_timer_clear(&timer);
	}
}

static void read_all(int fd)
{
	uint8_t bytes[4096];
	while (fd >= 0 && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

/* Of how the circumstances are. */
enum { DRAINS = 8, CERTIFIED = 16, WITH_TLS = 32 };
static bool certified;
static struct ckt_certificate_holder alice = {.entry = {.name = "alice"}, .owner = OWNER_ONE};

static struct ckt_peer *last_peer(void);

static void connect_peer(unsigned which, uint8_t how)
{
	static const uint32_t uids[] = {OWNER_ONE, 0, OWNER_TWO, CKT_UID_UNKNOWN};
	int fds[2];
	struct ckt_auth_peer who = {.text = "somewhere", .address = {[15] = 1}};
	who.kind = (how & 3) == 3 ? CKT_PEER_REMOTE
		: (how & 3) == 2  ? CKT_PEER_LOOPBACK
				  : CKT_PEER_UNIX;
	who.uid = who.kind == CKT_PEER_UNIX ? uids[how >> 2 & 3] : CKT_UID_UNKNOWN;
	if (peers[which] >= 0)
		return;
	fuzz_insist(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "no sockets");
	peers[which] = fds[0];
	/* As the kernel says who it is: this process, which may be a worker's. */
	if (how % 16 == 15)
		ckt_peer_accept(&server, fds[1]);
	else
		ckt_peer_accept_as(&server, fds[1], &who);
	/* As after a handshake: what is no certificate, or alice's. */
	if (certified && last_peer() && who.kind == CKT_PEER_REMOTE) {
		last_peer()->holder = &alice;
		alice.uses++;
	} else if (certified && last_peer()) {
		ckt_peer_certificate_take(last_peer(), "no certificate", 14);
	}
}

/* The server's side of the youngest peer; NULL: none. */
static struct ckt_peer *last_peer(void)
{
	return server.peers_last;
}

static void say(int fd, const uint8_t *data, size_t size, uint8_t how)
{
	uint8_t bytes[CKT_MARK_SIZE + BODY_MAX + CKT_HELLO_HEAD_MAX];
	memcpy(ckt_mark_put(bytes, size), data, size);
	struct iovec iov = {bytes, CKT_MARK_SIZE + size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	int pair[2], pass = -1;
	/* A file broker, a directory, or memory. */
	if (how % 4 == 1 && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		close(pair[1]);
		pass = pair[0];
	} else if (how % 4 == 2) {
		pass = dup(image_dir);
	} else if (how % 4 == 3) {
		pass = memfd_create("fuzz", MFD_CLOEXEC);
	}
	if (pass >= 0)
		ckt_net_fd_put(&message, &room, pass);
	(void)!sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (pass >= 0)
		close(pass);
}

/* Of the body of a hello: a secret that is the key's. */
static size_t use_key(uint8_t *body, size_t size, size_t room)
{
	ckt_hello_args args = {0};
	struct ckt_cursor c = {.p = body, .end = body + size};
	XDR xdr;
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &args))
		return size;
	ckt_session_key_secret(key.public_key, (uint8_t *)args.secret);
	xdrmem_create(&xdr, (char *)body, (u_int)room, XDR_ENCODE);
	if (xdr_ckt_hello_args(&xdr, &args))
		size = xdr_getpos(&xdr);
	xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&args);
	return size;
}

static void step_hello(unsigned which, uint8_t how, const uint8_t *data, size_t size)
{
	static const char *const texts[PROOFS] = {[PROVE_HMAC] = "the single token",
		[PROVE_WRONG] = "another token",
		[PROVE_USER] = "alice's token",
		[PROVE_ADMIN] = "root's token",
		[PROVE_OLD] = "an old token"};
	static uint8_t body[BODY_MAX + 4], record[BODY_MAX + CKT_HELLO_HEAD_MAX];
	uint32_t flavours[] = {
		CKT_AUTH_CRICKET_TOKEN, CKT_AUTH_CRICKET_NAMED, CKT_AUTH_CRICKET_PROOF};
	unsigned proof = how % PROOFS;
	ckt_greeting greeting = {.flavours = {3, flavours}};
	struct ckt_token token = {.size_bytes = texts[proof] ? strlen(texts[proof]) : 0};
	struct ckt_credential credential = {0};
	connect_peer(which, how >> 4);
	run_loop();
	memcpy(body, data, size);
	if (proof == PROVE_KEY)
		size = use_key(body, size, sizeof body - 4);
	if (last_peer())
		memcpy(greeting.nonce, last_peer()->nonce, sizeof greeting.nonce);
	const struct ckt_challenge challenge = {(const uint8_t *)greeting.nonce, body, size};
	if (texts[proof])
		memcpy(token.bytes, texts[proof], token.size_bytes);
	if (proof == PROVE_HMAC)
		greeting.flavours.flavours_len = 1;
	if (proof == PROVE_KEY)
		ckt_session_key_prove(&key, &challenge, &credential);
	uint8_t *end = ckt_hello_put(
		record, 7, &greeting, texts[proof] ? &token : NULL, &credential, &challenge);
	say(peers[which], record, (size_t)(end - record), how >> 3);
}

static void step_call(unsigned which, uint8_t how, const uint8_t *data, size_t size)
{
	static uint8_t record[BODY_MAX + CKT_CALL_HEADER_SIZE];
	if (!size || peers[which] < 0)
		return;
	uint8_t *p = ckt_call_header_put(record,
		&(struct ckt_call_header){.xid = 9,
			.prog = CRICKET_CONTROL_PROG + (how >> 7),
			.vers = CRICKET_CONTROL_VERS,
			.proc = data[0]});
	memcpy(p, data + 1, size - 1);
	say(peers[which], record, (size_t)(p - record) + size - 1, how);
}

/* ---- Steps */

/* To the first request that wants such an answer; what is no answer, to the first one. */
static void answer(uint8_t kind, const uint8_t *bytes, size_t size)
{
	unsigned at = 0;
	if (kind < control_answer_count)
		while (at < request_count && requests[at].xdr != control_answers[kind].xdr)
			at++;
	if (at < request_count)
		end_request(at, 0, bytes, size);
}

static void late(void)
{
	struct ckt_peer *peer = last_peer();
	if (peer && peer->timer.link) {
		ckt_timer_clear(&peer->timer);
		peer->timer.fire(&peer->timer);
	}
}

static void live(struct ckt_session *session)
{
	if (!session || session->phase != CKT_SESSION_STARTING)
		return;
	session->phase = CKT_SESSION_LIVE;
	tell(&session->on_started, session, 0);
}

static void hang_up(unsigned which)
{
	if (peers[which] >= 0)
		close(peers[which]);
	peers[which] = -1;
}

static void do_step(uint8_t step, uint8_t how, const uint8_t *data, size_t size)
{
	unsigned which = step / 0x80, at = request_count ? how % request_count : 0;
	switch ((step & 0x7f) % STEPS) {
	case STEP_HELLO:
		step_hello(which, how, data, size);
		break;
	case STEP_CALL:
		step_call(which, how, data, size);
		break;
	case STEP_ANSWER:
		if (size)
			answer(data[0], data + 1, size - 1);
		break;
	case STEP_RAW:
		connect_peer(which, how);
		if (size)
			say(peers[which], data, size, 0);
		break;
	case STEP_FAIL:
		if (request_count)
			end_request(
				at, how & 0x80 ? -ETIMEDOUT : -ECONNRESET, (const uint8_t *)"", 0);
		break;
	case STEP_GONE:
		if (session_at(how))
			end_session(session_at(how));
		break;
	case STEP_LIVE:
		live(session_at(how));
		break;
	case STEP_LATE:
		late();
		break;
	case STEP_HANG_UP:
		hang_up(which);
		break;
	case STEP_READ:
		read_all(peers[which]);
		break;
	default:
		fuzz_fail_allocation(how % 16);
	}
}

/* ---- An input */

static void begin(uint8_t flags, uint8_t owners, uint8_t phases)
{
	static const uint32_t uids[] = {OWNER_ONE, OWNER_TWO, 0, CKT_UID_UNKNOWN};
	server.stopping = flags & STOPPING;
	server.options.insecure = flags & INSECURE;
	server.options.max_sessions = flags & FULL ? SESSIONS : 0;
	server.token = (struct ckt_token){0};
	server.image_dir_fd = flags & ON_DISK ? image_dir : -1;
	if (flags & WITH_TOKENS) {
		server.token = single;
		server.tokens = tokens;
	}
	first_asleep = NULL;
	for (unsigned i = 0; i < SESSIONS; i++)
		if (phases >> i & 1)
			new_session(control_ids[i], uids[owners >> 2 * i & 3],
				!(phases >> (4 + i) & 1));
		else if (phases >> (4 + i) & 1)
			fall_asleep(i, uids[owners >> 2 * i & 3]);
	if (owners >> 7 && server.sessions)
		server.sessions->pid = getsid(0);
	if (owners >> 6 == 3 && server.sessions)
		server.sessions->sleep.falls = true;
	for (unsigned i = 0; i < SESSIONS && flags & MARKED; i++)
		ckt_session_mark_write(&server, control_ids[i],
			i & 1 ? CKT_MARK_MOVED : CKT_MARK_PARKED, uids[owners >> 2 * i & 3], i & 1,
			"there:7350");
}

/* That are open: of pipes the sanitizers open some when they like. */
static unsigned sockets_and_files(void)
{
	unsigned count = 0;
	struct stat st;
	for (int fd = 3; fd < 64; fd++)
		count += fstat(fd, &st) == 0 && (S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode));
	return count;
}

/* Nothing of an input is left; descriptors least of all. */
static void end(bool marked, unsigned before)
{
	fuzz_fail_allocation(0);
	server.stopping = true;
	for (unsigned i = 0; i < PEERS; i++)
		hang_up(i);
	run_loop();
	while (server.peers_first)
		ckt_peer_close(server.peers_first);
	while (server.sessions)
		end_session(server.sessions);
	fuzz_insist(!request_count && !server.peers_waiting && !server.session_count,
		"the server counts who is not there");
	ckt_memory_image_fini(&server);
	ckt_admission_fini(&server);
	server.tokens = (struct ckt_tokens){0};
	server.drain.on = false;
	server.tls = NULL;
	for (unsigned i = 0; i < SESSIONS && marked; i++)
		ckt_session_mark_remove(
			&server, control_ids[i], i & 1 ? CKT_MARK_MOVED : CKT_MARK_PARKED, 0);
	fuzz_insist(sockets_and_files() == before, "a descriptor is left open");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, data + size};
	if (size < HEAD)
		return 0;
	uint8_t flags = fuzz_u8(&input), owners = fuzz_u8(&input), phases = fuzz_u8(&input),
		how = fuzz_u8(&input);
	unsigned before = sockets_and_files();
	begin(flags, owners, phases);
	server.driver.gpu_count = how & 3;
	server.gpu_count = how >> 2 & 1;
	server.drain.on = how & DRAINS;
	certified = how & CERTIFIED;
	/* Who offers it is asked by nobody here. */
	server.tls = how & WITH_TLS ? (struct ckt_tls_process *)&server : NULL;
	for (unsigned n = 0; n < STEPS_MAX && input.p < input.end; n++) {
		size_t have;
		uint8_t step = fuzz_u8(&input);
		how = fuzz_u8(&input);
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *bytes =
			fuzz_bytes(&input, length < BODY_MAX ? length : BODY_MAX, &have);
		do_step(step, how, bytes, have);
		run_loop();
	}
	end(flags & MARKED, before);
	return 0;
}

/* ---- Valid steps */

static void remove_files(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	(void)!system(command);
}

static void make_tokens(void)
{
	static const char *const names[] = {"alice", "root", "old"};
	static const char *const texts[] = {"alice's token", "root's token", "an old token"};
	memcpy(single.bytes, "the single token", single.size_bytes = 16);
	tokens.file.entries = calloc(3, sizeof *tokens.file.entries);
	tokens.file.count = 3;
	for (unsigned i = 0; i < 3; i++) {
		struct ckt_token token = {.size_bytes = strlen(texts[i])};
		struct ckt_token_entry *entry = &tokens.file.entries[i];
		memcpy(token.bytes, texts[i], token.size_bytes);
		snprintf(entry->name, sizeof entry->name, "%s", names[i]);
		ckt_token_verifier_make(&token, &entry->verifier);
		entry->role = i == 1 ? CKT_ROLE_ADMINISTRATOR : CKT_ROLE_USER;
		entry->expires = i == 2 ? 1 : 0;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	char path[128];
	(void)argc, (void)argv;
	if (to) {
		control_write_seeds(to);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_ERROR, NULL);
	fuzz_insist(mkdtemp(directory) && !ckt_loop_init(&server.loop), "no directory, or no loop");
	atexit(remove_files);
	ckt_options_init(&server.options);
	server.policy = &ckt_policy_limits;
	snprintf(server.host, sizeof server.host, "here");
	snprintf(server.socket_path, sizeof server.socket_path, "%s/s", directory);
	snprintf(server.socket_dir, sizeof server.socket_dir, "%s/s.d", directory);
	snprintf(server.image_dir, sizeof server.image_dir, "%s/images", directory);
	snprintf(path, sizeof path, "%s/images", directory);
	fuzz_insist(!mkdir(server.socket_dir, 0700) && !mkdir(path, 0700), "no directories");
	image_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	server.lock_fd = -1;
	server.listener_count = 2;
	snprintf(server.listeners[1].text, sizeof server.listeners[1].text, "0.0.0.0:1");
	make_tokens();
	fuzz_insist(!ckt_session_key_make(&key), "no key");
	return 0;
}
