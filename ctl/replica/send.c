/* SPDX-License-Identifier: Apache-2.0 */
/* One session's images, from its directory here to the other server; see main.c. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/files.h"
#include "ctl/replica/replica.h"
#include "ctl/transfer.h"
#include "rpc/control.h"
#include "rpc/net.h"

enum { CALL_MS = 60000, LEASE_CALL_MS = 5000, STATE_MAX = 8192, IMAGES_MAX = 48 };

/* As the directory's file `state` has it. */
struct state {
	char text[STATE_MAX + 1];
	uint64_t executed;
	char cut[33]; /* empty: it is of no group */
	uint64_t images[IMAGES_MAX];
	unsigned count;
};

/* The last line that a function of cricketctl printed. */
static void take_reason(char *ret_reason, size_t size)
{
	char text[1024] = "";
	off_t end = lseek(STDERR_FILENO, 0, SEEK_END);
	off_t from = end > (off_t)sizeof text - 1 ? end - ((off_t)sizeof text - 1) : 0;
	ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, from);
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = 0;
	char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (strncmp(line, "cricketctl: ", 12) == 0)
		line += 12;
	snprintf(ret_reason, size, "%s", *line ? line : "it does not answer");
	if (ftruncate(STDERR_FILENO, 0) == 0)
		lseek(STDERR_FILENO, 0, SEEK_SET);
}

static int read_state(int dir_fd, struct state *ret_state)
{
	uint64_t number;
	int fd = openat(dir_fd, "state", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, ret_state->text, STATE_MAX);
	close(fd);
	if (n <= 0)
		return -EIO;
	ret_state->text[n] = 0;
	ret_state->count = 0;
	for (const char *line = ret_state->text; line && *line;) {
		sscanf(line, "executed %" SCNu64, &ret_state->executed);
		sscanf(line, "cut %32[0-9a-f]", ret_state->cut);
		if (sscanf(line, "image %" SCNu64, &number) == 1 && ret_state->count < IMAGES_MAX)
			ret_state->images[ret_state->count++] = number;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return ret_state->count ? 0 : -ENOENT;
}

static bool connected(struct replicator *replicator, char *ret_reason, size_t size)
{
	char message[1200];
	if (replicator->server.fd >= 0)
		return true;
	if (ckt_ctl_try_connect(&replicator->args, &replicator->server, message, sizeof message) ==
		CKT_EXIT_DONE)
		return true;
	replicator->server.fd = -1;
	snprintf(ret_reason, size, "%s", message);
	return false;
}

static void disconnect(struct replicator *replicator)
{
	if (replicator->server.fd >= 0)
		ckt_ctl_disconnect(&replicator->server);
	replicator->server.fd = -1;
}

/* 0, or an exit code; -1: it is no replica there any more. */
static int look(struct replicator *replicator, const char *session, uint64_t *ret_images,
	unsigned *ret_count)
{
	ckt_control_replica_look_args args = {.session = (char *)session};
	ckt_control_replica_look_res res = {0};
	int status = ckt_ctl_call(&replicator->server, CKT_CONTROL_REPLICA_LOOK,
		(xdrproc_t)xdr_ckt_control_replica_look_args, &args,
		(xdrproc_t)xdr_ckt_control_replica_look_res, &res, CALL_MS, -1);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_result(&res.result);
		if (res.result.status == CKT_CONTROL_NO_SESSION)
			status = -1;
	}
	*ret_count = 0;
	for (u_int i = 0; status == CKT_EXIT_DONE && i < res.images.images_len && i < IMAGES_MAX;
		i++)
		ret_images[(*ret_count)++] = res.images.images_val[i];
	xdr_free((xdrproc_t)xdr_ckt_control_replica_look_res, (char *)&res);
	return status;
}

static int call(struct replicator *replicator, uint32_t proc, xdrproc_t xdr_args, void *args)
{
	ckt_control_result result = {0};
	int status = ckt_ctl_call(&replicator->server, proc, xdr_args, args,
		(xdrproc_t)xdr_ckt_control_result, &result, CALL_MS, -1);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_result(&result);
		if (result.status == CKT_CONTROL_NO_SESSION)
			status = -1;
	}
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&result);
	return status;
}

static int send_image(
	struct replicator *replicator, const char *session, int dir_fd, uint64_t number)
{
	char name[24], stage[CKT_CONTROL_NAME_MAX + 1];
	snprintf(name, sizeof name, "%" PRIu64, number);
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ckt_ctl_refuse(name, strerror(errno));
	int status = ckt_ctl_stage_make(&replicator->server, stage);
	if (status == CKT_EXIT_DONE) {
		status = ckt_ctl_send(&replicator->args, &replicator->server, stage, fd, NULL);
		ckt_fault(CKT_FAULT_REPLICA_SENT);
		ckt_control_replica_image_args args = {
			.session = (char *)session, .stage = stage, .number = number};
		if (status == CKT_EXIT_DONE)
			status = call(replicator, CKT_CONTROL_REPLICA_IMAGE,
				(xdrproc_t)xdr_ckt_control_replica_image_args, &args);
		else
			ckt_ctl_stage_remove(&replicator->server, stage);
	}
	close(fd);
	return status;
}

