/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/preload/system_calls.c: each exported name with a buffer that the kernel cannot use: it is
 * offered to whoever has such memory, the kernel gets the address that comes back, and what it
 * wrote is told.  Without such memory the calls are libc's.
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/preload/system_call_buffers.h"
#include "tests/unit/suite.h"

enum { SIZE = 1 << 16, PART = 1000 };

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
	struct sockaddr *from, socklen_t *length);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);

/* Memory as managed memory that the device has: closed to the program, and open elsewhere. */
static char *closed, *twin;
static int file, pair[2];
static FILE *stream;
static unsigned opened_to_read, opened_to_write;
static size_t told;

static bool holds(const void *address, size_t size)
{
	uintptr_t at = (uintptr_t)address;
	return at < (uintptr_t)closed + SIZE && (uintptr_t)closed < at + size;
}

static void *open_memory(void *address, size_t size, bool write)
{
	*(write ? &opened_to_write : &opened_to_read) += 1;
	return twin + ((char *)address - closed);
}

static void written(void *address, size_t size)
{
	told += size;
}

static const struct ckt_buffers fake = {.holds = holds, .open = open_memory, .written = written};

static void begin(void)
{
	int memory = memfd_create("closed", 0);
	static char text[SIZE];
	MUST(ftruncate(memory, SIZE), 0);
	closed = mmap(NULL, SIZE, PROT_NONE, MAP_SHARED, memory, 0);
	twin = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	close(memory);
	file = memfd_create("file", 0);
	memset(text, 'f', sizeof text);
	MUST(pwrite(file, text, SIZE, 0), SIZE);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	stream = fdopen(dup(file), "r+");
	cricket_buffers = &fake;
}

static void end(void)
{
	cricket_buffers = NULL;
	fclose(stream);
	close(file);
	close(pair[0]);
	close(pair[1]);
	munmap(closed, SIZE);
	munmap(twin, SIZE);
}

/* ---- What comes in: PART bytes of 'f' at the place; each gives how many it says there were. */

static struct iovec vector(void)
{
	return (struct iovec){.iov_base = closed + 100, .iov_len = PART};
}

static void packet(void)
{
	char bytes[PART];
	memset(bytes, 'f', sizeof bytes);
	IS(send(pair[1], bytes, PART, 0), PART);
}

static ssize_t in_readv(void)
{
	struct iovec v = vector();
	return readv(file, &v, 1);
}

static ssize_t in_preadv(unsigned which)
{
	struct iovec v = vector();
	switch (which) {
	case 0:
		return preadv(file, &v, 1, 0);
	case 1:
		return preadv64(file, &v, 1, 0);
	case 2:
		return preadv2(file, &v, 1, 0, 0);
	default:
		return preadv64v2(file, &v, 1, 0, 0);
	}
}

static ssize_t in_message(void)
{
	struct iovec v = vector();
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_flags = 7};
	packet();
	ssize_t got = recvmsg(pair[0], &m, 0);
	IS(m.msg_flags & ~MSG_EOR, 0);
	YES(m.msg_iov == &v);
	return got;
}

static ssize_t in_messages(void)
{
	struct iovec v = {.iov_base = twin + 100, .iov_len = PART};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	packet();
	/*
	 * Several go as they are: the buffer has to be open by now, which only the real one does.
	 */
	IS(recvmmsg(pair[0], &m, 1, 0, NULL), 1);
	told += m.msg_len;
	opened_to_write++;
	return m.msg_len;
}

static ssize_t in_other_process(void)
{
	static char bytes[PART];
	struct iovec v = vector(), there = {.iov_base = bytes, .iov_len = PART};
	memset(bytes, 'f', sizeof bytes);
	ssize_t got = process_vm_readv(getpid(), &v, 1, &there, 1, 0);
	if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
		memset(twin + 100, 'f', PART); /* not allowed here */
		told = got = PART;
	}
	return got;
}

static ssize_t come_in(unsigned which)
{
	char *at = closed + 100;
	lseek(file, 0, SEEK_SET);
	rewind(stream);
	switch (which) {
	case 0:
		return read(file, at, PART);
	case 1:
		return __read_chk(file, at, PART, PART);
	case 2:
		return pread(file, at, PART, 0);
	case 3:
		return pread64(file, at, PART, 0);
	case 4:
		return __pread_chk(file, at, PART, 0, PART);
	case 5:
		return __pread64_chk(file, at, PART, 0, PART);
	case 6:
		return in_readv();
	case 7:
	case 8:
	case 9:
	case 10:
		return in_preadv(which - 7);
	case 11:
		packet();
		return recv(pair[0], at, PART, 0);
	case 12:
		packet();
		return __recv_chk(pair[0], at, PART, PART, 0);
	case 13:
		packet();
		return recvfrom(pair[0], at, PART, 0, NULL, NULL);
	case 14:
		packet();
		return __recvfrom_chk(pair[0], at, PART, PART, 0, NULL, NULL);
	case 15:
		return in_message();
	case 16:
		return in_messages();
	case 17:
		return (ssize_t)fread(at, 1, PART, stream);
	case 18:
		return (ssize_t)fread_unlocked(at, 1, PART, stream);
	case 19:
		return (ssize_t)__fread_chk(at, PART, 1, PART, stream);
	case 20:
		return (ssize_t)__fread_unlocked_chk(at, PART, 1, PART, stream);
	case 21:
		return in_other_process();
	default:
		return -1;
	}
}

