/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/compiler/compile_server.c: requests of workers, good ones and all others.
 */
#include "server/worker/compiler/compile_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudacommon/kernel_compiler.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "tests/unit/suite.h"

static int control;
static pid_t process;
/* Below /var, which no row of the compiler's table names. */
static char place[64];

static void pass(int socket, const void *bytes, size_t size, int fd)
{
	struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	IS(sendmsg(socket, &message, MSG_NOSIGNAL), size);
}

static void begin(void)
{
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	process = fork();
	if (process == 0) {
		close(pair[0]);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		unsetenv("PATH");
		_exit(ckt_compile_server_main(pair[1]));
	}
	close(pair[1]);
	control = pair[0];
	strcpy(place, "/var/tmp/ckt-compile-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place));
	MUST(chmod(place, 0755), 0);
}

static void end(void)
{
	char command[128];
	int status = -1;
	close(control);
	IS(waitpid(process, &status, 0), process);
	IS(status, 0);
	snprintf(command, sizeof command, "rm -r %s", place);
	IS(system(command), 0);
}

static int worker_new(void)
{
	char byte = CKT_COMPILE_WORKER_BYTE;
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pass(control, &byte, 1, pair[0]);
	close(pair[0]);
	return pair[1];
}

static int text_new(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	IS(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* 0 or -errno as the worker gets it. */
static int compile(int worker, const char *text, int *ret_object)
{
	static uint32_t serial;
	int fd = text_new(text);
	int result = ckt_kernel_compiler_ask(worker, ++serial, fd, ret_object);
	close(fd);
	return result;
}

static int fails(int worker, const char *text)
{
	int object = -1, result = compile(worker, text, &object);
	IS(object, -1);
	return result;
}

static int answer_of(int object)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", object);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -1;
	int (*function)(void) = (int (*)(void))(uintptr_t)dlsym(library, "answer");
	int value = function ? function() : -2;
	dlclose(library);
	return value;
}

#define SHOWN "__attribute__((visibility(\"default\"))) "

static int gives(int worker, int value)
{
	char text[128];
	int object = -1;
	snprintf(text, sizeof text, SHOWN "int answer(void) { return %d; }\n", value);
	if (compile(worker, text, &object))
		return -3;
	int got = answer_of(object);
	/* Nobody changes it any more. */
	YES(ckt_kernel_file_is_sealed(object));
	IS(write(object, "x", 1), -1);
	close(object);
	return got;
}

static bool has_compiler(void)
{
	char path[4096];
	if (ckt_kernel_compiler_find(path, sizeof path))
		return true;
	puts("skipped: no C compiler");
	return false;
}

static void test_objects(void)
{
	if (!has_compiler())
		return;
	begin();
	int first = worker_new(), second = worker_new();
	IS(gives(first, 42), 42);
	IS(gives(second, 43), 43);
	IS(fails(first, "no C at all"), -EIO);
	IS(gives(first, 44), 44);
	/* A worker that is gone takes nobody with it, with or without a request. */
	close(second);
	second = worker_new();
	struct ckt_kernel_request request = {.magic = CKT_KERNEL_REQUEST, .serial = 1};
	int text = text_new("int x;"), sealed = ckt_kernel_file_sealed(text, 100, "text");
	pass(second, &request, sizeof request, sealed);
	close(second);
	IS(gives(first, 45), 45);
	/* The server's end is not the workers'. */
	int unused = dup(control);
	shutdown(control, SHUT_RDWR);
	IS(gives(first, 46), 46);
	close(unused);
	close(sealed);
	close(text);
	close(first);
	end();
}

/* Whether a compiler outside of the cage takes the text. */
static bool compiles_outside(const char *text)
{
	char command[256];
	snprintf(command, sizeof command, "cc -x c -shared -fPIC -nostdlib -o %s/out - 2>/dev/null",
		place);
	FILE *pipe = popen(command, "w");
	if (!pipe)
		return false;
	fputs(text, pipe);
	return pclose(pipe) == 0;
}

/* Texts that name files: what the cage does not allow cannot be found in an object. */
static void test_files(void)
{
	static const char *const texts[] = {
		"#include \"%s/secret\"\n",
		"__asm__(\".incbin \\\"%s/secret\\\"\");\n",
		"__asm__(\".include \\\"%s/secret\\\"\");\n",
	};
	static const char *const absolute[] = {"#include \"/etc/passwd\"\n",
		"__asm__(\".incbin \\\"/etc/passwd\\\"\");\n",
		"__asm__(\".incbin \\\"/proc/self/environ\\\"\");\n",
		"__asm__(\".incbin \\\"/proc/self/maps\\\"\");\n",
		"__asm__(\".incbin \\\"/proc/1/cmdline\\\"\");\n",
		"__asm__(\".incbin \\\"/proc/mounts\\\"\");\n",
		"__asm__(\".incbin \\\"/dev/shm/ckt-compile-secret\\\"\");\n"};
	char path[128], text[256];
	if (!has_compiler())
		return;
	begin();
	snprintf(path, sizeof path, "%s/secret", place);
	const char *const secrets[] = {path, "/dev/shm/ckt-compile-secret"};
	for (unsigned i = 0; i < COUNT(secrets); i++) {
		int fd = open(secrets[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		IS(write(fd, "\n", 1), 1);
		close(fd);
	}
	int worker = worker_new();
	for (unsigned i = 0; i < COUNT(texts); i++) {
		snprintf(text, sizeof text, texts[i], place);
		YES(compiles_outside(text));
		IS(fails(worker, text), -EIO);
	}
	for (unsigned i = 0; i < COUNT(absolute); i++)
		IS(fails(worker, absolute[i]), -EIO);
	/* Its own directory, where nothing of others lies. */
	IS(fails(worker, "#include \"../0/kernel.so\"\n"), -EIO);
	IS(gives(worker, 7), 7);
	close(worker);
	unlink("/dev/shm/ckt-compile-secret");
	end();
}

static bool is_dropped(int worker)
{
	char byte;
	return recv(worker, &byte, 1, 0) == 0;
}

/* What is no request costs the worker its socket, and nobody else anything. */
static void test_garbage(void)
{
	static const struct ckt_kernel_request good = {CKT_KERNEL_REQUEST, 1}, bad = {17, 1};
	int text = text_new("int x;"), sealed = ckt_kernel_file_sealed(text, 100, "text"),
	    empty = memfd_create("empty", MFD_CLOEXEC), none,
	    device = open("/dev/zero", O_RDONLY | O_CLOEXEC), ends[2];
	MUST(pipe2(ends, O_CLOEXEC), 0);
	none = ckt_kernel_file_sealed(empty, 100, "none");
	const struct {
		const void *bytes;
		size_t size;
		int fd;
	} wrong[] = {
		{"x", 1, -1},
		{"x", 1, sealed},
		{&good, sizeof good, -1},
		{&good, sizeof good - 1, sealed},
		{&bad, sizeof bad, sealed},
		/* What could change or block while it is read. */
		{&good, sizeof good, text},
		{&good, sizeof good, ends[0]},
		{&good, sizeof good, device},
		{&good, sizeof good, none},
	};
	char lots[4096] = {0};
	if (!has_compiler())
		return;
	begin();
	int honest = worker_new();
	for (unsigned i = 0; i < COUNT(wrong); i++) {
		int worker = worker_new();
		pass(worker, wrong[i].bytes, wrong[i].size, wrong[i].fd);
		YES(is_dropped(worker));
		close(worker);
	}
	int worker = worker_new();
	pass(worker, lots, sizeof lots, sealed);
	YES(is_dropped(worker));
	close(worker);
	/* The server's side, too: what is no worker's socket is forgotten. */
	pass(control, "x", 1, sealed);
	char byte = CKT_COMPILE_WORKER_BYTE;
	pass(control, &byte, 1, ends[0]);
	IS(gives(honest, 9), 9);
	close(honest);
	const int all[] = {text, sealed, empty, none, device, ends[0], ends[1]};
	for (unsigned i = 0; i < COUNT(all); i++)
		close(all[i]);
	end();
}

/* Larger than is taken: refused before it is sent, and by the process as well. */
static void test_huge(void)
{
	static const struct ckt_kernel_request good = {CKT_KERNEL_REQUEST, 1};
	if (!has_compiler())
		return;
	begin();
	int worker = worker_new(), object = -1, huge = memfd_create("huge", MFD_CLOEXEC);
	IS(ftruncate(huge, CKT_KERNEL_TEXT_MAX + 1), 0);
	IS(ckt_kernel_compiler_ask(worker, 1, huge, &object), -EFBIG);
	IS(gives(worker, 5), 5);
	int sealed = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	IS(ftruncate(sealed, CKT_KERNEL_TEXT_MAX + 1), 0);
	IS(fcntl(sealed, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
	pass(worker, &good, sizeof good, sealed);
	YES(is_dropped(worker));
	close(sealed);
	close(huge);
	close(worker);
	end();
}

/* Nothing is left of compilations, or of the process. */
static void test_leftovers(void)
{
	if (!has_compiler())
		return;
	IS(system("ls -d /tmp/cricket-compiler-* >/tmp/ckt-compile-before 2>/dev/null; true"), 0);
	begin();
	int worker = worker_new();
	IS(gives(worker, 3), 3);
	IS(fails(worker, "#error\n"), -EIO);
	close(worker);
	end();
	IS(system("ls -d /tmp/cricket-compiler-* 2>/dev/null | cmp - /tmp/ckt-compile-before"), 0);
	unlink("/tmp/ckt-compile-before");
}

UNIT_SUITE(compile_server, {"objects", test_objects}, {"files", test_files},
	{"garbage", test_garbage}, {"huge", test_huge}, {"leftovers", test_leftovers})