static bool is_there(const uint64_t *images, unsigned count, uint64_t number)
{
	for (unsigned i = 0; i < count; i++)
		if (images[i] == number)
			return true;
	return false;
}

/* The state was read first: an image that it names and that has gone makes this try fail. */
static int send_images(
	struct replicator *replicator, const char *session, int dir_fd, const struct state *state)
{
	uint64_t there[IMAGES_MAX];
	unsigned count;
	int status = look(replicator, session, there, &count);
	for (unsigned i = 0; i < state->count && status == CKT_EXIT_DONE; i++)
		if (!is_there(there, count, state->images[i]))
			status = send_image(replicator, session, dir_fd, state->images[i]);
	ckt_fault(CKT_FAULT_REPLICA_IMAGES);
	return status;
}

/* Whether the other server answers: then what failed was a refusal. */
static enum ckt_replica_outcome judge(
	struct replicator *replicator, const char *session, int status)
{
	char reason[1200];
	uint64_t there[IMAGES_MAX];
	unsigned count;
	if (status < 0)
		return CKT_REPLICA_LOST;
	disconnect(replicator);
	return connected(replicator, reason, sizeof reason) &&
			look(replicator, session, there, &count) != CKT_EXIT_NO_SERVER
		? CKT_REPLICA_REFUSED
		: CKT_REPLICA_UNREACHABLE;
}

enum ckt_replica_outcome ckt_replica_transfer(struct replicator *replicator, const char *session,
	bool (*go)(struct replicator *replicator, const char *session), char *ret_reason,
	size_t reason_size)
{
	char path[4200];
	struct state state = {0};
	snprintf(path, sizeof path, "%s/%s", replicator->directory, session);
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || read_state(dir_fd, &state)) {
		if (dir_fd >= 0)
			close(dir_fd);
		return CKT_REPLICA_STOPPED;
	}
	if (!connected(replicator, ret_reason, reason_size)) {
		close(dir_fd);
		return CKT_REPLICA_UNREACHABLE;
	}
	int status = send_images(replicator, session, dir_fd, &state);
	close(dir_fd);
	if (status == CKT_EXIT_DONE && !go(replicator, session))
		return CKT_REPLICA_STOPPED;
	int64_t before_ms = ckt_replicator_boot_ms();
	ckt_control_replica_keep_args args = {
		.session = (char *)session, .state = state.text, .lease_ms = replicator->lease_ms};
	if (status == CKT_EXIT_DONE)
		status = call(replicator, CKT_CONTROL_REPLICA_KEEP,
			(xdrproc_t)xdr_ckt_control_replica_keep_args, &args);
	ckt_fault(CKT_FAULT_REPLICA_KEPT);
	if (status == CKT_EXIT_DONE) {
		ckt_replicator_say("kept %s %" PRId64 " %" PRIu64 " %s", session,
			before_ms + replicator->lease_ms - replicator->lease_ms / 5, state.executed,
			state.cut);
		return CKT_REPLICA_KEPT;
	}
	take_reason(ret_reason, reason_size);
	return judge(replicator, session, status);
}

enum ckt_replica_outcome ckt_replica_remove(struct replicator *replicator, const char *session)
{
	char reason[1200];
	ckt_control_session_args args = {.session = (char *)session};
	if (!connected(replicator, reason, sizeof reason))
		return CKT_REPLICA_UNREACHABLE;
	int status = call(replicator, CKT_CONTROL_REPLICA_DROP,
		(xdrproc_t)xdr_ckt_control_session_args, &args);
	take_reason(reason, sizeof reason);
	if (status == CKT_EXIT_DONE)
		return CKT_REPLICA_KEPT;
	return status < 0 ? CKT_REPLICA_LOST : judge(replicator, session, status);
}

int ckt_replica_renew(struct ckt_ctl_server *server, const char *session, unsigned lease_ms)
{
	ckt_control_replica_lease_args args = {.session = (char *)session, .lease_ms = lease_ms};
	ckt_control_result answer = {0};
	int result = ckt_net_call(server->fd, CRICKET_CONTROL_PROG, CKT_CONTROL_REPLICA_LEASE,
		(xdrproc_t)xdr_ckt_control_replica_lease_args, &args,
		(xdrproc_t)xdr_ckt_control_result, &answer, ckt_net_now_ms() + LEASE_CALL_MS, -1);
	if (!result && answer.status != CKT_CONTROL_OK)
		result = answer.status == CKT_CONTROL_NO_SESSION ? -ENOENT : -EACCES;
	xdr_free((xdrproc_t)xdr_ckt_control_result, (char *)&answer);
	return result;
}
