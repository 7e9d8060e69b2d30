/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that processes share for an interprocess event: a page of memory with the number of the
 * latest record and the number of the latest finished record.
 *
 * The page is a file without a name (memfd), sealed in its size, so that no other process can take
 * it away from under a mapping.  It is gone with the last process that has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cudacommon/event_handle.h"
#include "softgpu/stream/event_shared.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

struct page {
	uint64_t id[2]; /* of the handle */
	_Atomic uint64_t recorded, done;
	_Atomic int32_t recorder; /* process of the latest record */
};

struct ckt_soft_shared_event {
	atomic_uint refs;
	/* the creator's, until it destroys the event; -1 for one that was opened from a handle */
	atomic_int fd;
	struct page *page;
};

/* The descriptor stays the caller's.  NULL also if it is no page of an event. */
static struct ckt_soft_shared_event *map(int fd)
{
	struct stat status;
	struct ckt_soft_shared_event *shared = calloc(1, sizeof(*shared));
	bool good = shared && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS &&
		fstat(fd, &status) == 0 && status.st_size == sizeof(struct page);
	void *page = good
		? mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		: MAP_FAILED;
	if (page == MAP_FAILED) {
		free(shared);
		return NULL;
	}
	*shared = (struct ckt_soft_shared_event){.refs = 1, .fd = -1, .page = page};
	return shared;
}

struct ckt_soft_shared_event *ckt_soft_shared_event_new(void)
{
	struct ckt_soft_shared_event *shared = NULL;
	uint64_t id[2];
	int fd = memfd_create("cricket-shared-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && getrandom(id, sizeof(id), 0) == sizeof(id) &&
		ftruncate(fd, sizeof(struct page)) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		shared = map(fd);
	if (!shared) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	memcpy(shared->page->id, id, sizeof(id));
	atomic_store(&shared->fd, fd);
	return shared;
}

/* The caller's; -1. */
static int open_page(const struct ckt_event_handle *handle)
{
	char path[64];
	if (handle->process == 0 || handle->process == getpid())
		return fcntl(handle->descriptor, F_DUPFD_CLOEXEC, 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->process, handle->descriptor);
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

struct ckt_soft_shared_event *ckt_soft_shared_event_open(const CUipcEventHandle *from)
{
	struct ckt_event_handle handle;
	if (!ckt_event_handle_read(from, &handle))
		return NULL;
	int fd = open_page(&handle);
	struct ckt_soft_shared_event *shared = fd >= 0 ? map(fd) : NULL;
	if (fd >= 0)
		close(fd);
	/* The descriptor may have come to be another event's. */
	if (shared && memcmp(shared->page->id, handle.id, sizeof(handle.id)) != 0) {
		ckt_soft_shared_event_put(shared);
		shared = NULL;
	}
	return shared;
}

bool ckt_soft_shared_event_handle(const struct ckt_soft_shared_event *shared, CUipcEventHandle *ret)
{
	struct ckt_event_handle handle = {
		.process = getpid(), .descriptor = atomic_load(&shared->fd)};
	if (handle.descriptor < 0)
		return false;
	memcpy(handle.id, shared->page->id, sizeof(handle.id));
	ckt_event_handle_write(&handle, ret);
	return true;
}

void ckt_soft_shared_event_ref(struct ckt_soft_shared_event *shared)
{
	atomic_fetch_add(&shared->refs, 1);
}

void ckt_soft_shared_event_withdraw(struct ckt_soft_shared_event *shared)
{
	int fd = atomic_exchange(&shared->fd, -1);
	if (fd >= 0)
		close(fd);
}

void ckt_soft_shared_event_put(struct ckt_soft_shared_event *shared)
{
	if (!shared || atomic_fetch_sub(&shared->refs, 1) != 1)
		return;
	ckt_soft_shared_event_withdraw(shared);
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
