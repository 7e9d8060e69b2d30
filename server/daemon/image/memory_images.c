/* SPDX-License-Identifier: Apache-2.0 */
/* Images in memory; see memory_images.h. */
#include "server/daemon/image/memory_images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/policy/ask.h"
#include "base/log.h"
#include "server/daemon/image/stage.h"

struct ckt_memory_image {
	struct ckt_memory_image *next;
	struct ckt_server *server;
	char name[CKT_CONTROL_KEPT_NAME_MAX + 1];
	char session[CKT_SESSION_ID_SIZE + 1];
	char program_name[CKT_NAME_MAX + 1];
	char image[CKT_CONTROL_IMAGE_ID];
	uint32_t uid;
	bool written;
	uint64_t bytes; /* until it is written: its estimated size */
	time_t saved;
	int fds[CKT_IMAGE_MEMORY_FILES];
};

/* ---- How much */

static uint64_t total_bytes(const struct ckt_server *server)
{
	uint64_t bytes = 0;
	for (const struct ckt_memory_image *kept = server->kept; kept; kept = kept->next)
		bytes += kept->bytes;
	return bytes;
}

static uint64_t host_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t limit_bytes(const struct ckt_server *server)
{
	const struct ckt_policy_server facts = ckt_policy_server_of(server);
	return server->policy->image_memory_bytes(&facts, host_bytes());
}

/* The number after a key in a file, or the only one in it; false if there is none. */
static bool read_number(const char *path, const char *key, uint64_t *ret_number)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	const char *at = strstr(text, key);
	char *end = NULL;
	*ret_number = at ? strtoull(at + strlen(key), &end, 10) : 0;
	return at && end != at + strlen(key);
}

/* The memory that this host, and the control group that we share with our workers, has left. */
static uint64_t free_bytes(void)
{
	uint64_t available = UINT64_MAX, max, current;
	if (read_number("/proc/meminfo", "MemAvailable:", &available))
		available *= 1024;
	if (read_number("/sys/fs/cgroup/memory.max", "", &max) &&
		read_number("/sys/fs/cgroup/memory.current", "", &current)) {
		uint64_t left = max > current ? max - current : 0;
		available = left < available ? left : available;
	}
	return available;
}

bool ckt_memory_image_has_room(
	const struct ckt_session *session, uint64_t bytes, char buffer[CKT_MESSAGE_MAX])
{
	const struct ckt_policy_server server = ckt_policy_server_of(session->server);
	const struct ckt_image_memory_facts facts = {.identity = session->identity,
		.wanted_bytes = bytes,
		.taken_bytes = total_bytes(session->server),
		.host_bytes = host_bytes(),
		.free_bytes = free_bytes()};
	struct ckt_decision decision;
	session->server->policy->image_memory(&server, &facts, &decision);
	if (decision.answer)
		snprintf(buffer, CKT_MESSAGE_MAX, "%s", decision.reason);
	return !decision.answer;
}

/* ---- One image */

void ckt_memory_image_free(struct ckt_memory_image *kept)
{
	struct ckt_memory_image **place = kept ? &kept->server->kept : NULL;
	if (!kept)
		return;
	while (*place && *place != kept)
		place = &(*place)->next;
	if (*place)
		*place = kept->next;
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		if (kept->fds[i] >= 0)
			close(kept->fds[i]);
	free(kept);
}

static struct ckt_memory_image *find(const struct ckt_server *server, const char *name)
{
	struct ckt_memory_image *kept = server->kept;
	while (kept && (!kept->written || strcmp(kept->name, name) != 0))
		kept = kept->next;
	return kept;
}

struct ckt_memory_image *ckt_memory_image_make(struct ckt_peer *peer, const char *name,
	const struct ckt_session *session, uint64_t memory_bytes, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_server *server = peer->server;
	struct ckt_memory_image *older = find(server, name), *kept = NULL;
	if (!ckt_stage_name_good(name) || strlen(name) > CKT_CONTROL_KEPT_NAME_MAX)
		snprintf(buffer, CKT_MESSAGE_MAX,
			"the name of an image in memory consists of at most %d "
			"characters of a-z, 0-9 and -",
			CKT_CONTROL_KEPT_NAME_MAX);
	else if (ckt_peer_is_anonymous(peer))
		snprintf(buffer, CKT_MESSAGE_MAX,
			"cannot keep image '%s' in memory on %s: over TCP without a "
			"token it would have no owner; use the server's UNIX socket or "
			"a token",
			name, server->host);
	else if (older &&
		(strcmp(older->session, session->id) != 0 || !ckt_peer_may(peer, older->uid)))
		snprintf(buffer, CKT_MESSAGE_MAX,
			"an image '%s' of another session is in memory: choose another "
			"name",
			name);
	else if (ckt_memory_image_has_room(session, memory_bytes, buffer) &&
		!(kept = calloc(1, sizeof *kept)))
		snprintf(buffer, CKT_MESSAGE_MAX, "out of memory");
	if (!kept)
		return NULL;
	*kept = (struct ckt_memory_image){.server = server,
		.uid = ckt_peer_owner(peer),
		.bytes = memory_bytes,
		.next = server->kept};
	snprintf(kept->name, sizeof kept->name, "%s", name);
	snprintf(kept->session, sizeof kept->session, "%s", session->id);
	snprintf(kept->program_name, sizeof kept->program_name, "%s", session->status.program_name);
	server->kept = kept;
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		kept->fds[i] = -1;
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++) {
		kept->fds[i] = memfd_create("cricket-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (kept->fds[i] < 0) {
			snprintf(buffer, CKT_MESSAGE_MAX, "cannot make a memory file: %s",
				strerror(errno));
			ckt_memory_image_free(kept);
			return NULL;
		}
	}
	return kept;
}

