/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broken connection: finds the session again and continues, unseen by the program.
 *
 *	OPEN --(read or write fails)--> RESUMING --(hello RESUME accepted)--> OPEN
 *	                                    |--(no session, refused, or CRICKET_RECONNECT_TIMEOUT)--> LOST, a sticky error
 *
 * The client sends exactly the commands after the worker's last executed number again, from the
 * ring.  Some waiters have a record that left the ring: it was executed but the reply was lost, or
 * it is not numbered.  Those waiters send their copy of the record again: a numbered call gets its
 * stored reply.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/conn/conn.h"
#include "client/conn/hostmem.h"
#include "client/conn/replay.h"
#include "client/conn/settings.h"
#include "base/log.h"

enum {
	WAKING_MS = 2000,   /* until the program's user is told that it takes long */
	REASONS_SIZE = 1536 /* a line of the log, with what stands around them */
};

/*
 * Where the session may be, in this order: the address that the server sent, the last address, the
 * address in the file that cricketctl wrote, the standbys.
 */
enum place { PLACE_MOVED, PLACE_ADDRESS, PLACE_FILE, PLACE_STANDBY };

/*
 * The first line of the session's file is the address.  A second line, "generation N", says for
 * which clients the address is.
 */
bool ckt_conn_file_address(const struct ckt_conn *conn, char *ret_address, size_t size)
{
	char path[CKT_ADDRESS_TEXT_MAX + CKT_SESSION_ID_SIZE + 2], line[64] = "";
	unsigned long long generation = 0;
	bool found = false;
	if (!ckt_settings.state_dir[0])
		return false;
	snprintf(path, sizeof path, "%s/%s", ckt_settings.state_dir, conn->session);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(ret_address, (int)size, file)) {
		ret_address[strcspn(ret_address, " \t\r\n")] = 0;
		found = *ret_address;
	}
	if (found && fgets(line, sizeof line, file) &&
		sscanf(line, "generation %llu", &generation) == 1)
		found = generation <= conn->generation;
	fclose(file);
	return found;
}

static bool candidate(const struct ckt_conn *conn, unsigned index, char *ret_address, size_t size)
{
	switch (index) {
	case PLACE_MOVED:
		snprintf(ret_address, size, "%s", conn->moved_to);
		return conn->moved_to[0];
	case PLACE_ADDRESS:
		snprintf(ret_address, size, "%s", conn->address_text);
		return true;
	case PLACE_FILE:
		return ckt_conn_file_address(conn, ret_address, size);
	default:
		if (index - PLACE_STANDBY >= ckt_settings.standby_count)
			return false;
		snprintf(ret_address, size, "%s", ckt_settings.standby[index - PLACE_STANDBY]);
		return true;
	}
}

/*
 * True if the copy's past differs from what this client has seen.  The copy is of an earlier
 * generation, or it was saved before commands that were already reported as executed.  Those
 * commands have left the ring and cannot be sent again.
 */
static bool is_older(struct ckt_conn *conn, const struct ckt_hello_ok *ok, const char *address,
	char *ret_message, size_t message_size)
{
	if (conn->replay)
		return !ckt_replay_accepts(conn, ok, address, ret_message, message_size);
	pthread_mutex_lock(&conn->lock);
	bool older = ok->generation < conn->generation || ok->executed < conn->executed;
	pthread_mutex_unlock(&conn->lock);
	if (older)
		snprintf(ret_message, message_size,
			"%.256s holds an older state of the session than the program has seen",
			address);
	return older;
}

/* Why the session is not found, for the user. */
struct reasons {
	char text[REASONS_SIZE]; /* of the last round */
	bool heard;              /* that holds more than that nobody can be reached */
	char said[REASONS_SIZE]; /* of the last round in which that was so */
};

/* Why that place does not have it, behind those of other places.  The session's own needs no name. */
static void add_reason(
	const struct ckt_conn *conn, const char *address, const char *why, struct reasons *reasons)
{
	char reason[CKT_ADDRESS_TEXT_MAX + CKT_MESSAGE_MAX + 2];
	char *text = reasons->text;
	size_t used = strlen(text), size = sizeof reasons->text;
	bool named = strcmp(address, conn->address_text) == 0 || strstr(why, address);
	ckt_debug("session %s is not at %s: %s", conn->session, address, why);
	snprintf(reason, sizeof reason, "%s%s%s", named ? "" : address, named ? "" : ": ", why);
	/* A standby may be one of the other places, too. */
	if (*why && !strstr(text, reason))
		snprintf(text + used, size - used, "%s%s", used ? "; " : "", reason);
}

