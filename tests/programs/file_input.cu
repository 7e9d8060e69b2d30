/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, pipes and sockets in memory that kernels use as well: managed memory and pinned memory, before and behind kernels.  The system
 * calls' buffers are not touched by the program in between, so nothing but the calls themselves makes them accessible.
 */
#include "phase.h"

#include <cerrno>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static const size_t words = 3 << 18, size = words * 4;
static unsigned *plain;

__global__ void add(unsigned *p, size_t n, unsigned what)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += what;
}

/* The kernel's last word: from here on the memory is the device's. */
static void use(unsigned *p, size_t n, unsigned what)
{
	add<<<8, 128>>>(p, n, what);
	CHECK(cudaDeviceSynchronize());
}

static size_t wrong(const unsigned *p, size_t n, unsigned offset)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i++)
		bad += p[i] != i + offset;
	return bad;
}

static void fill(unsigned offset)
{
	for (size_t i = 0; i < words; i++)
		plain[i] = (unsigned)i + offset;
}

/* What the file holds now, in memory that no kernel knows. */
static size_t file_wrong(int file, unsigned offset)
{
	EXPECT(pread(file, plain, size, 0) == (ssize_t)size);
	return wrong(plain, words, offset);
}

static void files(unsigned *p, int file)
{
	fill(0);
	EXPECT(pwrite(file, plain, size, 0) == (ssize_t)size);
	use(p, words, 1);
	EXPECT(lseek(file, 0, SEEK_SET) == 0 && read(file, p, size) == (ssize_t)size);
	use(p, words, 5);
	EXPECT(lseek(file, 0, SEEK_SET) == 0 && write(file, p, size) == (ssize_t)size);
	EXPECT(file_wrong(file, 5) == 0);
	use(p, words, 1);
	EXPECT(pread(file, p, size, 0) == (ssize_t)size);
	use(p, words, 2);
	EXPECT(pwrite(file, p, size, 0) == (ssize_t)size);
	EXPECT(file_wrong(file, 7) == 0);

	/* Part of a page, whose neighbours are what the kernel left. */
	use(p, words, 10);
	EXPECT(pread(file, p + 1000, 40, 4000) == 40);
	EXPECT(p[999] == 999 + 17 && p[1000] == 1000 + 7 && p[1009] == 1009 + 7 && p[1010] == 1010 + 17);

	/* A vector that is partly the program's own. */
	unsigned own[64];
	iovec parts[] = {{p + 5, 400}, {own, sizeof(own)}, {p + 200000, (words - 200000) * 4}};

	use(p, words, 1);
	EXPECT(preadv(file, parts, 3, 0) == 400 + (ssize_t)sizeof(own) + (ssize_t)(words - 200000) * 4);
	EXPECT(wrong(p + 5, 100, 7) == 0 && wrong(own, 64, 107) == 0 && wrong(p + 200000, 100, 7 + 164) == 0);
	use(p, words, 0);
	EXPECT(lseek(file, 0, SEEK_SET) == 0 && readv(file, parts, 2) == 400 + (ssize_t)sizeof(own));
	use(p, words, 3);
	EXPECT(pwritev(file, parts, 2, 0) == 400 + (ssize_t)sizeof(own));
	EXPECT(pread(file, plain, size, 0) == (ssize_t)size && wrong(plain, 100, 10) == 0 && wrong(plain + 100, 64, 107) == 0 && plain[164] == 171);

	/* Nothing is read, and errno says why. */
	use(p, words, 1);
	errno = 0;
	EXPECT(read(-1, p, 8) == -1 && errno == EBADF);
	EXPECT(pread(file, p, 8, size) == 0);
}

static void streams(unsigned *p, int file)
{
	FILE *f = fdopen(dup(file), "r+");

	fill(3);
	EXPECT(pwrite(file, plain, size, 0) == (ssize_t)size);
	use(p, words, 1);
	rewind(f);
	EXPECT(fread(p, 4, words, f) == words);
	use(p, words, 4);
	rewind(f);
	EXPECT(fwrite(p, size, 1, f) == 1 && fflush(f) == 0);
	EXPECT(file_wrong(file, 7) == 0);
	use(p, words, 1);
	rewind(f);
	/* More than there is: all of it, and no more elements than that makes. */
	EXPECT(fread(p, 5000, 1000, f) == size / 5000 && feof(f));
	use(p, words, 1);
	EXPECT(p[0] == 8 && p[words - 1] == words - 1 + 8);
	fclose(f);
}