static void test_in(void)
{
	begin();
	unsigned which = 0;
	for (; which < 22; which++) {
		memset(twin, 0, SIZE);
		opened_to_read = opened_to_write = 0;
		told = 0;
		IS(come_in(which), PART);
		IS(opened_to_write, 1);
		IS(opened_to_read, 0);
		/* Of a stream's elements one more may have begun to arrive; here there is none. */
		IS(told, PART);
		IS(twin[99], 0);
		IS(twin[100], 'f');
		IS(twin[99 + PART], 'f');
		IS(twin[100 + PART], 0);
	}
	/* What fails tells nothing. */
	told = 0;
	errno = 0;
	IS(read(-1, closed, PART), -1);
	IS(errno, EBADF);
	IS(readv(file, NULL, 0), 0);
	IS(told, 0);
	end();
}

/* ---- What goes out: PART bytes of 't', to where they can be looked at. */

static ssize_t go_out(unsigned which)
{
	struct iovec v = vector();
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	char *at = closed + 100;
	lseek(file, 0, SEEK_SET);
	rewind(stream);
	switch (which) {
	case 0:
		return write(file, at, PART);
	case 1:
		return pwrite(file, at, PART, 0);
	case 2:
		return pwrite64(file, at, PART, 0);
	case 3:
		return writev(file, &v, 1);
	case 4:
		return pwritev(file, &v, 1, 0);
	case 5:
		return pwritev64(file, &v, 1, 0);
	case 6:
		return pwritev2(file, &v, 1, 0, 0);
	case 7:
		return pwritev64v2(file, &v, 1, 0, 0);
	case 8: {
		ssize_t wrote = (ssize_t)fwrite(at, 1, PART, stream);
		fflush(stream);
		return wrote;
	}
	case 9: {
		ssize_t wrote = (ssize_t)fwrite_unlocked(at, 1, PART, stream);
		fflush(stream);
		return wrote;
	}
	case 10:
		return send(pair[1], at, PART, 0);
	case 11:
		return sendto(pair[1], at, PART, 0, NULL, 0);
	default:
		return sendmsg(pair[1], &m, 0);
	}
}

static void test_out(void)
{
	begin();
	char seen[PART + 1];
	memset(twin, 't', SIZE);
	for (unsigned which = 0; which < 13; which++) {
		static const char zeros[PART + 1];
		opened_to_read = opened_to_write = 0;
		told = 0;
		memset(seen, 0, sizeof seen);
		IS(pwrite(file, zeros, PART + 1, 0), PART + 1);
		IS(go_out(which), PART);
		IS(opened_to_read, 1);
		IS(opened_to_write, 0);
		IS(told, 0);
		if (which < 10)
			IS(pread(file, seen, PART + 1, 0), PART + 1);
		else
			IS(recv(pair[0], seen, PART + 1, 0), PART);
		IS(seen[0], 't');
		IS(seen[PART - 1], 't');
		IS(seen[PART], 0);
	}
	end();
}

/* ---- Vectors of which one part is such memory, shorter than they are. */

static void test_parts(void)
{
	begin();
	char own[50] = {0};
	struct iovec parts[] = {{.iov_base = own, .iov_len = sizeof own},
		{.iov_base = closed, .iov_len = 100}, {.iov_base = closed + 500, .iov_len = 100}};
	told = 0;
	IS(ftruncate(file, 170), 0);
	IS(preadv(file, parts, 3, 0), 170);
	IS(told, 120);
	IS(own[49], 'f');
	IS(twin[99], 'f');
	IS(twin[519], 'f');
	IS(twin[520], 0);
	end();
}

/* Without such memory, and where there was some but nobody has any of it now. */
static void test_plain(void)
{
	char bytes[8];
	IS(cricket_buffers == NULL, true);
	begin();
	opened_to_write = 0;
	IS(pread(file, bytes, sizeof bytes, 0), sizeof bytes);
	IS(bytes[7], 'f');
	IS(opened_to_write, 0);
	end();
}

static void *wait_for_bytes(void *fd)
{
	char byte;
	return (void *)(intptr_t)read(*(int *)fd, &byte, 1);
}

/*
 * They stay cancellation points.  AddressSanitizer's own end of a cancelled thread does not bear
 * the stack that it finds.
 */
static void test_cancel(void)
{
#ifdef __SANITIZE_ADDRESS__
	(void)wait_for_bytes;
	return;
#endif
	pthread_t thread;
	void *result;
	int ends[2];
	begin();
	MUST(pipe(ends), 0);
	MUST(pthread_create(&thread, NULL, wait_for_bytes, &ends[0]), 0);
	IS(pthread_cancel(thread), 0);
	IS(pthread_join(thread, &result), 0);
	YES(result == PTHREAD_CANCELED);
	close(ends[0]);
	close(ends[1]);
	end();
}

UNIT_SUITE(system_calls, {"in", test_in}, {"out", test_out}, {"parts", test_parts},
	{"plain", test_plain}, {"cancel", test_cancel})