static void taken(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_worker_result *res = answer;
	(void)context;
	/* The worker then refuses calls that need the files. */
	if (error || res->status)
		ckt_warning("session %s: its worker accepts no image in memory: %s", session->id,
			error ? strerror(-error) : res->message);
}

int ckt_memory_image_send(const struct ckt_memory_image *kept, struct ckt_session *session)
{
	int error = 0;
	for (u_int i = 0; i < CKT_IMAGE_MEMORY_FILES && !error; i++) {
		struct ckt_worker_image_args args = {.index = i};
		int fd = fcntl(kept->fds[i], F_DUPFD_CLOEXEC, 3);
		error = fd < 0 ? -errno
			       : ckt_session_call(session, CKT_WORKER_MEMORY,
					 (xdrproc_t)xdr_ckt_worker_image_args, &args, fd,
					 (xdrproc_t)xdr_ckt_worker_result,
					 sizeof(struct ckt_worker_result), 0, taken, NULL);
	}
	return error;
}

void ckt_memory_image_commit(struct ckt_memory_image *kept, const char image[CKT_CONTROL_IMAGE_ID])
{
	struct stat st;
	ckt_memory_image_free(find(kept->server, kept->name));
	kept->bytes = 0;
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++) {
		/* Seals the files, so that holders of duplicates can no longer change them. */
		if (fcntl(kept->fds[i], F_ADD_SEALS,
			    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
			ckt_warning(
				"cannot seal image %s in memory: %s", kept->name, strerror(errno));
		kept->bytes += fstat(kept->fds[i], &st) ? 0 : (uint64_t)st.st_blocks * 512;
	}
	memcpy(kept->image, image, sizeof kept->image);
	kept->saved = time(NULL);
	kept->written = true;
	ckt_info("image %s of session %s is in memory, %llu MiB", kept->name, kept->session,
		(unsigned long long)(kept->bytes >> 20));
}

void ckt_memory_image_id(const struct ckt_memory_image *kept, char ret_image[CKT_CONTROL_IMAGE_ID])
{
	memcpy(ret_image, kept->image, sizeof kept->image);
}

bool ckt_memory_image_is_kept(const struct ckt_server *server, const struct ckt_memory_image *kept,
	const char image[CKT_CONTROL_IMAGE_ID])
{
	const struct ckt_memory_image *one = server->kept;
	while (one && one != kept)
		one = one->next;
	return one && memcmp(one->image, image, sizeof one->image) == 0;
}

void ckt_memory_image_fini(struct ckt_server *server)
{
	while (server->kept) {
		if (server->kept->written)
			ckt_warning("image %s of session %s was in memory and ends with the server",
				server->kept->name, server->kept->session);
		ckt_memory_image_free(server->kept);
	}
}

const char *ckt_memory_image_name(const char *stage)
{
	return strncmp(stage, "memory:", 7) == 0 ? stage + 7 : NULL;
}

struct ckt_memory_image *ckt_memory_image_find(struct ckt_peer *peer, const char *name)
{
	struct ckt_memory_image *kept = find(peer->server, name);
	return kept && ckt_peer_may(peer, kept->uid) ? kept : NULL;
}

/* ---- Calls */

void ckt_control_kept_list(struct ckt_peer *peer, void *args, int *passed_fd)
{
	static ckt_control_kept list[CKT_CONTROL_KEPT_MAX];
	ckt_control_kept_res res = {.images = {.images_val = list},
		.bytes = total_bytes(peer->server),
		.limit_bytes = limit_bytes(peer->server)};
	(void)args, (void)passed_fd;
	for (struct ckt_memory_image *kept = peer->server->kept;
		kept && res.images.images_len < CKT_CONTROL_KEPT_MAX; kept = kept->next) {
		if (!kept->written || !ckt_peer_may(peer, kept->uid))
			continue;
		ckt_control_kept *one = &list[res.images.images_len++];
		*one = (ckt_control_kept){.name = kept->name,
			.session = kept->session,
			.program_name = kept->program_name,
			.uid = kept->uid,
			.bytes = kept->bytes,
			.saved = kept->saved};
		memcpy(one->image, kept->image, sizeof one->image);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_kept_res, &res);
}

void ckt_control_kept_remove(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_stage_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {CKT_CONTROL_OK, (char *)""};
	struct ckt_memory_image *kept = ckt_memory_image_find(peer, args->stage);
	(void)passed_fd;
	if (kept)
		ckt_memory_image_free(kept);
	else
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"there is no image '%.64s' in memory on %s, or it belongs to "
			"another user",
			ckt_stage_name_good(args->stage) ? args->stage : "?", peer->server->host);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}