/*
 * No place has the session, and this client can send all of it again: its last server may start it
 * from nothing.  Not any other: only that one knows whether the worker lives, or was ended.
 */
static int begin_afresh(struct ckt_conn *conn, struct ckt_transport *ret_found,
	struct ckt_hello_ok *ret_ok, struct reasons *reasons)
{
	char moved[CKT_ADDRESS_MAX + 1], why[CKT_MESSAGE_MAX] = "";
	if (!ckt_replay_afresh_begin(conn))
		return -EAGAIN;
	int result = ckt_connect(conn, conn->address_text, CKT_HELLO_RESUME, 3000, ret_found,
		ret_ok, moved, sizeof moved, why, sizeof why);
	if (!result && is_older(conn, ret_ok, conn->address_text, why, sizeof why)) {
		ckt_transport_close(ret_found);
		xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)ret_ok);
		memset(ret_ok, 0, sizeof *ret_ok);
		result = -EAGAIN;
	}
	ckt_replay_afresh_end(conn, result);
	if (result)
		add_reason(conn, conn->address_text, why, reasons);
	return result ? -EAGAIN : 0;
}

/* Whether the server at that place answered that it has no such session. */
static bool is_absent(struct ckt_conn *conn)
{
	bool absent = conn->replay && conn->replay->absent;
	if (conn->replay)
		conn->replay->absent = false;
	return absent;
}

/*
 * Tries all places once. 0 and the connection, or -EAGAIN if no server has the session yet, and why
 * not at each place.
 */
static int find_session(struct ckt_conn *conn, struct ckt_transport *ret_found,
	struct ckt_hello_ok *ret_ok, struct reasons *reasons)
{
	bool absent = true;
	is_absent(conn);
	for (unsigned i = 0; i < PLACE_STANDBY + ckt_settings.standby_count; i++) {
		char moved[CKT_ADDRESS_MAX + 1], address[CKT_ADDRESS_TEXT_MAX],
			why[CKT_MESSAGE_MAX] = "";
		if (!candidate(conn, i, address, sizeof address))
			continue;
		conn->refused = false;
		int result = ckt_connect(conn, address, CKT_HELLO_RESUME, 3000, ret_found, ret_ok,
			moved, sizeof moved, why, sizeof why);
		/* A standby that has no such session never had it alone. */
		reasons->heard |= conn->refused && (result != -ENOENT || i < PLACE_STANDBY);
		if (result == -EREMCHG) {
			add_reason(conn, address, why, reasons);
			snprintf(conn->moved_to, sizeof conn->moved_to, "%s", moved);
			return -EAGAIN;
		}
		if (!result && is_older(conn, ret_ok, address, why, sizeof why)) {
			absent = false;
			reasons->heard = true;
			add_reason(conn, address, why, reasons);
			ckt_transport_close(ret_found);
			xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)ret_ok);
			memset(ret_ok, 0, sizeof *ret_ok);
			continue;
		}
		if (!result) {
			ckt_debug("session %s found again at %s", conn->session, address);
			memcpy(conn->address_text, address, sizeof conn->address_text);
			return 0;
		}
		add_reason(conn, address, why, reasons);
		/* A standby never had it alone. */
		absent = (is_absent(conn) || i >= PLACE_STANDBY) && absent;
	}
	if (absent)
		ckt_replay_absent(conn);
	return begin_afresh(conn, ret_found, ret_ok, reasons);
}

/* Precondition: send_lock and lock held, no thread reads. */
static int send_again(struct ckt_conn *conn, struct ckt_transport *to, uint64_t executed)
{
	atomic_store(&conn->sent, atomic_load(&conn->tail));
	ckt_conn_trim(conn, executed);
	for (struct ckt_waiter *w = conn->pending.next; w != &conn->pending; w = w->next) {
		if (w->position >= conn->head)
			continue;
		if (!w->message)
			return -ENOMEM;
		int result = ckt_transport_write_all(to, w->message, w->message_size, -1);
		if (result)
			return result;
	}
	atomic_store(&conn->sent, conn->head);
	return 0;
}

