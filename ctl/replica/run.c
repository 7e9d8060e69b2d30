/* SPDX-License-Identifier: Apache-2.0 */
/* What cricket-replicator does when; see main.c. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ctl/replica/replica.h"
#include "rpc/net.h"

enum {
	SERVER_FD = 3,
	LINE_MAX_BYTES = 511,
	GO_MS = 15000,
	AGAIN_MS = 2000,         /* after a failed connection */
	REFUSED_AGAIN_MS = 10000 /* after an answer */
};

void ckt_replicator_say(const char *format, ...)
{
	char text[LINE_MAX_BYTES + 1];
	va_list arguments;
	va_start(arguments, format);
	int size = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	size = size > LINE_MAX_BYTES ? LINE_MAX_BYTES : size;
	/* Without our server there is nothing to do. */
	if (send(SERVER_FD, text, (size_t)size, MSG_NOSIGNAL) < 0 && errno != EINTR)
		_exit(EXIT_SUCCESS);
}

int64_t ckt_replicator_boot_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Precondition: locked. */
static struct replicated *find(struct replicator *replicator, const char *id, bool make)
{
	struct replicated *one = replicator->all;
	while (one && strcmp(one->id, id) != 0)
		one = one->next;
	if (one || !make)
		return one;
	one = calloc(1, sizeof *one);
	if (!one)
		_exit(EXIT_FAILURE);
	snprintf(one->id, sizeof one->id, "%s", id);
	one->next = replicator->all;
	replicator->all = one;
	return one;
}

/* Precondition: locked. */
static void forget(struct replicator *replicator, struct replicated *one)
{
	struct replicated **place = &replicator->all;
	while (*place != one)
		place = &(*place)->next;
	*place = one->next;
	free(one);
}

/* A replica may count there: `replicated` stands in the directory. */
static bool is_marked(const struct replicator *replicator, const char *id)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/%s/replicated", replicator->directory, id);
	return access(path, F_OK) == 0;
}

/* ---- Lines of our server */

static void take_line(struct replicator *replicator, const char *text)
{
	char word[16] = "", id[CKT_SESSION_ID_SIZE + 1] = "";
	if (sscanf(text, "%15s %12s", word, id) != 2)
		return;
	pthread_mutex_lock(&replicator->lock);
	if (strcmp(word, "send") == 0) {
		struct replicated *one = find(replicator, id, true);
		one->wanted = true;
		one->leased |= is_marked(replicator, id);
	} else if (strcmp(word, "leave") == 0) {
		struct replicated *one = find(replicator, id, false);
		if (one)
			one->wanted = one->leased = false;
	} else if (strcmp(word, "drop") == 0) {
		struct replicated *one = find(replicator, id, true);
		one->wanted = one->leased = false;
		one->dropped = true;
		one->not_before_ms = 0;
	}
	pthread_mutex_unlock(&replicator->lock);
}

