/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the process that compiles kernels for workers (server/worker/compiler): what its
 * server and the workers say, what a compiler leaves behind, and how a worker takes the answer
 * (cudacommon/kernel_compiler.c).
 *
 * Steps, each one byte for what happens, one for how, and two more.  The process's poll() runs them
 * (-Wl,--wrap), and ends the input where there are no more.  No process is started: a compilation
 * is a number and a descriptor, and its end is a step.  Each request is answered once, in order,
 * with its serial number, and an object only where one was compiled; nothing is left in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cudacommon/kernel_compiler.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/compiler_cage.h"
#include "server/worker/compiler/compile_job.h"
#include "server/worker/compiler/compile_server.h"
#include "tests/fuzz/fuzz.h"

enum { STEP_BYTES = 4, STEPS_MAX = 200, WORKERS = 24, JOBS = 8, PENDING = 64, FIRST_PID = 1 << 22 };
enum { QUIET = 0x80, ANSWER_MODE = 1 };
enum step {
	STEP_WORKER,
	STEP_REQUEST,
	STEP_COMPILED,
	STEP_READ,
	STEP_HANG_UP,
	STEP_TIME,
	STEP_POOR,
	STEP_TROUBLE,
	STEPS
};
enum passed {
	PASS_SEALED,
	PASS_NOTHING,
	PASS_OPEN,
	PASS_EMPTY,
	PASS_HUGE,
	PASS_PIPE,
	PASS_PACKETS,
	PASS_TWO,
	PASS_KINDS
};
enum object {
	OBJECT_GOOD,
	OBJECT_NONE,
	OBJECT_EMPTY,
	OBJECT_HUGE,
	OBJECT_DIRECTORY,
	OBJECT_LINK,
	OBJECT_PIPE,
	OBJECTS
};
enum {
	TROUBLE_DIRECTORY = 1,
	TROUBLE_PROCESS,
	TROUBLE_PIDFD,
	TROUBLE_POLL,
	TROUBLE_WAIT,
	TROUBLE_CAGE,
	TROUBLE_SCRATCH
};

static struct fuzz_input input;
static unsigned steps_done, trouble;
static int control = -1, texts[PASS_KINDS];
static char scratch[64];
static int64_t now_ms;
/* One that asks: its end, and the serial numbers that it waits for. */
static struct worker {
	int fd;
	uint32_t pending[PENDING];
	unsigned pending_count;
} workers[WORKERS];
static unsigned worker_count;
static struct job {
	pid_t pid; /* 0: none */
	int ready; /* eventfd, the other one is the process's */
	bool ended;
	int status;
	char directory[CKT_COMPILE_DIRECTORY_MAX];
} jobs[JOBS];
static char last_directory[CKT_COMPILE_DIRECTORY_MAX];
static pid_t last_pid = FIRST_PID;

/* ---- Compilers that are none */

static struct job *job_of(pid_t pid)
{
	for (unsigned i = 0; i < JOBS; i++)
		if (jobs[i].pid == pid)
			return &jobs[i];
	return NULL;
}