static void lose(struct ckt_conn *conn, CUresult error, const char *message)
{
	ckt_log_user("session %s on %s is lost: %s", conn->session, conn->address_text, message);
	pthread_mutex_lock(&conn->lock);
	conn->error = error;
	atomic_store(&conn->state, CKT_CONN_LOST);
	pthread_mutex_unlock(&conn->lock);
	ckt_waiter_finish_all(conn, error);
	pthread_mutex_lock(&conn->read_lock);
	pthread_cond_broadcast(&conn->read_cond);
	pthread_mutex_unlock(&conn->read_lock);
	ckt_conn_flusher_kick(conn);
	pthread_cond_broadcast(&conn->state_cond);
}

/* Ensures that no other thread reads while the descriptor and the buffer change. */
void ckt_conn_take_reader(struct ckt_conn *conn)
{
	pthread_mutex_lock(&conn->read_lock);
	while (conn->reading) {
		conn->sleepers++;
		pthread_cond_wait(&conn->read_cond, &conn->read_lock);
		conn->sleepers--;
	}
	conn->reading = true;
	pthread_mutex_unlock(&conn->read_lock);
}

/* After a failed write, replies and the reason of the end may still be unread. */
void ckt_conn_read_last_words(struct ckt_conn *conn)
{
	while (ckt_conn_read(conn, 0) == 0)
		;
	conn->receive_start = conn->receive_end = 0;
}

void ckt_conn_leave_reader(struct ckt_conn *conn)
{
	pthread_mutex_lock(&conn->read_lock);
	conn->reading = false;
	pthread_cond_broadcast(&conn->read_cond);
	pthread_mutex_unlock(&conn->read_lock);
}

static int switch_to(
	struct ckt_conn *conn, struct ckt_transport *found, const struct ckt_hello_ok *ok)
{
	pthread_mutex_lock(&conn->send_lock);
	pthread_mutex_lock(&conn->lock);
	int result = send_again(conn, found, ok->executed);
	if (!result) {
		conn->generation = ok->generation;
		conn->offered_copy = ckt_conn_copy_of(ok);
		ckt_replay_attached(conn, ok);
		snprintf(conn->server, sizeof conn->server, "%s", ok->server);
		ckt_transport_close(&conn->transport);
		ckt_transport_move(&conn->transport, found);
		conn->direct = ckt_transport_is(&conn->transport, CKT_TRANSPORT_NO_CALL);
		conn->epoch++;
		atomic_store(&conn->asleep, false);
		atomic_store(&conn->state, CKT_CONN_OPEN);
		pthread_cond_broadcast(&conn->state_cond);
	}
	pthread_mutex_unlock(&conn->lock);
	pthread_mutex_unlock(&conn->send_lock);
	return result;
}

/*
 * If the worker no longer shares the program's pinned memory, sends it the contents before the
 * commands that use them.
 */
static int tell_host_memory(struct ckt_transport *found, const struct ckt_hello_ok *ok)
{
	int (*lost)(struct ckt_transport * to) = atomic_load(&ckt_host_memory_lost);
	return ckt_host_memory_answer(ok) && lost ? lost(found) : 0;
}

/* A server has the session.  0: the session continues there; *ok is freed. */
static int continue_at(struct ckt_conn *conn, struct ckt_transport *found, struct ckt_hello_ok *ok,
	struct reasons *reasons)
{
	char why[CKT_MESSAGE_MAX] = "";
	int result = tell_host_memory(found, ok);
	if (!result)
		result = ckt_replay_run(conn, found, ok, why, sizeof why);
	reasons->heard |= *why;
	if (!result)
		result = switch_to(conn, found, ok);
	if (!result)
		ckt_lanes_allow(conn, ok);
	if (result && !*why)
		snprintf(why, sizeof why, "the connection broke off again: %s", strerror(-result));
	if (result) {
		add_reason(conn, conn->address_text, why, reasons);
		ckt_transport_close(found);
	}
	xdr_free((xdrproc_t)xdr_ckt_hello_ok, (char *)ok);
	return result;
}

