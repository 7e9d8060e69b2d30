/* SPDX-License-Identifier: Apache-2.0 */
/* The C compiler of the soft GPU's kernels; see kernel_compiler.h. */
#include "cudacommon/kernel_compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer than all compilations that may wait before ours. */
enum { ANSWER_MS = 3600000 };
enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/*
 * Products and sums stay two roundings, as in the interpreter.  Vectors are as wide as the
 * processor's, because the loops run over 32 lanes.
 */
const char *const ckt_kernel_compiler_options[] = {"-x", "c", "-O3", "-march=native",
#if defined(__x86_64__)
	"-mprefer-vector-width=512",
#endif
	"-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
	"-fno-strict-aliasing", "-fwrapv", "-fvisibility=hidden", "-fno-stack-protector",
	"-fno-asynchronous-unwind-tables", "-w", "-shared", "-fPIC", "-nostdlib", NULL};

bool ckt_kernel_compiler_find(char *ret_path, size_t size)
{
	static const char *const names[] = {"cc", "gcc", "clang"};
	const char *path = getenv("PATH");
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		for (const char *at = path && *path ? path : CKT_KERNEL_COMPILER_PATH, *end; at;
			at = *end ? end + 1 : NULL) {
			end = at + strcspn(at, ":");
			/* Only absolute paths: the current directory is not searched. */
			if (*at == '/' &&
				snprintf(ret_path, size, "%.*s/%s", (int)(end - at), at, names[n]) <
					(int)size &&
				!access(ret_path, X_OK))
				return true;
		}
	}
	return false;
}

void ckt_kernel_compiler_arguments(const char *compiler, const char *output,
	const char *ret_arguments[CKT_KERNEL_ARGUMENTS_MAX])
{
	const char *const files[] = {"-pipe", "-o", output, "-", NULL};
	size_t n = 0;
	ret_arguments[n++] = compiler;
	for (size_t k = 0; ckt_kernel_compiler_options[k]; k++)
		ret_arguments[n++] = ckt_kernel_compiler_options[k];
	for (size_t k = 0; k < sizeof files / sizeof *files; k++)
		ret_arguments[n++] = files[k];
}

static int copy(int from, int to, size_t most)
{
	struct stat st;
	off_t at = 0;
	if (fstat(from, &st))
		return -errno;
	if ((uint64_t)st.st_size > most)
		return -EFBIG;
	while (at < st.st_size) {
		ssize_t n = sendfile(to, from, &at, (size_t)(st.st_size - at));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -EIO;
	}
	return 0;
}

int ckt_kernel_file_sealed(int from, size_t most, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int result = copy(from, fd, most);
	if (!result && (lseek(fd, 0, SEEK_SET) || fcntl(fd, F_ADD_SEALS, SEALS)))
		result = -errno;
	if (result)
		close(fd);
	return result ? result : fd;
}

bool ckt_kernel_file_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & SEALS) == SEALS;
}

/* ---- A request */

union fd_room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_request(int socket, const struct ckt_kernel_request *request, int text)
{
	union fd_room room = {.header = {.cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof text)}};
	struct iovec part = {.iov_base = (void *)request, .iov_len = sizeof *request};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof room.bytes};
	memcpy(CMSG_DATA(&room.header), &text, sizeof text);
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof *request ? 0 : -EPIPE;
}

static int receive_answer(int socket, struct ckt_kernel_answer *ret_answer, int *ret_object)
{
	union fd_room room;
	struct iovec part = {.iov_base = ret_answer, .iov_len = sizeof *ret_answer};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof room.bytes};
	struct pollfd p = {.fd = socket, .events = POLLIN};
	int ready;
	*ret_object = -1;
	do
		ready = poll(&p, 1, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	ssize_t n = ready == 1 ? recvmsg(socket, &message, MSG_CMSG_CLOEXEC) : -1;
	const struct cmsghdr *header = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		header->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(ret_object, CMSG_DATA(header), sizeof *ret_object);
	return n == sizeof *ret_answer ? 0 : -EPIPE;
}

int ckt_kernel_compiler_ask(int socket, uint32_t serial, int source, int *ret_object)
{
	const struct ckt_kernel_request request = {.magic = CKT_KERNEL_REQUEST, .serial = serial};
	struct ckt_kernel_answer answer;
	int text = ckt_kernel_file_sealed(source, CKT_KERNEL_TEXT_MAX, "cricket-kernel.c");
	if (text < 0)
		return text;
	int result = send_request(socket, &request, text);
	close(text);
	if (!result)
		result = receive_answer(socket, &answer, ret_object);
	if (!result && (answer.serial != serial || (!answer.error && *ret_object < 0)))
		result = -EPIPE;
	if (!result && answer.error)
		result = -EIO;
	if (result && *ret_object >= 0) {
		close(*ret_object);
		*ret_object = -1;
	}
	return result;
}
