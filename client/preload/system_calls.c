/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read, write, send, receive and their families, and fread and fwrite, as libcricket-client.so
 * exports them.  They accept buffers in managed memory, as native calls do (system_call_buffers.h).
 * fread and fwrite are here because libc makes their system calls without a name that this library
 * could replace.
 *
 * In a program without such memory each function is a load, a branch and a jump to the next
 * definition of its name.  The constructor finds these definitions; a call that runs earlier finds
 * them itself.  This file takes no lock, allocates nothing and uses no thread-local variable.  So
 * calls from constructors, signal handlers and children of vfork work as in libc, and a thread can
 * be cancelled in them.
 */
#undef _FILE_OFFSET_BITS /* pread and pread64 are different names */
#undef _FORTIFY_SOURCE   /* this file defines the functions themselves */
#define _FORTIFY_SOURCE 0

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/preload/system_call_buffers.h"

#undef fread_unlocked
#undef fwrite_unlocked

#define EXPORT __attribute__((visibility("default")))
#define RARELY(condition) __builtin_expect(condition, 0)

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
	struct sockaddr *from, socklen_t *length);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);

/* Every exported name. */
/* A list of names, not of statements. */
/* clang-format off */
#define NAMES(X) \
	X(read) X(__read_chk) X(pread) X(pread64) X(__pread_chk) X(__pread64_chk) X(readv) X(preadv) X(preadv64) X(preadv2) X(preadv64v2) \
	X(write) X(pwrite) X(pwrite64) X(writev) X(pwritev) X(pwritev64) X(pwritev2) X(pwritev64v2) \
	X(recv) X(__recv_chk) X(recvfrom) X(__recvfrom_chk) X(recvmsg) X(recvmmsg) X(send) X(sendto) X(sendmsg) X(sendmmsg) \
	X(fread) X(fread_unlocked) X(__fread_chk) X(__fread_unlocked_chk) X(fwrite) X(fwrite_unlocked) \
	X(process_vm_readv) X(process_vm_writev)
/* clang-format on */

#define POINTER(name) __typeof__(&name) name;
static struct {
	NAMES(POINTER)
} next;

/* The value of `cricket_buffers` until `next` is filled, so that one load checks both. */
static const struct ckt_buffers not_yet;
__attribute__((visibility("protected"))) const struct ckt_buffers *_Atomic cricket_buffers =
	&not_yet;
static _Atomic(bool) resolved;

static ssize_t absent(void)
{
	errno = ENOSYS;
	return -1;
}

static void *find_next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	/* An old libc lacks some functions. */
	return found ? found : (void *)absent;
}

__attribute__((constructor)) static void resolve(void)
{
	const struct ckt_buffers *expected = &not_yet;
	int saved = errno;
#define RESOLVE(name) next.name = (__typeof__(next.name))find_next(#name);
	NAMES(RESOLVE)
	resolved = true;
	__atomic_compare_exchange_n((const struct ckt_buffers **)&cricket_buffers, &expected, NULL,
		false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	errno = saved;
}

/* The functions of libcuda.so.1; NULL if it has no such memory. */
static const struct ckt_buffers *offered(void)
{
	if (!resolved)
		resolve();
	const struct ckt_buffers *buffers = cricket_buffers;
	return buffers == &not_yet ? NULL : buffers;
}

/* Precondition of all code below: libcuda.so.1 has set its functions, which then stay set. */
static bool holds(const void *memory, size_t size)
{
	return cricket_buffers->holds(memory, size);
}

static void *to_write(void *memory, size_t size)
{
	return holds(memory, size) ? cricket_buffers->open(memory, size, true) : memory;
}

static const void *to_read(const void *memory, size_t size)
{
	return holds(memory, size) ? cricket_buffers->open((void *)memory, size, false) : memory;
}

static ssize_t wrote(void *memory, ssize_t size)
{
	if (size > 0 && holds(memory, (size_t)size))
		cricket_buffers->written(memory, (size_t)size);
	return size;
}

#define QUICK(name, ...)                                            \
	do {                                                        \
		if (!RARELY(cricket_buffers != NULL) || !offered()) \
			return next.name(__VA_ARGS__);              \
	} while (0)

/* ---- One buffer */

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
	QUICK(read, fd, buffer, size);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.read(fd, place, size));
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	QUICK(__read_chk, fd, buffer, size, room);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.__read_chk(fd, place, size, room));
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	QUICK(pread, fd, buffer, size, offset);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.pread(fd, place, size, offset));
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
	QUICK(pread64, fd, buffer, size, offset);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.pread64(fd, place, size, offset));
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room)
{
	QUICK(__pread_chk, fd, buffer, size, offset, room);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.__pread_chk(fd, place, size, offset, room));
}

EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room)
{
	QUICK(__pread64_chk, fd, buffer, size, offset, room);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.__pread64_chk(fd, place, size, offset, room));
}

EXPORT ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	QUICK(recv, fd, buffer, size, flags);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.recv(fd, place, size, flags));
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
	QUICK(__recv_chk, fd, buffer, size, room, flags);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.__recv_chk(fd, place, size, room, flags));
}

EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t size, int flags,
	struct sockaddr *restrict from, socklen_t *restrict length)
{
	QUICK(recvfrom, fd, buffer, size, flags, from, length);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.recvfrom(fd, place, size, flags, from, length));
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
	struct sockaddr *from, socklen_t *length)
{
	QUICK(__recvfrom_chk, fd, buffer, size, room, flags, from, length);
	void *place = to_write(buffer, size);
	return wrote(buffer, next.__recvfrom_chk(fd, place, size, room, flags, from, length));
}

EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
	QUICK(write, fd, buffer, size);
	const void *place = to_read(buffer, size);
	return next.write(fd, place, size);
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	QUICK(pwrite, fd, buffer, size, offset);
	const void *place = to_read(buffer, size);
	return next.pwrite(fd, place, size, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset)
{
	QUICK(pwrite64, fd, buffer, size, offset);
	const void *place = to_read(buffer, size);
	return next.pwrite64(fd, place, size, offset);
}

EXPORT ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
	QUICK(send, fd, buffer, size, flags);
	const void *place = to_read(buffer, size);
	return next.send(fd, place, size, flags);
}

EXPORT ssize_t sendto(int fd, const void *buffer, size_t size, int flags, const struct sockaddr *to,
	socklen_t length)
{
	QUICK(sendto, fd, buffer, size, flags, to, length);
	const void *place = to_read(buffer, size);
	return next.sendto(fd, place, size, flags, to, length);
}

/* ---- Vectors */

/* The kernel gets this vector instead of one with such buffers. */
struct vector {
	struct iovec parts[IOV_MAX];
};

static bool vector_holds(const struct iovec *parts, size_t count)
{
	if (!parts || count > IOV_MAX)
		return false; /* The kernel refuses such a vector. */
	for (size_t i = 0; i < count; i++)
		if (holds(parts[i].iov_base, parts[i].iov_len))
			return true;
	return false;
}

static void vector_open(
	struct vector *ret_vector, const struct iovec *parts, size_t count, bool write)
{
	ret_vector->parts[0] = (struct iovec){0};
	for (size_t i = 0; i < count; i++) {
		size_t size = parts[i].iov_len;
		void *base = parts[i].iov_base;
		base = write ? to_write(base, size) : (void *)to_read(base, size);
		ret_vector->parts[i] = (struct iovec){.iov_base = base, .iov_len = size};
	}
}

static ssize_t vector_wrote(const struct iovec *parts, size_t count, ssize_t size)
{
	ssize_t left = size;
	for (size_t i = 0; i < count && left > 0; i++) {
		size_t part = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
		wrote(parts[i].iov_base, (ssize_t)part);
		left -= (ssize_t)part;
	}
	return size;
}

/* A vector takes 16 KiB of stack, so it is used only if a part changes. */
#define VECTOR(name, result, declaration, call, writes)                          \
	__attribute__((noinline)) static ssize_t open_##name declaration         \
	{                                                                        \
		struct vector v;                                                 \
		vector_open(&v, parts, (size_t)count, writes);                   \
		ssize_t size = next.name call;                                   \
		return writes ? vector_wrote(parts, (size_t)count, size) : size; \
	}

