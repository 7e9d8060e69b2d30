/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in --image-dir; see image_space.h. */
#include "server/daemon/image/image_space.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "server/daemon/policy/policy.h"
#include "server/daemon/server.h"

struct ckt_image_space {
	struct ckt_image_space *next;
	unsigned refs;
	struct ckt_identity identity;
	const struct ckt_policy *policy;
	uint64_t bytes, limit_bytes; /* limit_bytes: see ckt_image_bytes_facts */
};

/* One lock for all: an image's piece is a megabyte, so it is taken rarely. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_image_space *spaces;

struct ckt_image_space *ckt_daemon_image_space_get(
	const struct ckt_server *server, const struct ckt_identity *identity)
{
	pthread_mutex_lock(&lock);
	struct ckt_image_space *space = spaces;
	while (space && !ckt_identity_same(&space->identity, identity))
		space = space->next;
	if (space) {
		space->refs++;
	} else if ((space = calloc(1, sizeof *space))) {
		*space = (struct ckt_image_space){.next = spaces,
			.refs = 1,
			.identity = *identity,
			.policy = server->policy,
			.limit_bytes = server->options.image_space};
		spaces = space;
	}
	pthread_mutex_unlock(&lock);
	return space;
}

struct ckt_image_space *ckt_daemon_image_space_ref(struct ckt_image_space *space)
{
	pthread_mutex_lock(&lock);
	space->refs++;
	pthread_mutex_unlock(&lock);
	return space;
}

void ckt_daemon_image_space_put(struct ckt_image_space *space)
{
	if (!space)
		return;
	pthread_mutex_lock(&lock);
	space->refs--;
	for (struct ckt_image_space **place = &spaces; *place;) {
		struct ckt_image_space *one = *place;
		/* Images that are kept on the disk still count. */
		if (one->refs || one->bytes) {
			place = &one->next;
		} else {
			*place = one->next;
			free(one);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Outside the lock: a file system that hangs must not block other identities. */
static struct ckt_image_bytes_facts facts_of(
	const struct ckt_image_space *space, int dir_fd, uint64_t wanted_bytes)
{
	struct statvfs fs;
	struct ckt_image_bytes_facts facts = {.identity = space->identity,
		.limit_bytes = space->limit_bytes,
		.wanted_bytes = wanted_bytes,
		.file_system_known = fstatvfs(dir_fd, &fs) == 0 && fs.f_blocks};
	if (facts.file_system_known) {
		facts.file_system_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
		facts.free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	}
	return facts;
}

void ckt_daemon_image_space_check(struct ckt_image_space *space, int dir_fd, uint64_t bytes,
	struct ckt_decision *ret_decision)
{
	struct ckt_image_bytes_facts facts = facts_of(space, dir_fd, bytes);
	facts.taken_bytes = ckt_daemon_image_space_taken(space);
	space->policy->image_bytes(&facts, ret_decision);
}

int ckt_daemon_image_space_take(struct ckt_image_space *space, int dir_fd, uint64_t bytes)
{
	struct ckt_decision decision;
	struct ckt_image_bytes_facts facts = facts_of(space, dir_fd, bytes);
	pthread_mutex_lock(&lock);
	facts.taken_bytes = space->bytes;
	space->policy->image_bytes(&facts, &decision);
	if (!decision.answer)
		space->bytes += bytes;
	pthread_mutex_unlock(&lock);
	return !decision.answer ? 0 : decision.answer == CKT_POLICY_NO_SPACE ? -ENOSPC : -EDQUOT;
}

void ckt_daemon_image_space_note(struct ckt_image_space *space, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	space->bytes += bytes;
	pthread_mutex_unlock(&lock);
}

void ckt_daemon_image_space_release(struct ckt_image_space *space, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	space->bytes -= bytes < space->bytes ? bytes : space->bytes;
	pthread_mutex_unlock(&lock);
}

uint64_t ckt_daemon_image_space_taken(const struct ckt_image_space *space)
{
	pthread_mutex_lock(&lock);
	uint64_t bytes = space->bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}