/* Its result tells whether all was sent. */
static void *sender(void *socket)
{
	size_t sent = 0;

	while (sent < size) {
		ssize_t n = send((int)(uintptr_t)socket, (char *)plain + sent, size - sent, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		sent += n;
	}
	return (void *)(uintptr_t)sent;
}

static void sockets(unsigned *p)
{
	int pair[2], packets[2];
	pthread_t thread;
	void *result;

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets) == 0);
	fill(20);
	use(p, words, 1);
	pthread_create(&thread, NULL, sender, (void *)(uintptr_t)pair[1]);
	ssize_t got = recv(pair[0], p, size, MSG_WAITALL);
	EXPECT(got == (ssize_t)size);
	/* Nobody waits for what will not come. */
	shutdown(pair[0], SHUT_RDWR);
	pthread_join(thread, &result);
	EXPECT((size_t)(uintptr_t)result == size);
	use(p, words, 1);
	EXPECT(wrong(p, words, 21) == 0);

	/* A message of two parts there and back, and two messages at once. */
	char control[64];
	iovec parts[] = {{p + 10, 4000}, {p + 100000, 4000}};
	msghdr message = {};

	message.msg_iov = parts;
	message.msg_iovlen = 2;
	use(p, words, 1);
	EXPECT(sendmsg(packets[0], &message, 0) == 8000);
	use(p, words, 1);
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	EXPECT(recvmsg(packets[1], &message, 0) == 8000 && message.msg_controllen == 0 && !(message.msg_flags & MSG_TRUNC));
	use(p, words, 0);
	EXPECT(wrong(p + 10, 1000, 32) == 0 && wrong(p + 100000, 1000, 100022) == 0 && p[1010] == 1010 + 23);

	mmsghdr messages[2] = {};
	for (int i = 0; i < 2; i++) {
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	use(p, words, 1);
	EXPECT(sendmmsg(packets[0], messages, 2, 0) == 2);
	use(p, words, 1);
	EXPECT(recvmmsg(packets[1], messages, 2, 0, NULL) == 2 && messages[1].msg_len == 4000);
	use(p, words, 0);
	EXPECT(wrong(p + 10, 1000, 33) == 0 && wrong(p + 100000, 1000, 100023) == 0 && p[1010] == 1010 + 25);
	use(p, words, 1);
	EXPECT(sendto(packets[0], p, 400, 0, NULL, 0) == 400);
	use(p, words, 1);
	EXPECT(recvfrom(packets[1], p + 50, 400, 0, NULL, NULL) == 400 && p[50] == 26);
	for (int fd : {pair[0], pair[1], packets[0], packets[1]})
		close(fd);
}

struct blocked {
	int pipe;
	unsigned *p;
	ssize_t got;
};

static void *read_blocked(void *data)
{
	blocked *b = (blocked *)data;

	b->got = read(b->pipe, b->p + 500, 4000);
	return NULL;
}

/* The GPU gets the memory while a system call waits for bytes to put there. */
static void pipes(unsigned *p)
{
	int ends[2];
	pthread_t thread;

	EXPECT(pipe(ends) == 0);
	blocked b = {ends[0], p, 0};
	fill(40);
	use(p, words, 0);
	EXPECT(write(ends[1], plain, 4000) == 4000 && read(ends[0], p, 4000) == 4000);
	use(p, words, 1);
	EXPECT(wrong(p, 1000, 41) == 0);
	use(p, words, 0);
	unsigned before = plain[0] = 0, after;
	CHECK(cudaMemcpy(&before, p + 1500, 4, cudaMemcpyDefault));
	pthread_create(&thread, NULL, read_blocked, &b);
	usleep(50000);
	/* Not the words that the other thread waits for. */
	use(p + 1500, 8, 100);
	fill(0);
	EXPECT(write(ends[1], plain, 4000) == 4000);
	pthread_join(thread, NULL);
	EXPECT(b.got == 4000);
	use(p, words, 1);
	CHECK(cudaMemcpy(&after, p + 1500, 4, cudaMemcpyDefault));
	EXPECT(wrong(p + 500, 1000, 1) == 0 && after == before + 101);
	close(ends[0]);
	close(ends[1]);
}

/* A child's system calls are its own. */
static void children(int file)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(pwrite(file, "child", 5, 0) == 5 ? 7 : 8);
	EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	child = vfork();
	if (child == 0)
		_exit(pwrite(file, "vfork", 5, 0) == 5 ? 7 : 8);
	EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
	unsigned *managed, *pinned;
	int file = memfd_create("file-input", 0);

	plain = (unsigned *)malloc(size);
	CHECK(cudaMallocManaged(&managed, size));
	CHECK(cudaMallocHost(&pinned, size));
	for (unsigned *p : {managed, pinned}) {
		files(p, file);
		streams(p, file);
		sockets(p);
		pipes(p);
	}
	children(file);

	/* Half way: what a system call brought is on its way to the GPU, or what the GPU made has not been asked for. */
	fill(60);
	EXPECT(pwrite(file, plain, size, 0) == (ssize_t)size);
	use(managed, words, 1);
	use(pinned, words, 1);
	EXPECT(pread(file, managed, size, 0) == (ssize_t)size);
	EXPECT(pread(file, pinned, size, 0) == (ssize_t)size);
	use(pinned, words, 1);
	phase();
	use(managed, words, 2);
	EXPECT(pwrite(file, managed, size, 0) == (ssize_t)size && file_wrong(file, 62) == 0);
	EXPECT(pwrite(file, pinned, size, 0) == (ssize_t)size && file_wrong(file, 61) == 0);
	print_checksum("file", plain, size);
	CHECK(cudaFree(managed));
	CHECK(cudaFreeHost(pinned));
	return finish();
}