#define AS_GIVEN(name, ...)                                           \
	do {                                                          \
		QUICK(name, __VA_ARGS__);                             \
		if (count < 0 || !vector_holds(parts, (size_t)count)) \
			return next.name(__VA_ARGS__);                \
	} while (0)

VECTOR(readv, ssize_t, (int fd, const struct iovec *parts, int count), (fd, v.parts, count), true)
EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	AS_GIVEN(readv, fd, parts, count);
	return open_readv(fd, parts, count);
}

VECTOR(writev, ssize_t, (int fd, const struct iovec *parts, int count), (fd, v.parts, count), false)
EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	AS_GIVEN(writev, fd, parts, count);
	return open_writev(fd, parts, count);
}

#define POSITIONED(name, offset_type, writes)                                                     \
	VECTOR(name, ssize_t, (int fd, const struct iovec *parts, int count, offset_type offset), \
		(fd, v.parts, count, offset), writes)                                             \
	EXPORT ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset)     \
	{                                                                                         \
		AS_GIVEN(name, fd, parts, count, offset);                                         \
		return open_##name(fd, parts, count, offset);                                     \
	}
POSITIONED(preadv, off_t, true)
POSITIONED(preadv64, off64_t, true)
POSITIONED(pwritev, off_t, false)
POSITIONED(pwritev64, off64_t, false)

#define FLAGGED(name, offset_type, writes)                                                     \
	VECTOR(name, ssize_t,                                                                  \
		(int fd, const struct iovec *parts, int count, offset_type offset, int flags), \
		(fd, v.parts, count, offset, flags), writes)                                   \
	EXPORT ssize_t name(                                                                   \
		int fd, const struct iovec *parts, int count, offset_type offset, int flags)   \
	{                                                                                      \
		AS_GIVEN(name, fd, parts, count, offset, flags);                               \
		return open_##name(fd, parts, count, offset, flags);                           \
	}
FLAGGED(preadv2, off_t, true)
FLAGGED(preadv64v2, off64_t, true)
FLAGGED(pwritev2, off_t, false)
FLAGGED(pwritev64v2, off64_t, false)

/* The addresses of the other process do not change. */
#define ACROSS(name, writes)                                                                     \
	VECTOR(name, ssize_t,                                                                    \
		(pid_t pid, const struct iovec *parts, unsigned long count,                      \
			const struct iovec *remote, unsigned long remotes, unsigned long flags), \
		(pid, v.parts, count, remote, remotes, flags), writes)                           \
	EXPORT ssize_t name(pid_t pid, const struct iovec *parts, unsigned long count,           \
		const struct iovec *remote, unsigned long remotes, unsigned long flags)          \
	{                                                                                        \
		QUICK(name, pid, parts, count, remote, remotes, flags);                          \
		if (!vector_holds(parts, count))                                                 \
			return next.name(pid, parts, count, remote, remotes, flags);             \
		return open_##name(pid, parts, count, remote, remotes, flags);                   \
	}
ACROSS(process_vm_readv, true)
ACROSS(process_vm_writev, false)

/* ---- Messages */

__attribute__((noinline)) static ssize_t open_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct vector v;
	struct msghdr ours = *message;
	vector_open(&v, message->msg_iov, message->msg_iovlen, true);
	ours.msg_iov = v.parts;
	ssize_t size = next.recvmsg(fd, &ours, flags);
	message->msg_namelen = ours.msg_namelen;
	message->msg_controllen = ours.msg_controllen;
	message->msg_flags = ours.msg_flags;
	return vector_wrote(message->msg_iov, message->msg_iovlen, size);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	QUICK(recvmsg, fd, message, flags);
	if (!message || !vector_holds(message->msg_iov, message->msg_iovlen))
		return next.recvmsg(fd, message, flags);
	return open_recvmsg(fd, message, flags);
}