static struct job *job_at(unsigned index)
{
	for (unsigned i = 0; i < JOBS; i++)
		if (jobs[(index + i) % JOBS].pid && !jobs[(index + i) % JOBS].ended)
			return &jobs[(index + i) % JOBS];
	return NULL;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
pid_t __wrap_fork(void);
int __wrap_setpgid(pid_t pid, pid_t group);
long __wrap_syscall(long number, ...);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_kill(pid_t pid, int signal);
int __wrap_prctl(int option, ...);
char *__real_mkdtemp(char *name);
char *__wrap_mkdtemp(char *name);
int __wrap_ckt_compiler_cage_enter(const char *directory, enum ckt_compiler_cage cage);
int64_t __wrap_ckt_net_now_ms(void);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

/* True once for each time that the input asks for it. */
static bool is_trouble(unsigned which)
{
	bool result = trouble == which;
	if (result)
		trouble = 0;
	return result;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	errno = ENOSPC;
	if (is_trouble(TROUBLE_DIRECTORY))
		return -1;
	snprintf(last_directory, sizeof last_directory, "%s", path);
	return __real_mkdir(path, mode);
}

pid_t __wrap_fork(void)
{
	struct job *job = job_of(0);
	errno = EAGAIN;
	if (is_trouble(TROUBLE_PROCESS) || !job)
		return -1;
	*job = (struct job){.pid = ++last_pid, .ready = -1};
	memcpy(job->directory, last_directory, sizeof job->directory);
	return job->pid;
}

int __wrap_setpgid(pid_t pid, pid_t group)
{
	(void)pid, (void)group;
	return 0;
}

long __wrap_syscall(long number, ...)
{
	va_list arguments;
	va_start(arguments, number);
	pid_t pid = va_arg(arguments, int);
	va_end(arguments);
	struct job *job = job_of(pid);
	fuzz_insist(number == SYS_pidfd_open && job, "another system call");
	errno = EMFILE;
	if (is_trouble(TROUBLE_PIDFD))
		return -1;
	int fd = eventfd(0, EFD_CLOEXEC);
	job->ready = dup(fd);
	return fd;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	(void)type, (void)options;
	for (unsigned i = 0; i < JOBS; i++) {
		struct job *job = &jobs[i];
		struct pollfd p = {.fd = (int)id, .events = POLLIN};
		/* The descriptor is the same file as ours. */
		if (job->pid && job->ended && __real_poll(&p, 1, 0) == 1) {
			info->si_pid = job->pid;
			info->si_code = job->status & 0x80 ? CLD_KILLED : CLD_EXITED;
			info->si_status = job->status & 0x7f;
			return 0;
		}
	}
	return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	struct job *job = job_of(pid);
	(void)status, (void)options;
	errno = EINTR;
	if (is_trouble(TROUBLE_WAIT))
		return -1;
	fuzz_insist(job, "a process that is none is waited for");
	if (job->ready >= 0)
		close(job->ready);
	job->pid = 0;
	return pid;
}

int __wrap_kill(pid_t pid, int signal)
{
	fuzz_insist(signal == SIGKILL && job_of(pid < 0 ? -pid : pid), "another process is killed");
	return 0;
}

int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

char *__wrap_mkdtemp(char *name)
{
	errno = ENOSPC;
	if (is_trouble(TROUBLE_SCRATCH))
		return NULL;
	strcpy(name, "/dev/shm/ckt-fuzz-compile-XXXXXX");
	char *made = __real_mkdtemp(name);
	snprintf(scratch, sizeof scratch, "%s", name);
	return made;
}

int __wrap_ckt_compiler_cage_enter(const char *directory, enum ckt_compiler_cage cage)
{
	(void)directory, (void)cage;
	return is_trouble(TROUBLE_CAGE) ? -EPERM : 0;
}

int64_t __wrap_ckt_net_now_ms(void)
{
	return now_ms;
}

/* ---- What goes along with messages */

static int new_file(const char *text, off_t size, bool sealed)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fuzz_insist(fd >= 0 && !ftruncate(fd, size) &&
			write(fd, text, strlen(text)) == (ssize_t)strlen(text),
		"no file");
	if (sealed)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

static void make_texts(void)
{
	int ends[2];
	texts[PASS_SEALED] = texts[PASS_TWO] = new_file("int x;", 0, true);
	texts[PASS_NOTHING] = -1;
	texts[PASS_OPEN] = new_file("int x;", 0, false);
	texts[PASS_EMPTY] = new_file("", 0, true);
	texts[PASS_HUGE] = new_file("int x;", CKT_KERNEL_TEXT_MAX + 1, true);
	fuzz_insist(!pipe2(ends, O_CLOEXEC), "no pipe");
	texts[PASS_PIPE] = ends[0];
	fuzz_insist(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "no sockets");
	texts[PASS_PACKETS] = ends[0];
}

static bool say(int socket, const void *bytes, size_t size, int fd, unsigned count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} room = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	const int fds[] = {fd, fd};
	struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		room.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&room.header), fds, count * sizeof(int));
		message.msg_control = &room;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

/* ---- Steps */

