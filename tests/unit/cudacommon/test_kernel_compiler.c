/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/kernel_compiler.c: a worker's side, and answers that are none. */
#include "cudacommon/kernel_compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void test_find(void)
{
	char path[256], small[4];
	char *before = strdup(getenv("PATH") ? getenv("PATH") : "");
	setenv("PATH", "/nowhere", 1);
	NO(ckt_kernel_compiler_find(path, sizeof path));
	setenv("PATH", "usr/bin:bin:.", 1);
	NO(ckt_kernel_compiler_find(path, sizeof path));
	unsetenv("PATH");
	NO(ckt_kernel_compiler_find(small, sizeof small));
	setenv("PATH", before, 1);
	free(before);
}

static void test_arguments(void)
{
	const char *arguments[CKT_KERNEL_ARGUMENTS_MAX];
	size_t n = 0, options = 0;
	ckt_kernel_compiler_arguments("/x/cc", "kernel.so", arguments);
	while (arguments[n])
		n++;
	while (ckt_kernel_compiler_options[options])
		options++;
	IS(n, options + 5);
	YES(strcmp(arguments[0], "/x/cc") == 0 && strcmp(arguments[n - 2], "kernel.so") == 0 &&
		strcmp(arguments[n - 1], "-") == 0);
}

static void test_sealed(void)
{
	int fd = memfd_create("x", MFD_CLOEXEC);
	IS(write(fd, "hello", 5), 5);
	NO(ckt_kernel_file_is_sealed(fd));
	NO(ckt_kernel_file_is_sealed(STDIN_FILENO));
	IS(ckt_kernel_file_sealed(fd, 4, "y"), -EFBIG);
	int sealed = ckt_kernel_file_sealed(fd, 5, "y");
	YES(ckt_kernel_file_is_sealed(sealed));
	char text[8] = "";
	IS(read(sealed, text, 8), 5);
	YES(strcmp(text, "hello") == 0);
	IS(write(sealed, "x", 1), -1);
	IS(ftruncate(sealed, 1), -1);
	close(sealed);
	close(fd);
}

/* What ask() says to an answer of these bytes, with a descriptor. */
static int ask(const void *bytes, size_t size, int passed, int *ret_object)
{
	int pair[2], text = memfd_create("x", MFD_CLOEXEC);
	char room[CMSG_SPACE(sizeof passed)] = {0};
	struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	if (passed >= 0) {
		message.msg_control = room;
		message.msg_controllen = sizeof room;
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof passed)};
		memcpy(CMSG_DATA(header), &passed, sizeof passed);
	}
	IS(write(text, "int x;", 6), 6);
	if (size)
		IS(sendmsg(pair[1], &message, 0), size);
	else
		shutdown(pair[1], SHUT_WR);
	int result = ckt_kernel_compiler_ask(pair[0], 7, text, ret_object);
	close(pair[0]);
	close(pair[1]);
	close(text);
	return result;
}

static void test_answers(void)
{
	const struct ckt_kernel_answer good = {7, 0}, other = {8, 0}, failed = {7, -EIO};
	int fd = memfd_create("object", MFD_CLOEXEC), object = -1;
	IS(ask(&good, sizeof good, fd, &object), 0);
	YES(object >= 0);
	close(object);
	/* Nothing comes with the rest, and nothing of it stays open. */
	int next = dup(fd);
	close(next);
	IS(ask(&good, sizeof good, -1, &object), -EPIPE);
	IS(object, -1);
	IS(ask(&failed, sizeof failed, -1, &object), -EIO);
	IS(ask(&failed, sizeof failed, fd, &object), -EIO);
	IS(object, -1);
	IS(ask(&other, sizeof other, fd, &object), -EPIPE);
	IS(object, -1);
	IS(ask(&good, sizeof good - 1, fd, &object), -EPIPE);
	IS(object, -1);
	IS(ask(NULL, 0, -1, &object), -EPIPE);
	IS(dup(fd), next);
	close(next);
	close(fd);
}

UNIT_SUITE(kernel_compiler, {"find", test_find}, {"arguments", test_arguments},
	{"sealed", test_sealed}, {"answers", test_answers})
