/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the program's pinned memory; see hostmem.h. */
#include "client/conn/hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "base/fork.h"
#include "rpc/hostmem.h"
#include "base/log.h"
#include "rpc/net.h"
#include "rpc/record.h"

enum { FILL_TIMEOUT_MS = 60000 };

int (*_Atomic ckt_host_memory_lost)(struct ckt_transport *to);

static struct {
	pthread_mutex_t lock;
	enum { NONE, MADE, SHARED, LOST } state;
	int fd;
	dev_t device;
	ino_t inode;
	uint64_t bytes;      /* of the file */
	uint64_t base, room; /* the addresses, as granted */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void forked(void)
{
	memory.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
CKT_IN_CHILD(forked);

/*
 * Checks the file: the program may have closed the descriptor and opened another with its number.
 */
static bool is_ours(void)
{
	struct stat st;
	return memory.fd >= 0 && fstat(memory.fd, &st) == 0 && st.st_dev == memory.device &&
		st.st_ino == memory.inode;
}

static void make(void)
{
	struct stat st;
	memory.state = LOST;
	int fd = memfd_create("cricket-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return;
	/* The seal ensures that pages cannot go away while the GPU uses them. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) || fstat(fd, &st)) {
		close(fd);
		return;
	}
	memory.fd = fd;
	memory.device = st.st_dev;
	memory.inode = st.st_ino;
	memory.state = MADE;
}

int ckt_host_memory_file(void)
{
	int saved_errno = errno;
	pthread_mutex_lock(&memory.lock);
	if (memory.state == NONE && ckt_settings.share_memory)
		make();
	int fd = memory.state != NONE && memory.state != LOST && is_ours() ? memory.fd : -1;
	pthread_mutex_unlock(&memory.lock);
	errno = saved_errno;
	return fd;
}

static uint64_t capability(const struct ckt_hello_ok *ok, const char *name)
{
	for (u_int i = 0; i < ok->capabilities.capabilities_len; i++)
		if (strcmp(ok->capabilities.capabilities_val[i].name, name) == 0)
			return ok->capabilities.capabilities_val[i].value;
	return 0;
}

bool ckt_host_memory_answer(const struct ckt_hello_ok *ok)
{
	uint64_t base = capability(ok, CKT_CAPABILITY_HOST_BASE),
		 room = capability(ok, CKT_CAPABILITY_HOST_BYTES);
	bool granted = base && room && base % CKT_HOST_GRAIN == 0 && base + room > base;
	pthread_mutex_lock(&memory.lock);
	if (granted && memory.state == MADE) {
		memory.base = base;
		memory.room = room;
		memory.state = SHARED;
	} else if (!granted || memory.state != SHARED || base != memory.base ||
		room != memory.room) {
		if (memory.state == SHARED)
			ckt_debug("pinned memory is no longer shared with the worker: "
				  "copies keep it coherent");
		memory.state = LOST;
	}
	bool fill = memory.state == LOST && capability(ok, CKT_CAPABILITY_HOST_UNFILLED);
	pthread_mutex_unlock(&memory.lock);
	return fill;
}

bool ckt_host_memory_place(uint64_t *ret_base, uint64_t *ret_bytes)
{
	pthread_mutex_lock(&memory.lock);
	bool shared = memory.state == SHARED && is_ours();
	*ret_base = memory.base;
	*ret_bytes = memory.room;
	pthread_mutex_unlock(&memory.lock);
	return shared;
}

bool ckt_host_memory_map(uint64_t offset, uint64_t size)
{
	int saved_errno = errno;
	pthread_mutex_lock(&memory.lock);
	bool good = memory.state == SHARED && is_ours() && offset <= memory.room &&
		size <= memory.room - offset;
	if (good && memory.bytes < offset + size) {
		good = ftruncate(memory.fd, (off_t)(offset + size)) == 0;
		memory.bytes = good ? offset + size : memory.bytes;
	}
	if (good) {
		void *wanted = (void *)(uintptr_t)(memory.base + offset);
		void *place = mmap(wanted, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_FIXED_NOREPLACE, memory.fd, (off_t)offset);
		/* An old kernel ignores the flag and takes the address as a hint. */
		if (place != MAP_FAILED && place != wanted)
			munmap(place, size);
		good = place == wanted;
	}
	pthread_mutex_unlock(&memory.lock);
	errno = saved_errno;
	return good;
}

void ckt_host_memory_unmap(uint64_t offset, uint64_t size)
{
	int saved_errno = errno;
	pthread_mutex_lock(&memory.lock);
	munmap((void *)(uintptr_t)(memory.base + offset), size);
	if (is_ours())
		fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			(off_t)size);
	pthread_mutex_unlock(&memory.lock);
	errno = saved_errno;
}

static int fill(struct ckt_transport *to, uint64_t address, const void *data, uint64_t size)
{
	uint8_t *record;
	size_t record_size;
	ckt_host_fill_args args = {
		.address = address, .data = {.data_len = (u_int)size, .data_val = (char *)data}};
	int result = ckt_net_encode_call(0, CRICKET_SESSION_PROG, CKT_SESSION_HOST_FILL,
		(xdrproc_t)xdr_ckt_host_fill_args, &args, &record, &record_size);
	if (result)
		return result;
	result = ckt_record_write(to, record, record_size, ckt_net_now_ms() + FILL_TIMEOUT_MS, -1);
	free(record);
	return result;
}

int ckt_host_memory_fill(
	struct ckt_transport *to, uint64_t address, const void *data, uint64_t size)
{
	int result = size ? 0 : fill(to, 0, NULL, 0);
	for (uint64_t at = 0; at < size && !result; at += CKT_HOST_FILL_MAX)
		result = fill(to, address + at, (const uint8_t *)data + at,
			size - at < CKT_HOST_FILL_MAX ? size - at : CKT_HOST_FILL_MAX);
	return result;
}