static void add_worker(uint8_t how, uint8_t size)
{
	char bytes[256] = {CKT_COMPILE_WORKER_BYTE};
	int ends[2], small = 1;
	size_t length = size < 0xc0 ? 1 : size;
	if (how & 0x40)
		bytes[0] = 'x';
	if (control < 0 || worker_count == WORKERS)
		return;
	/* What is none; a socket that nobody closes would be one for good. */
	if (how % PASS_KINDS && how % PASS_KINDS != PASS_PACKETS) {
		say(control, bytes, length, texts[how % PASS_KINDS],
			how % PASS_KINDS == PASS_TWO ? 2 : 1);
		return;
	}
	fuzz_insist(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "no sockets");
	if (how & 0x20)
		setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	if (say(control, bytes, length, ends[1], 1))
		workers[worker_count++] = (struct worker){.fd = ends[0]};
	else
		close(ends[0]);
	close(ends[1]);
}

static void request(struct worker *worker, uint8_t how, uint8_t size)
{
	static uint32_t serial;
	struct {
		struct ckt_kernel_request head;
		uint8_t more[128];
	} packet = {.head = {.magic = CKT_KERNEL_REQUEST, .serial = ++serial}};
	enum passed kind = how % PASS_KINDS;
	size_t length = size < 0xc0 ? sizeof packet.head : size - 0xc0u;
	if (how & 0x40)
		packet.head.magic ^= 1u << size % 32;
	if (worker->fd < 0 || worker->pending_count == PENDING)
		return;
	bool sent = say(worker->fd, &packet, length, texts[kind], kind == PASS_TWO ? 2 : 1);
	/* PASS_TWO: one more descriptor than there is room for is closed. */
	if (sent && length == sizeof packet.head && packet.head.magic == CKT_KERNEL_REQUEST &&
		(kind == PASS_SEALED || kind == PASS_TWO))
		worker->pending[worker->pending_count++] = serial;
}

static void check_object(int object)
{
	char bytes[8] = {0};
	fuzz_insist(ckt_kernel_file_is_sealed(object), "an object that can change");
	fuzz_insist(pread(object, bytes, sizeof bytes, 0) == 6 && !memcmp(bytes, "object", 6),
		"an object that nobody compiled");
}

static void read_answers(struct worker *worker)
{
	struct ckt_kernel_answer answer;
	for (;;) {
		struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		union ckt_net_fd_room room;
		ckt_net_fd_expect(&message, &room);
		ssize_t n = worker->fd < 0
			? -1
			: recvmsg(worker->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n <= 0)
			return;
		int object = ckt_net_fd_take(&message);
		fuzz_insist(n == sizeof answer && worker->pending_count, "an answer to nothing");
		fuzz_insist(answer.serial == worker->pending[0], "an answer to something else");
		memmove(worker->pending, worker->pending + 1,
			--worker->pending_count * sizeof *worker->pending);
		fuzz_insist((answer.error == 0) == (object >= 0), "an object, or an error");
		fuzz_insist(answer.error <= 0, "an error that is no error number");
		if (object >= 0) {
			check_object(object);
			close(object);
		}
	}
}

static void make_object(const char *path, enum object kind)
{
	int fd;
	switch (kind) {
	case OBJECT_NONE:
		return;
	case OBJECT_DIRECTORY:
		__real_mkdir(path, 0700);
		return;
	case OBJECT_LINK:
		(void)!symlink("/etc/passwd", path);
		return;
	case OBJECT_PIPE:
		mkfifo(path, 0600);
		return;
	default:
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (kind == OBJECT_GOOD)
			(void)!write(fd, "object", 6);
		if (kind == OBJECT_HUGE)
			(void)!ftruncate(fd, CKT_KERNEL_OBJECT_MAX + 1);
		close(fd);
	}
}

/* The compiler leaves what it likes, and ends. */
static void compiled(uint8_t how, uint8_t kind, uint8_t status)
{
	char path[CKT_COMPILE_DIRECTORY_MAX + 16];
	static unsigned huge;
	struct job *job = job_at(how);
	if (!job || job->ready < 0)
		return;
	/* Slow, so not each time. */
	if (kind % OBJECTS == OBJECT_HUGE && huge++ % 64)
		kind = OBJECT_EMPTY;
	snprintf(path, sizeof path, "%s/kernel.so", job->directory);
	make_object(path, kind % OBJECTS);
	if (kind & 0x80) {
		snprintf(path, sizeof path, "%s/more", job->directory);
		make_object(path, OBJECT_DIRECTORY);
	}
	job->ended = true;
	job->status = status & 0xc0 ? status : 0;
	eventfd_write(job->ready, 1);
}