/* A line, or false after that time. */
static bool read_line(char text[LINE_MAX_BYTES + 1], int64_t timeout_ms)
{
	struct pollfd p = {.fd = SERVER_FD, .events = POLLIN};
	if (poll(&p, 1, (int)timeout_ms) <= 0)
		return false;
	ssize_t n = recv(SERVER_FD, text, LINE_MAX_BYTES, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(EXIT_SUCCESS);
	if (n > 0)
		text[n] = 0;
	return n > 0;
}

/* Whether its worker has a deadline, so that the images may count there. */
static bool go(struct replicator *replicator, const char *session)
{
	char text[LINE_MAX_BYTES + 1], yes[32], no[32];
	int64_t end_ms = ckt_net_now_ms() + GO_MS, left_ms;
	snprintf(yes, sizeof yes, "go %s", session);
	snprintf(no, sizeof no, "stop %s", session);
	ckt_replicator_say("ready %s", session);
	while ((left_ms = end_ms - ckt_net_now_ms()) > 0) {
		if (!read_line(text, left_ms))
			continue;
		if (strcmp(text, no) == 0)
			return false;
		if (strcmp(text, yes) != 0) {
			take_line(replicator, text);
			continue;
		}
		/* Its deadline runs. */
		pthread_mutex_lock(&replicator->lock);
		struct replicated *one = find(replicator, session, false);
		bool wanted = one && !one->dropped;
		if (wanted)
			one->leased = true;
		pthread_mutex_unlock(&replicator->lock);
		return wanted;
	}
	return false;
}

/* ---- The lease thread */

static bool next_leased(struct replicator *replicator, char id[CKT_SESSION_ID_SIZE + 1])
{
	const struct replicated *next = NULL;
	pthread_mutex_lock(&replicator->lock);
	for (const struct replicated *one = replicator->all; one; one = one->next)
		if (one->leased && strcmp(one->id, id) > 0 &&
			(!next || strcmp(one->id, next->id) < 0))
			next = one;
	if (next)
		memcpy(id, next->id, sizeof next->id);
	pthread_mutex_unlock(&replicator->lock);
	return next != NULL;
}

static void lose(struct replicator *replicator, const char *id)
{
	pthread_mutex_lock(&replicator->lock);
	struct replicated *one = find(replicator, id, false);
	bool told = one && one->leased;
	if (one)
		one->wanted = one->leased = false;
	pthread_mutex_unlock(&replicator->lock);
	if (told)
		ckt_replicator_say("lost %s", id);
}

static void renew_all(struct replicator *replicator, struct ckt_ctl_server *server)
{
	char message[1200], id[CKT_SESSION_ID_SIZE + 1] = "";
	while (next_leased(replicator, id)) {
		int64_t before_ms = ckt_replicator_boot_ms();
		/* Our server gave it up. */
		if (!is_marked(replicator, id))
			continue;
		if (server->fd < 0 &&
			ckt_ctl_try_connect(&replicator->args, server, message, sizeof message) !=
				CKT_EXIT_DONE) {
			server->fd = -1;
			return;
		}
		int result = ckt_replica_renew(server, id, replicator->lease_ms);
		if (!result) {
			ckt_replicator_say("lease %s %" PRId64, id,
				before_ms + replicator->lease_ms - replicator->lease_ms / 5);
		} else if (result == -ENOENT) {
			lose(replicator, id);
		} else if (result != -EACCES) {
			ckt_ctl_disconnect(server);
			server->fd = -1;
			return;
		}
	}
}

static void *lease_thread(void *opaque)
{
	struct replicator *replicator = opaque;
	struct ckt_ctl_server server = {.fd = -1};
	const long pause_ms = replicator->lease_ms / 8;
	for (;;) {
		renew_all(replicator, &server);
		nanosleep(&(struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000}, NULL);
	}
	return NULL;
}

/* ---- The main thread */

static void sent(struct replicator *replicator, const char *id, enum ckt_replica_outcome outcome,
	const char *reason)
{
	pthread_mutex_lock(&replicator->lock);
	struct replicated *one = find(replicator, id, false);
	if (one && (outcome == CKT_REPLICA_REFUSED || outcome == CKT_REPLICA_UNREACHABLE)) {
		one->wanted = !one->dropped;
		one->leased = one->leased && is_marked(replicator, id);
		one->not_before_ms = ckt_net_now_ms() +
			(outcome == CKT_REPLICA_REFUSED ? REFUSED_AGAIN_MS : AGAIN_MS);
	} else if (one) {
		one->not_before_ms = 0;
	}
	pthread_mutex_unlock(&replicator->lock);
	if (outcome == CKT_REPLICA_LOST) {
		pthread_mutex_lock(&replicator->lock);
		if ((one = find(replicator, id, true)))
			one->leased = true;
		pthread_mutex_unlock(&replicator->lock);
		lose(replicator, id);
	} else if (outcome == CKT_REPLICA_REFUSED) {
		ckt_replicator_say("refused %s %s", id, reason);
	} else if (outcome == CKT_REPLICA_UNREACHABLE) {
		ckt_replicator_say("unreachable %s %s", id, reason);
	}
}

/* The next one whose time has come; false: none. */
static bool next_wanted(
	struct replicator *replicator, char ret_id[CKT_SESSION_ID_SIZE + 1], bool *ret_drop)
{
	bool found = false;
	pthread_mutex_lock(&replicator->lock);
	for (struct replicated *one = replicator->all; one && !found; one = one->next) {
		found = (one->wanted || one->dropped) && one->not_before_ms <= ckt_net_now_ms();
		if (!found)
			continue;
		memcpy(ret_id, one->id, sizeof one->id);
		*ret_drop = one->dropped;
		/* What comes meanwhile is sent after this. */
		one->wanted = false;
	}
	pthread_mutex_unlock(&replicator->lock);
	return found;
}

static void removed(struct replicator *replicator, const char *id, enum ckt_replica_outcome outcome)
{
	pthread_mutex_lock(&replicator->lock);
	struct replicated *one = find(replicator, id, false);
	if (one && (outcome == CKT_REPLICA_KEPT || outcome == CKT_REPLICA_LOST))
		forget(replicator, one);
	else if (one)
		one->not_before_ms = ckt_net_now_ms() + AGAIN_MS;
	pthread_mutex_unlock(&replicator->lock);
}

static void serve(struct replicator *replicator)
{
	char id[CKT_SESSION_ID_SIZE + 1], reason[300] = "";
	bool drop;
	if (!next_wanted(replicator, id, &drop))
		return;
	if (drop)
		removed(replicator, id, ckt_replica_remove(replicator, id));
	else
		sent(replicator, id,
			ckt_replica_transfer(replicator, id, go, reason, sizeof reason), reason);
}

int ckt_replicator_run(struct replicator *replicator)
{
	char text[LINE_MAX_BYTES + 1];
	pthread_t thread;
	signal(SIGPIPE, SIG_IGN);
	replicator->server.fd = -1;
	if (pthread_create(&thread, NULL, lease_thread, replicator))
		return EXIT_FAILURE;
	for (;;) {
		bool pending = false;
		pthread_mutex_lock(&replicator->lock);
		for (const struct replicated *one = replicator->all; one; one = one->next)
			pending |= one->wanted || one->dropped;
		pthread_mutex_unlock(&replicator->lock);
		if (read_line(text, pending ? 200 : -1))
			take_line(replicator, text);
		while (read_line(text, 0))
			take_line(replicator, text);
		serve(replicator);
	}
}
