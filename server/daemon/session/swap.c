/* SPDX-License-Identifier: Apache-2.0 */
/* Swapping sessions; see swap.h. */
#include "server/daemon/session/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/together.h"
#include "server/daemon/session/worker_request.h"

/* Pages that a reader of the sparse file has made. */
#define SLACK_BYTES ((uint64_t)64 << 20)

enum { LOOK_TIMEOUT_MS = 2000, SWAP_IN_MS = 4000, OPEN_MS = 30000 };

struct swap {
	ckt_swap_done done;
	void *data;
	bool out, stay, yields;
	bool owner_full; /* its owner's limit is what bounds it */
	unsigned deadline_ms;
	unsigned together; /* the step, of a session that moves with others; 0: alone */
};

uint64_t ckt_swap_used(const struct ckt_server *server)
{
	uint64_t bytes = 0;
	for (const struct ckt_session *s = server->sessions; s; s = s->next)
		bytes += s->swap.counted;
	return bytes;
}

/* ---- The swap memory of a session */

static int open_memory(struct ckt_session *session)
{
	session->swap.fd = memfd_create("cricket-swap", MFD_CLOEXEC);
	return session->swap.fd < 0 ? -errno : 0;
}

static int open_file(struct ckt_session *session)
{
	session->swap.fd = open(session->server->options.swap,
		O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	return session->swap.fd < 0 ? -errno : 0;
}

static void close_file(struct ckt_session *session)
{
	if (session->swap.open)
		close(session->swap.fd);
	session->swap.open = session->swap.on_disk = false;
	session->swap.counted = session->swap.held = 0;
}

static int open_swap(struct ckt_session *session, bool on_disk)
{
	if (session->swap.open && session->swap.on_disk == on_disk)
		return 0;
	close_file(session);
	int error = on_disk ? open_file(session) : open_memory(session);
	session->swap.open = !error;
	session->swap.on_disk = !error && on_disk;
	return error;
}

/* What the swap memory of the session may hold, where it has, or gets, a file of that kind. */
static uint64_t room(const struct ckt_session *session, bool on_disk)
{
	const struct ckt_server *server = session->server;
	struct statvfs fs;
	if (!on_disk) {
		uint64_t others = ckt_swap_used(server) - session->swap.counted;
		return server->options.swap_memory > others ? server->options.swap_memory - others
							    : 0;
	}
	struct stat st = {0};
	if (!server->options.swap || statvfs(server->options.swap, &fs))
		return 0;
	if (session->swap.open && session->swap.on_disk && fstat(session->swap.fd, &st))
		return 0;
	return (uint64_t)fs.f_bavail * fs.f_frsize + (uint64_t)st.st_blocks * 512;
}

/* What the limits of its owner leave it. */
static uint64_t owner_room(const struct ckt_session *session)
{
	const struct ckt_limit_table *limits = &session->server->ledger.limits;
	const struct ckt_limit_subject subject = ckt_lease_subject(session);
	uint64_t room = UINT64_MAX;
	for (size_t i = 0; i < limits->count; i++) {
		const struct ckt_limit_rule *rule = &limits->rules[i];
		if (!(rule->sets & CKT_LIMIT_SETS_SWAP) || !ckt_limit_fits(rule, &subject))
			continue;
		uint64_t used = 0;
		for (const struct ckt_session *s = session->server->sessions; s; s = s->next) {
			const struct ckt_limit_subject other = ckt_lease_subject(s);
			if (s != session && ckt_limit_counts(rule, &subject, &other))
				used += s->swap.held;
		}
		uint64_t left = rule->swap_bytes > used ? rule->swap_bytes - used : 0;
		room = left < room ? left : room;
	}
	return room;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * What the swap memory may come to: what is there, and all that the session has on its GPUs.  Others
 * may leave meanwhile.  UINT64_MAX: its worker alone knows.
 */
static uint64_t most_bytes(const struct ckt_session *session)
{
	const struct ckt_ledger_holder *holder = &session->lease.holder;
	struct stat st = {0};
	if (!session->lease.is_holder || holder->unsettled || fstat(session->swap.fd, &st))
		return UINT64_MAX;
	uint64_t bytes = (uint64_t)st.st_blocks * 512 + SLACK_BYTES;
	for (unsigned gpu = 0; gpu < CKT_DEVICES_MAX; gpu++)
		bytes += holder->leased[gpu];
	return bytes;
}

/* Of sessions that leave at one time, as long as only their workers know how much: a part for each. */
static uint64_t part_of(const struct ckt_session *session, uint64_t bytes)
{
	unsigned count = 1;
	for (const struct ckt_session *s = session->server->sessions; s; s = s->next)
		count += s != session && s->quantum.together == session->quantum.together &&
			!s->swap.busy;
	return bytes / count;
}

/* What it holds, as the kernel counts: a worker cannot say less. */
static void settle(struct ckt_session *session)
{
	struct stat st;
	session->swap.held = !session->swap.open || fstat(session->swap.fd, &st)
		? 0
		: (uint64_t)st.st_blocks * 512;
	session->swap.counted = session->swap.on_disk ? 0 : session->swap.held;
}

void ckt_swap_close(struct ckt_session *session)
{
	close_file(session);
}

/* ---- Out and in */

static int send_out(struct ckt_session *session, struct swap *swap, bool on_disk);

static void finish(struct ckt_session *session, struct swap *swap, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	uint64_t granted = session->swap.counted;
	session->swap.busy = false;
	settle(session);
	if (swap->out && !session->swap.on_disk && session->swap.counted > granted + SLACK_BYTES) {
		ckt_warning(
			"session %s: its worker wrote %llu bytes to the swap memory, and was granted %llu",
			session->id, (unsigned long long)session->swap.counted,
			(unsigned long long)granted);
		ckt_session_kill(session, "its worker wrote more to the swap memory than granted");
	}
	if (!error && (!swap->together || res->bytes))
		ckt_info("session %s: swapped %s: %llu bytes, %llu of them %s", session->id,
			swap->out ? "out" : "in", (unsigned long long)res->bytes,
			(unsigned long long)res->moved_bytes, swap->out ? "written" : "read");
	/* Of steps together only what moved something. */
	if (!swap->together || (res && res->bytes))
		ckt_quantum_moved(session, swap->out, error, res);
	swap->done(session, swap->data, error, res, message);
	free(swap);
}

static void answered(struct ckt_session *session, void *context, int error, void *answer)
{
	struct swap *swap = context;
	const ckt_worker_swap_res *res = answer;
	bool full = !error && swap->out && res->status == -ENOSPC;
	if (full && !swap->owner_full && !session->swap.on_disk && session->server->options.swap &&
		!send_out(session, swap, true))
		return;
	finish(session, swap, error ? error : res->status, res,
		error                              ? ckt_daemon_request_problem(error)
			: full && swap->owner_full ? "its owner's limit of swap memory is reached "
						     "(swap= of cricketctl limit show)"
						   : res->message);
}

/* fd: the swap memory, which goes along; -1: none. */
static int call_together(
	struct ckt_session *session, struct swap *swap, uint64_t limit_bytes, int fd)
{
	ckt_worker_together_args args = {.step = swap->together,
		.deadline_ms = swap->deadline_ms,
		.limit_bytes = limit_bytes};
	return ckt_session_call_long(session, CKT_WORKER_TOGETHER,
		(xdrproc_t)xdr_ckt_worker_together_args, &args, fd,
		(xdrproc_t)xdr_ckt_worker_swap_res, sizeof(ckt_worker_swap_res), swap->deadline_ms,
		answered, swap);
}

static int send_out(struct ckt_session *session, struct swap *swap, bool on_disk)
{
	ckt_worker_swap_out_args args = {.deadline_ms = swap->deadline_ms, .stay = swap->stay};
	int error = open_swap(session, on_disk);
	if (error)
		return error;
	uint64_t owner = owner_room(session), kind = room(session, on_disk);
	swap->owner_full = owner < kind;
	if (session->swap.held > least(owner, kind)) {
		/* A limit was lowered: what it has written would not count again. */
		close_file(session);
		error = open_swap(session, on_disk);
		if (error)
			return error;
	}
	args.limit_bytes = least(least(owner, kind), most_bytes(session));
	if (swap->together && most_bytes(session) == UINT64_MAX)
		args.limit_bytes = part_of(session, args.limit_bytes);
	int fd = fcntl(session->swap.fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	session->swap.held = args.limit_bytes;
	session->swap.counted = on_disk ? 0 : args.limit_bytes;
	if (swap->together)
		return call_together(session, swap, args.limit_bytes, fd);
	return ckt_session_call_long(session,
		swap->yields ? CKT_WORKER_SWAP_YIELD : CKT_WORKER_SWAP_OUT,
		(xdrproc_t)xdr_ckt_worker_swap_out_args, &args, fd,
		(xdrproc_t)xdr_ckt_worker_swap_res, sizeof(ckt_worker_swap_res), swap->deadline_ms,
		answered, swap);
}

static struct swap *begin(struct ckt_session *session, ckt_swap_done done, void *data)
{
	struct swap *swap = calloc(1, sizeof *swap);
	if (!swap)
		return NULL;
	*swap = (struct swap){.done = done, .data = data};
	session->swap.busy = true;
	return swap;
}

static int begun(struct ckt_session *session, struct swap *swap, int error)
{
	if (!error)
		return 0;
	free(swap);
	session->swap.busy = false;
	settle(session);
	return error;
}

static int begin_out(struct ckt_session *session, const struct swap *how)
{
	const struct ckt_options *options = &session->server->options;
	if (!options->swap_memory && !options->swap)
		return -ENOTSUP;
	if (session->swap.busy || session->holder || session->phase != CKT_SESSION_LIVE)
		return -EBUSY;
	struct swap *swap = begin(session, how->done, how->data);
	if (!swap)
		return -ENOMEM;
	*swap = *how;
	ckt_quantum_moves(session, true);
	bool on_disk = options->swap && (session->swap.on_disk || room(session, false) == 0);
	return begun(session, swap, send_out(session, swap, on_disk));
}

int ckt_session_swap_out(struct ckt_session *session, bool stay, unsigned deadline_ms,
	ckt_swap_done done, void *data)
{
	return begin_out(session,
		&(struct swap){.out = true,
			.stay = stay,
			.deadline_ms = deadline_ms,
			.done = done,
			.data = data});
}

int ckt_session_swap_yield(
	struct ckt_session *session, unsigned deadline_ms, ckt_swap_done done, void *data)
{
	return begin_out(session,
		&(struct swap){.out = true,
			.yields = true,
			.deadline_ms = deadline_ms,
			.done = done,
			.data = data});
}

static int begin_in(struct ckt_session *session, uint32_t proc, ckt_swap_done done, void *data)
{
	if (session->swap.busy || session->phase != CKT_SESSION_LIVE)
		return -EBUSY;
	struct swap *swap = begin(session, done, data);
	if (!swap)
		return -ENOMEM;
	ckt_quantum_moves(session, false);
	return begun(session, swap,
		ckt_session_call_long(session, proc, NULL, NULL, -1,
			(xdrproc_t)xdr_ckt_worker_swap_res, sizeof(ckt_worker_swap_res), SWAP_IN_MS,
			answered, swap));
}

int ckt_session_swap_together(struct ckt_session *session, unsigned step, unsigned deadline_ms,
	ckt_swap_done done, void *data)
{
	const struct swap how = {.out = step == CKT_TOGETHER_OUT,
		.together = step,
		.deadline_ms = step == CKT_TOGETHER_OPEN ? OPEN_MS : deadline_ms,
		.done = done,
		.data = data};
	if (how.out)
		return begin_out(session, &how);
	if (session->swap.busy || session->phase != CKT_SESSION_LIVE)
		return -EBUSY;
	struct swap *swap = begin(session, done, data);
	if (!swap)
		return -ENOMEM;
	*swap = how;
	if (step == CKT_TOGETHER_IN)
		ckt_quantum_moves(session, false);
	return begun(session, swap, call_together(session, swap, 0, -1));
}

int ckt_session_swap_in(struct ckt_session *session, ckt_swap_done done, void *data)
{
	return begin_in(session, CKT_WORKER_SWAP_IN, done, data);
}

int ckt_session_swap_follow(struct ckt_session *session, ckt_swap_done done, void *data)
{
	return begin_in(session, CKT_WORKER_SWAP_FOLLOW, done, data);
}

/* ---- cricketctl */

static void reply(struct ckt_peer *peer, const char *session, const ckt_control_result *result,
	const ckt_worker_swap_res *facts)
{
	ckt_control_swap_res res = {.result = *result, .session = (char *)session};
	if (facts) {
		res.swapped = facts->swapped;
		res.bytes = facts->bytes;
		res.moved_bytes = facts->moved_bytes;
		res.swapped_bytes = facts->swapped_bytes;
		res.here_bytes = facts->here_bytes;
		res.outs = facts->outs;
		res.ins = facts->ins;
		res.out_bytes = facts->out_bytes;
		res.in_bytes = facts->in_bytes;
		res.out_us = facts->out_us;
		res.in_us = facts->in_us;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_swap_res, &res);
}

static void refuse(struct ckt_peer *peer, const struct ckt_session *session, int error)
{
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result;
	ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %s", session->id,
		error == -ENOTSUP
			? "this server has no swap memory: start it with --swap-memory or --swap"
			: error == -EBUSY
			? "it is swapped, held or ended by another call: try again when that is over"
			: strerror(-error));
	reply(peer, session->id, &result, NULL);
}

static void control_done(struct ckt_session *session, void *data, int error,
	const ckt_worker_swap_res *res, const char *message)
{
	struct ckt_peer *peer = data;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, message);
	if (ckt_peer_release(peer))
		reply(peer, session->id, &result, res);
}

/* Those who may pause it.  NULL: already answered. */
static struct ckt_session *select_allowed(struct ckt_peer *peer, const char *prefix, bool out)
{
	char buffer[CKT_MESSAGE_MAX];
	struct ckt_decision decision;
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, prefix, &result, buffer);
	if (session) {
		if (out)
			ckt_ask_pause(session, &decision);
		else
			ckt_ask_resume(session, &decision);
		if (!decision.answer)
			return session;
		result = (ckt_control_result){CKT_CONTROL_REFUSED, decision.reason};
	}
	reply(peer, "", &result, NULL);
	return NULL;
}

void ckt_control_swap(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_swap_args *args = decoded;
	bool out = args->way == CKT_CONTROL_SWAP_OUT;
	struct ckt_session *session = select_allowed(peer, args->session, out);
	(void)passed_fd;
	if (!session)
		return;
	ckt_quantum_facts(session->server, ckt_now_ns());
	int error = session->quantum.together ? ckt_together_move(session, out, control_done, peer)
		: out ? ckt_session_swap_out(session, false, args->deadline_ms, control_done, peer)
		      : ckt_session_swap_in(session, control_done, peer);
	if (error)
		refuse(peer, session, error);
	else
		ckt_peer_hold(peer);
}

static void looked(struct ckt_session *session, void *context, int error, void *answer)
{
	control_done(session, context, error, answer, ckt_daemon_request_problem(error));
}

void ckt_control_swap_look(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	(void)passed_fd;
	if (!session) {
		reply(peer, "", &result, NULL);
		return;
	}
	int error = ckt_session_call(session, CKT_WORKER_SWAP_LOOK, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_swap_res, sizeof(ckt_worker_swap_res), LOOK_TIMEOUT_MS,
		looked, peer);
	if (error)
		refuse(peer, session, error);
	else
		ckt_peer_hold(peer);
}