static void hang_up(uint8_t how)
{
	if (how % 16 == 15) {
		close(control);
		control = -1;
	} else if (worker_count && workers[how % worker_count].fd >= 0) {
		close(workers[how % worker_count].fd);
		workers[how % worker_count].fd = -1;
	}
}

static void do_step(uint8_t step, uint8_t how, uint8_t one, uint8_t other)
{
	struct worker *worker = worker_count ? &workers[other % worker_count] : NULL;
	switch (step % STEPS) {
	case STEP_WORKER:
		add_worker(how, one);
		break;
	case STEP_REQUEST:
		if (worker)
			request(worker, how, one);
		break;
	case STEP_COMPILED:
		compiled(how, one, other);
		break;
	case STEP_READ:
		if (worker)
			read_answers(worker);
		break;
	case STEP_HANG_UP:
		hang_up(how);
		break;
	case STEP_TIME:
		now_ms += how & 1 ? CKT_COMPILE_WALL_MS : how;
		break;
	case STEP_POOR:
		fuzz_fail_allocation(how % 4);
		break;
	default:
		trouble = how % TROUBLE_CAGE;
	}
}

/* Everybody goes; the process then ends. */
static void end_all(void)
{
	fuzz_fail_allocation(0);
	if (control >= 0)
		close(control);
	control = -1;
	for (unsigned i = 0; i < worker_count; i++) {
		read_answers(&workers[i]);
		if (workers[i].fd >= 0)
			close(workers[i].fd);
		workers[i].fd = -1;
	}
}

/* Here time passes for the process. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	bool more = true;
	(void)timeout;
	while (more && input.p < input.end && steps_done++ < STEPS_MAX) {
		uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input), one = fuzz_u8(&input);
		do_step(step, how, one, fuzz_u8(&input));
		more = step & QUIET;
	}
	if (input.p >= input.end || steps_done > STEPS_MAX)
		end_all();
	errno = EINTR;
	return is_trouble(TROUBLE_POLL) ? -1 : __real_poll(fds, count, 0);
}

/* ---- A worker's side */

/* The answer lies in the socket before it asks. */
static void try_answer(void)
{
	int ends[2], object = -1;
	struct ckt_kernel_answer answer = {
		.serial = fuzz_u8(&input), .error = (int8_t)fuzz_u8(&input)};
	enum passed kind = fuzz_u8(&input) % PASS_KINDS, text = fuzz_u8(&input) % PASS_KINDS;
	size_t size = fuzz_u8(&input) % (sizeof answer + 1);
	if (text == PASS_PIPE || text == PASS_HUGE)
		text = PASS_OPEN;
	fuzz_insist(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "no sockets");
	if (fuzz_u8(&input) & 1)
		say(ends[0], &answer, size ? size : sizeof answer, texts[kind],
			kind == PASS_TWO ? 2 : 1);
	else
		close(ends[0]), ends[0] = -1;
	/* Nobody else takes part: what poll() does with steps must not happen. */
	input.p = input.end;
	int result = ckt_kernel_compiler_ask(ends[1], 7, texts[text], &object);
	fuzz_insist(result <= 0 && (result == 0) == (object >= 0), "an object, or an error");
	if (object >= 0) {
		fuzz_insist(answer.serial == 7 && !answer.error, "an answer to something else");
		close(object);
	}
	if (ends[0] >= 0)
		close(ends[0]);
	close(ends[1]);
}

static int lowest_descriptor(void)
{
	int fd = dup(texts[PASS_SEALED]);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int ends[2], before = lowest_descriptor();
	input = (struct fuzz_input){data, data + size};
	steps_done = trouble = 0;
	now_ms = 1000;
	worker_count = 0;
	if (!size)
		return 0;
	if (fuzz_u8(&input) == ANSWER_MODE) {
		try_answer();
	} else {
		fuzz_insist(
			!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "no sockets");
		control = ends[0];
		trouble = data[0] == 2 ? TROUBLE_CAGE : data[0] == 3 ? TROUBLE_SCRATCH : 0;
		/* It ends where it has no cage, and where neither server nor worker is left. */
		if (ckt_compile_server_main(ends[1]))
			close(ends[1]);
		end_all();
		fuzz_insist(access(scratch, F_OK), "something is left of a compilation");
	}
	for (unsigned i = 0; i < JOBS; i++)
		fuzz_insist(!jobs[i].pid, "a process is left");
	fuzz_insist(lowest_descriptor() == before, "a descriptor is left open");
	return 0;
}