__attribute__((noinline)) static ssize_t open_sendmsg(
	int fd, const struct msghdr *message, int flags)
{
	struct vector v;
	struct msghdr ours = *message;
	vector_open(&v, message->msg_iov, message->msg_iovlen, false);
	ours.msg_iov = v.parts;
	return next.sendmsg(fd, &ours, flags);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	QUICK(sendmsg, fd, message, flags);
	if (!message || !vector_holds(message->msg_iov, message->msg_iovlen))
		return next.sendmsg(fd, message, flags);
	return open_sendmsg(fd, message, flags);
}

/*
 * Several messages are passed unchanged with their buffers made accessible, because the kernel
 * writes to the headers.
 */
static void messages_open(struct mmsghdr *messages, unsigned count, bool write)
{
	for (unsigned i = 0; messages && i < count; i++) {
		const struct msghdr *m = &messages[i].msg_hdr;
		if (!vector_holds(m->msg_iov, m->msg_iovlen))
			continue;
		for (size_t part = 0; part < m->msg_iovlen; part++) {
			if (write)
				to_write(m->msg_iov[part].iov_base, m->msg_iov[part].iov_len);
			else
				to_read(m->msg_iov[part].iov_base, m->msg_iov[part].iov_len);
		}
	}
}

EXPORT int recvmmsg(
	int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	QUICK(recvmmsg, fd, messages, count, flags, timeout);
	messages_open(messages, count, true);
	int received = next.recvmmsg(fd, messages, count, flags, timeout);
	for (int i = 0; i < received; i++)
		vector_wrote(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen,
			messages[i].msg_len);
	return received;
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	QUICK(sendmmsg, fd, messages, count, flags);
	messages_open(messages, count, false);
	return next.sendmmsg(fd, messages, count, flags);
}

/*
 * ---- Streams. libc copies most of their data inside the program, where faults are possible.  It
 * passes large pieces directly to the kernel.
 */

/* False if the product is 0 or overflows: libc handles that. */
static bool product(size_t size, size_t count, size_t *ret_bytes)
{
	return !__builtin_mul_overflow(size, count, ret_bytes) && *ret_bytes > 0;
}

/* Some bytes of an incomplete element may also have arrived. */
static size_t elements_wrote(void *buffer, size_t size, size_t count, size_t whole)
{
	wrote(buffer, (ssize_t)(size * (whole < count ? whole + 1 : whole)));
	return whole;
}

#define STREAM_QUICK(name, ...)            \
	size_t bytes;                      \
	QUICK(name, __VA_ARGS__);          \
	if (!product(size, count, &bytes)) \
	return next.name(__VA_ARGS__)

EXPORT size_t fread(void *restrict buffer, size_t size, size_t count, FILE *restrict file)
{
	STREAM_QUICK(fread, buffer, size, count, file);
	return elements_wrote(
		buffer, size, count, next.fread(to_write(buffer, bytes), size, count, file));
}

EXPORT size_t fread_unlocked(void *restrict buffer, size_t size, size_t count, FILE *restrict file)
{
	STREAM_QUICK(fread_unlocked, buffer, size, count, file);
	return elements_wrote(buffer, size, count,
		next.fread_unlocked(to_write(buffer, bytes), size, count, file));
}

EXPORT size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file)
{
	STREAM_QUICK(__fread_chk, buffer, room, size, count, file);
	return elements_wrote(buffer, size, count,
		next.__fread_chk(to_write(buffer, bytes), room, size, count, file));
}

EXPORT size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file)
{
	STREAM_QUICK(__fread_unlocked_chk, buffer, room, size, count, file);
	return elements_wrote(buffer, size, count,
		next.__fread_unlocked_chk(to_write(buffer, bytes), room, size, count, file));
}

EXPORT size_t fwrite(const void *restrict buffer, size_t size, size_t count, FILE *restrict file)
{
	STREAM_QUICK(fwrite, buffer, size, count, file);
	return next.fwrite(to_read(buffer, bytes), size, count, file);
}

EXPORT size_t fwrite_unlocked(
	const void *restrict buffer, size_t size, size_t count, FILE *restrict file)
{
	STREAM_QUICK(fwrite_unlocked, buffer, size, count, file);
	return next.fwrite_unlocked(to_read(buffer, bytes), size, count, file);
}
