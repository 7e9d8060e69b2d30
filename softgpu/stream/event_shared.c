/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that processes share for an interprocess event: a page of memory with the number of the
 * latest record and the number of the latest finished record.
 *
 * handle magic | two random numbers, which name the page
 *
 * The page is a POSIX shared memory object of its creator's user.  It is removed with the event.
 * The creator holds a lock on the page as long as it lives, so that others can detect a killed
 * creator.  The next creator removes such pages, and so does cricket-server when a worker ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/stream/event_shared.h"

/* server/daemon/session/worker_leftovers.c uses the same prefix. */
#define CKT_SOFT_EVENT_PREFIX "cricket-shared-event-"

enum { TRIES = 16 };

static const char magic[8] = "SOFTEVT1";

struct page {
	_Atomic uint64_t recorded, done;
	_Atomic int32_t recorder; /* process of the latest record */
};

struct ckt_soft_shared_event {
	atomic_uint refs;
	/* created here and not opened from a handle: this process removes the name */
	atomic_bool own;
	int lock_fd; /* the creator's; otherwise -1 */
	uint64_t id[2];
	struct page *page;
};

struct handle {
	char magic[8];
	uint64_t id[2];
};
_Static_assert(sizeof(struct handle) <= sizeof(CUipcEventHandle), "it fits");

static void name_of(const uint64_t id[2], char name[64])
{
	snprintf(name, 64, "/" CKT_SOFT_EVENT_PREFIX "%016" PRIx64 "%016" PRIx64, id[0], id[1]);
}

static struct ckt_soft_shared_event *map(const uint64_t id[2], bool own)
{
	char name[64];
	struct stat status;
	struct ckt_soft_shared_event *shared = calloc(1, sizeof(*shared));
	name_of(id, name);
	int fd = shared ? shm_open(name, O_RDWR | (own ? O_CREAT | O_EXCL : 0), 0600) : -1;
	bool good = fd >= 0 && (!own || ftruncate(fd, sizeof(struct page)) == 0) &&
		fstat(fd, &status) == 0 && status.st_size == sizeof(struct page);
	void *page = good
		? mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		: MAP_FAILED;
	/* A sweep may have removed the page before it was locked. */
	if (own && page != MAP_FAILED &&
		(flock(fd, LOCK_SH | LOCK_NB) || fstat(fd, &status) || !status.st_nlink)) {
		munmap(page, sizeof(struct page));
		page = MAP_FAILED;
	}
	if (page == MAP_FAILED) {
		if (own && fd >= 0)
			shm_unlink(name);
		if (fd >= 0)
			close(fd);
		free(shared);
		return NULL;
	}
	if (!own)
		close(fd);
	*shared = (struct ckt_soft_shared_event){.refs = 1,
		.own = own,
		.lock_fd = own ? fd : -1,
		.id = {id[0], id[1]},
		.page = page};
	return shared;
}

/* Removes pages of this user whose creators are dead. */
void ckt_soft_shared_event_sweep(void)
{
	DIR *dir = opendir("/dev/shm");
	struct stat status;
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, CKT_SOFT_EVENT_PREFIX, strlen(CKT_SOFT_EVENT_PREFIX)))
			continue;
		int fd = openat(
			dirfd(dir), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
			flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

struct ckt_soft_shared_event *ckt_soft_shared_event_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ckt_soft_shared_event *shared = NULL;
	uint64_t id[2];
	pthread_once(&once, ckt_soft_shared_event_sweep);
	/* A sweep in another process may lock or remove a new page, so try again. */
	for (int i = 0; i < TRIES && !shared && getrandom(id, sizeof(id), 0) == sizeof(id); i++)
		shared = map(id, true);
	return shared;
}

struct ckt_soft_shared_event *ckt_soft_shared_event_open(const CUipcEventHandle *from)
{
	struct handle handle;
	memcpy(&handle, from, sizeof(handle));
	return memcmp(handle.magic, magic, sizeof(magic)) == 0 ? map(handle.id, false) : NULL;
}

bool ckt_soft_shared_event_handle(const struct ckt_soft_shared_event *shared, CUipcEventHandle *ret)
{
	struct handle handle = {.id = {shared->id[0], shared->id[1]}};
	if (!shared->own)
		return false;
	memcpy(handle.magic, magic, sizeof(magic));
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return true;
}

void ckt_soft_shared_event_ref(struct ckt_soft_shared_event *shared)
{
	atomic_fetch_add(&shared->refs, 1);
}

void ckt_soft_shared_event_withdraw(struct ckt_soft_shared_event *shared)
{
	char name[64];
	name_of(shared->id, name);
	if (atomic_exchange(&shared->own, false))
		shm_unlink(name);
}

void ckt_soft_shared_event_put(struct ckt_soft_shared_event *shared)
{
	if (!shared || atomic_fetch_sub(&shared->refs, 1) != 1)
		return;
	ckt_soft_shared_event_withdraw(shared);
	if (shared->lock_fd >= 0)
		close(shared->lock_fd);
	munmap(shared->page, sizeof(*shared->page));
	free(shared);
}

uint64_t ckt_soft_shared_event_begin(struct ckt_soft_shared_event *shared)
{
	atomic_store(&shared->page->recorder, getpid());
	return atomic_fetch_add(&shared->page->recorded, 1) + 1;
}

void ckt_soft_shared_event_finish(struct ckt_soft_shared_event *shared, uint64_t number)
{
	uint64_t done = atomic_load(&shared->page->done);
	while (done < number && !atomic_compare_exchange_weak(&shared->page->done, &done, number))
		continue;
}

uint64_t ckt_soft_shared_event_latest(const struct ckt_soft_shared_event *shared)
{
	return atomic_load(&shared->page->recorded);
}

bool ckt_soft_shared_event_reached(const struct ckt_soft_shared_event *shared, uint64_t number)
{
	return atomic_load(&shared->page->done) >= number;
}

void ckt_soft_shared_event_wait(const struct ckt_soft_shared_event *shared, uint64_t number)
{
	/* A dead process does not finish its records, so stop waiting for them. */
	while (!ckt_soft_shared_event_reached(shared, number)) {
		if (kill(atomic_load(&shared->page->recorder), 0) != 0 && errno == ESRCH)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
}