/* ---- Steps that make sense */

static void put_step(uint8_t *to, unsigned *seed)
{
	static const uint8_t often[] = {
		STEP_WORKER, STEP_REQUEST, STEP_REQUEST, STEP_COMPILED, STEP_COMPILED, STEP_READ};
	to[0] = fuzz_random(seed) % 8 ? often[fuzz_random(seed) % sizeof often]
				      : (uint8_t)(fuzz_random(seed) % STEPS);
	if (fuzz_random(seed) % 8 == 0)
		to[0] |= QUIET;
	to[1] = fuzz_random(seed) % 4 && to[0] % STEPS < STEP_COMPILED ? 0
								       : (uint8_t)fuzz_random(seed);
	to[2] = fuzz_random(seed) % 4 ? 0 : (uint8_t)fuzz_random(seed);
	to[3] = (uint8_t)fuzz_random(seed);
	if (to[0] % STEPS == STEP_COMPILED && fuzz_random(seed) % 4)
		to[3] &= 0x3f;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (!size || data[0] == ANSWER_MODE || fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t count = (size - 1) / STEP_BYTES, at = fuzz_random(&seed) % (count + 1);
	uint8_t *place = data + 1 + at * STEP_BYTES;
	size_t behind = (count - at) * STEP_BYTES;
	switch (fuzz_random(&seed) % 4) {
	case 0:
		if (at < count)
			place[fuzz_random(&seed) % STEP_BYTES] = (uint8_t)fuzz_random(&seed);
		break;
	case 1:
		if (at < count) {
			memmove(place, place + STEP_BYTES, behind - STEP_BYTES);
			count--;
		}
		break;
	default:
		if (1 + (count + 1) * STEP_BYTES > max_size)
			break;
		memmove(place + STEP_BYTES, place, behind);
		put_step(place, &seed);
		count++;
	}
	return 1 + count * STEP_BYTES;
}

static void write_seeds(const char *directory)
{
	char name[32];
	for (unsigned number = 0; number < 32; number++) {
		uint8_t seed[1 + 48 * STEP_BYTES] = {0};
		unsigned random = number + 1;
		for (unsigned i = 0; i < 48; i++)
			put_step(seed + 1 + (size_t)i * STEP_BYTES, &random);
		snprintf(name, sizeof name, "compiler-%u", number);
		fuzz_write_seed(directory, name, seed, sizeof seed);
	}
	for (uint8_t kind = 0; kind < PASS_KINDS; kind++) {
		const uint8_t seed[] = {ANSWER_MODE, 7, 0, kind, PASS_OPEN, 0, 1},
			      text[] = {ANSWER_MODE, 7, kind, PASS_SEALED, kind, kind, kind};
		snprintf(name, sizeof name, "answer-%u", kind);
		fuzz_write_seed(directory, name, seed, sizeof seed);
		snprintf(name, sizeof name, "text-%u", kind);
		fuzz_write_seed(directory, name, text, sizeof text);
	}
	fuzz_write_seed(directory, "no-cage", "\2", 1);
	fuzz_write_seed(directory, "no-scratch", "\3", 1);
	/* Two workers, of which one reads no answers. */
	uint8_t seed[1 + (2 + 2 * 16) * STEP_BYTES] = {0, STEP_WORKER, 0, 0, 0, STEP_WORKER, 0x20};
	for (size_t at = 1 + 2 * STEP_BYTES; at < sizeof seed; at += 2 * STEP_BYTES) {
		memcpy(seed + at, (uint8_t[STEP_BYTES]){STEP_REQUEST, 0, 0, 1}, STEP_BYTES);
		memcpy(seed + at + STEP_BYTES, (uint8_t[STEP_BYTES]){STEP_COMPILED}, STEP_BYTES);
	}
	fuzz_write_seed(directory, "unread", seed, sizeof seed);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (directory) {
		write_seeds(directory);
		exit(0);
	}
	ckt_log_init("fuzz", CKT_LOG_QUIET, NULL);
	make_texts();
	return 0;
}