static void begin_round(struct reasons *reasons)
{
	if (reasons->heard)
		memcpy(reasons->said, reasons->text, sizeof reasons->said);
	reasons->heard = false;
	*reasons->text = 0;
}

/* Tries until the session is found or the time is up.  False: give up. */
static bool look_for_session(struct ckt_conn *conn, struct reasons *reasons)
{
	int64_t began_ms = ckt_net_now_ms();
	bool told = false, asleep = atomic_load(&conn->asleep);
	for (unsigned wait_ms = 5;; wait_ms = wait_ms < 500 ? wait_ms * 2 : 500) {
		struct ckt_hello_ok ok = {0};
		struct ckt_transport found;
		begin_round(reasons);
		int result = find_session(conn, &found, &ok, reasons);
		if (!result) {
			result = continue_at(conn, &found, &ok, reasons);
			if (!result) {
				if (told)
					ckt_log_user("session %s continues at %s", conn->session,
						conn->address_text);
				atomic_store(&conn->parked, false);
				return true;
			}
			if (result == -EILSEQ)
				return false;
		}
		bool parked = atomic_load(&conn->parked);
		if (parked && !told && asleep) {
			told = ckt_net_now_ms() - began_ms > WAKING_MS;
			if (told)
				ckt_log_user("session %s sleeps and cannot be woken yet: %s; "
					     "waiting",
					conn->session, reasons->text);
		} else if (parked && !told) {
			ckt_log_user(
				"session %s was stopped on purpose; waiting until it is restored (elsewhere: cricketctl redirect %s --to HOST:PORT)",
				conn->session, conn->session);
			told = true;
		}
		int64_t limit_ms =
			parked ? ckt_settings.park_timeout_ms : ckt_settings.reconnect_timeout_ms;
		if ((!parked || limit_ms) && ckt_net_now_ms() - began_ms >= limit_ms)
			return false;
		struct timespec pause = {
			.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};
		nanosleep(&pause, NULL);
	}
}

static void resume(struct ckt_conn *conn, int error)
{
	struct reasons reasons = {0};
	ckt_debug("connection to %s broke: %s", conn->address_text, strerror(-error));
	ckt_conn_take_reader(conn);
	ckt_conn_read_last_words(conn);
	ckt_conn_watch_leave(conn);
	ckt_lanes_close(conn);
	if (atomic_exchange(&conn->quiesce, false))
		ckt_conn_quiesce(conn);
	if (!look_for_session(conn, &reasons)) {
		char cause[REASONS_SIZE + 64];
		bool later = *reasons.said && !reasons.heard;
		snprintf(cause, sizeof cause, "%s%s%.*s (connection: %s)",
			later ? reasons.said : "", later ? "; later: " : "",
			(int)(sizeof reasons.text - (later ? strlen(reasons.said) : 0)),
			reasons.text, strerror(-error));
		lose(conn, CUDA_ERROR_DEVICE_UNAVAILABLE, cause);
	}
	ckt_conn_leave_reader(conn);
	ckt_conn_send(conn); /* The next reader notices an error of this send. */
}

void ckt_conn_broken(struct ckt_conn *conn, uint64_t epoch, int error)
{
	int saved_errno = errno;
	pthread_mutex_lock(&conn->state_lock);
	/* A second thread finds another connection, or the session lost. */
	if (conn->epoch == epoch && atomic_load(&conn->state) == CKT_CONN_OPEN &&
		!(atomic_load(&conn->asleep) && ckt_conn_rests(conn))) {
		atomic_store(&conn->state, CKT_CONN_RESUMING);
		resume(conn, error);
	}
	pthread_mutex_unlock(&conn->state_lock);
	errno = saved_errno;
}

void ckt_conn_wake(struct ckt_conn *conn)
{
	int saved_errno = errno;
	pthread_mutex_lock(&conn->state_lock);
	if (atomic_load(&conn->asleep) && atomic_load(&conn->state) == CKT_CONN_OPEN) {
		atomic_store(&conn->state, CKT_CONN_RESUMING);
		resume(conn, -ECONNRESET);
	}
	pthread_mutex_unlock(&conn->state_lock);
	errno = saved_errno;
}
