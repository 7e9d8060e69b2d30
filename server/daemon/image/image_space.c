/* Bytes in --image-dir; see admission.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/daemon/policy/admission.h"
#include "server/daemon/server.h"

enum { LEFT_PART = 20 }; /* of the file system, which stays for others */

struct ckt_space {
	struct ckt_space *next;
	unsigned refs;
	struct ckt_identity identity;
	uint64_t bytes, max_bytes; /* max_bytes 0: half of the file system */
	bool trusted;
};

/* One lock for all: a piece of an image is a megabyte. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_space *spaces;

struct ckt_space *ckt_space_get(
	const struct ckt_server *server, const struct ckt_identity *identity)
{
	pthread_mutex_lock(&lock);
	struct ckt_space *space = spaces;
	while (space && !ckt_identity_same(&space->identity, identity))
		space = space->next;
	if (space) {
		space->refs++;
	} else if ((space = calloc(1, sizeof *space))) {
		*space = (struct ckt_space){.next = spaces,
			.refs = 1,
			.identity = *identity,
			.max_bytes = server->options.image_space,
			.trusted = identity->kind == CKT_IDENTITY_USER &&
				(identity->uid == 0 || identity->uid == geteuid())};
		spaces = space;
	}
	pthread_mutex_unlock(&lock);
	return space;
}

struct ckt_space *ckt_space_ref(struct ckt_space *space)
{
	pthread_mutex_lock(&lock);
	space->refs++;
	pthread_mutex_unlock(&lock);
	return space;
}

void ckt_space_put(struct ckt_space *space)
{
	if (!space)
		return;
	pthread_mutex_lock(&lock);
	space->refs--;
	for (struct ckt_space **place = &spaces; *place;) {
		struct ckt_space *one = *place;
		/* What is kept on the disk goes on counting. */
		if (one->refs || one->bytes) {
			place = &one->next;
		} else {
			*place = one->next;
			free(one);
		}
	}
	pthread_mutex_unlock(&lock);
}

int ckt_space_take(struct ckt_space *space, int dir_fd, uint64_t bytes)
{
	struct statvfs fs;
	int result = 0;
	bool known = fstatvfs(dir_fd, &fs) == 0 && fs.f_blocks;
	uint64_t total = known ? (uint64_t)fs.f_blocks * fs.f_frsize : 0,
		 left = known ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
	pthread_mutex_lock(&lock);
	uint64_t max = space->max_bytes ? space->max_bytes : known ? total / 2 : UINT64_MAX;
	if (space->trusted)
		result = 0;
	else if (bytes > max || space->bytes > max - bytes)
		result = -EDQUOT;
	else if (known && left < total / LEFT_PART + bytes)
		result = -ENOSPC;
	if (!result)
		space->bytes += bytes;
	pthread_mutex_unlock(&lock);
	return result;
}

void ckt_space_note(struct ckt_space *space, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	space->bytes += bytes;
	pthread_mutex_unlock(&lock);
}

void ckt_space_release(struct ckt_space *space, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	space->bytes -= bytes < space->bytes ? bytes : space->bytes;
	pthread_mutex_unlock(&lock);
}

uint64_t ckt_space_taken(const struct ckt_space *space)
{
	pthread_mutex_lock(&lock);
	uint64_t bytes = space->bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}
