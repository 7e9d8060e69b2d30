/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between ranks: they transfer pieces of memory and new sockets. */
#include "softgpu/libs/nccl/mesh.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int ckt_soft_nccl_mesh_init(struct ckt_mesh *mesh)
{
	*mesh = (struct ckt_mesh){.planes = {{.wake = -1}, {.wake = -1}}};
	for (int p = 0; p < CKT_PLANES; p++) {
		mesh->planes[p].wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (mesh->planes[p].wake < 0) {
			int error = -errno;
			ckt_soft_nccl_mesh_fini(mesh);
			return error;
		}
	}
	return 0;
}

int ckt_soft_nccl_mesh_set_size(struct ckt_mesh *mesh, int rank, int size)
{
	for (int p = 0; p < CKT_PLANES; p++) {
		mesh->planes[p].sockets = malloc((size_t)size * sizeof(int));
		if (!mesh->planes[p].sockets)
			return -ENOMEM;
		for (int i = 0; i < size; i++)
			mesh->planes[p].sockets[i] = -1;
	}
	mesh->rank = rank;
	mesh->size = size;
	return 0;
}

void ckt_soft_nccl_mesh_fini(struct ckt_mesh *mesh)
{
	for (int p = 0; p < CKT_PLANES; p++) {
		for (int i = 0; i < mesh->size; i++)
			if (mesh->planes[p].sockets[i] >= 0)
				close(mesh->planes[p].sockets[i]);
		if (mesh->planes[p].wake >= 0)
			close(mesh->planes[p].wake);
		free(mesh->planes[p].sockets);
		mesh->planes[p].sockets = NULL;
		mesh->planes[p].wake = -1;
	}
	mesh->size = 0;
}

void ckt_soft_nccl_mesh_stop(struct ckt_mesh *mesh, enum ckt_plane plane)
{
	atomic_store(&mesh->planes[plane].stopped, true);
	eventfd_write(mesh->planes[plane].wake, 1);
}

bool ckt_soft_nccl_mesh_stopped(struct ckt_mesh *mesh, enum ckt_plane plane)
{
	return atomic_load(&mesh->planes[plane].stopped);
}

void ckt_soft_nccl_mesh_shut(struct ckt_mesh *mesh, enum ckt_plane plane)
{
	for (int i = 0; i < mesh->size; i++)
		if (mesh->planes[plane].sockets[i] >= 0)
			shutdown(mesh->planes[plane].sockets[i], SHUT_RDWR);
}

/* ---- Pieces */

/*
 * Moves the bytes that can move at once.  Returns 1 if the piece is complete, 0 if not, or -errno.
 */
static int move(int socket, struct ckt_transfer *piece)
{
	while (piece->done < piece->bytes) {
		char *at = (char *)piece->data + piece->done;
		size_t left = piece->bytes - piece->done;
		ssize_t moved = piece->send ? send(socket, at, left, MSG_DONTWAIT | MSG_NOSIGNAL)
					    : recv(socket, at, left, MSG_DONTWAIT);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (moved <= 0)
			return moved < 0 && errno != ECONNRESET && errno != ENOTCONN ? -errno
										     : -EPIPE;
		piece->done += (size_t)moved;
	}
	return piece->expected && memcmp(piece->data, piece->expected, piece->bytes) ? -EPROTO : 1;
}

/*
 * Moves the bytes of each queue that can move, and sets what to poll for.  Returns the number of
 * queues that are not empty, or -errno.
 */
static int advance(struct ckt_mesh *mesh, enum ckt_plane plane, struct ckt_transfer **queues,
	struct pollfd *polls)
{
	int busy = 0;
	for (int q = 0; q < 2 * mesh->size; q++) {
		int peer = q / 2, socket = mesh->planes[plane].sockets[peer];
		if (q % 2 == 0)
			polls[peer] = (struct pollfd){.fd = -1};
		while (queues[q]) {
			int result = socket < 0 ? -EPIPE : move(socket, queues[q]);
			if (result < 0)
				return result;
			if (!result)
				break;
			queues[q] = queues[q]->next;
		}
		if (!queues[q])
			continue;
		busy++;
		polls[peer].fd = socket;
		polls[peer].events =
			(short)(polls[peer].events | (queues[q]->send ? POLLOUT : POLLIN));
	}
	return busy;
}

int ckt_soft_nccl_mesh_exchange(
	struct ckt_mesh *mesh, enum ckt_plane plane, struct ckt_transfer *transfers, size_t count)
{
	size_t n = (size_t)mesh->size;
	struct ckt_transfer **queues = calloc(2 * n, sizeof(*queues));
	struct pollfd *polls = calloc(n + 1, sizeof(*polls));
	int result = queues && polls ? 1 : -ENOMEM;
	for (size_t i = count; result > 0 && i-- > 0;) {
		struct ckt_transfer *piece = &transfers[i];
		if (!piece->bytes)
			continue;
		piece->done = 0;
		piece->next = queues[2 * piece->peer + piece->send];
		queues[2 * piece->peer + piece->send] = piece;
	}
	while (result > 0) {
		if (ckt_soft_nccl_mesh_stopped(mesh, plane)) {
			result = -ECANCELED;
			break;
		}
		result = advance(mesh, plane, queues, polls);
		if (result <= 0)
			break;
		polls[n] = (struct pollfd){.fd = mesh->planes[plane].wake, .events = POLLIN};
		if (poll(polls, n + 1, -1) < 0 && errno != EINTR)
			result = -errno;
	}
	free(queues);
	free(polls);
	return result;
}

/* ---- Descriptors */

int ckt_soft_nccl_mesh_wait_readable(struct ckt_mesh *mesh, enum ckt_plane plane, int fd)
{
	for (;;) {
		if (ckt_soft_nccl_mesh_stopped(mesh, plane))
			return -ECANCELED;
		struct pollfd polls[2] = {{.fd = fd, .events = POLLIN},
			{.fd = mesh->planes[plane].wake, .events = POLLIN}};
		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (polls[0].revents)
			return 0;
	}
}

int ckt_soft_nccl_mesh_send_descriptor(int socket, const void *data, size_t bytes, int fd)
{
	struct iovec part = {.iov_base = (void *)data, .iov_len = bytes};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof control;
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(header), &fd, sizeof fd);
	}
	ssize_t sent;
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent == (ssize_t)bytes)
		return 0;
	return sent < 0 && errno != ECONNRESET ? -errno : -EPIPE;
}

int ckt_soft_nccl_mesh_receive_descriptor(int socket, void *data, size_t bytes, int *ret_fd)
{
	struct iovec part = {.iov_base = data, .iov_len = bytes};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	ssize_t received;
	do
		received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (received < 0 && errno == EINTR);
	if (received <= 0)
		return received < 0 && errno != ECONNRESET ? -errno : -EPIPE;
	int fd = -1;
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
	if (received != (ssize_t)bytes) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	*ret_fd = fd;
	return 0;
}

/* ---- A mesh from another mesh */

/*
 * The lower of two ranks makes a pair of sockets for each plane and sends one of them with the
 * plane's number.
 */
static int give(int control, struct ckt_mesh *mesh, int peer)
{
	for (int plane = 0; plane < CKT_PLANES; plane++) {
		int pair[2];
		uint64_t word = (uint64_t)plane;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return -errno;
		mesh->planes[plane].sockets[peer] = pair[0];
		int error =
			ckt_soft_nccl_mesh_send_descriptor(control, &word, sizeof word, pair[1]);
		close(pair[1]);
		if (error)
			return error;
	}
	return 0;
}

static int take(struct ckt_mesh *parent, int control, struct ckt_mesh *mesh, int peer)
{
	for (int plane = 0; plane < CKT_PLANES; plane++) {
		uint64_t word = 0;
		int fd = -1,
		    error = ckt_soft_nccl_mesh_wait_readable(parent, CKT_PLANE_CONTROL, control);
		if (!error)
			error = ckt_soft_nccl_mesh_receive_descriptor(
				control, &word, sizeof word, &fd);
		if (error)
			return error;
		mesh->planes[plane].sockets[peer] = fd;
		if (word != (uint64_t)plane || fd < 0)
			return -EPROTO;
	}
	return 0;
}

int ckt_soft_nccl_mesh_derive(struct ckt_mesh *parent, const int *members, struct ckt_mesh *mesh)
{
	/* Sends all sockets before it waits for any, so that ranks do not wait for each other. */
	for (int giving = 1; giving >= 0; giving--) {
		for (int i = 0; i < mesh->size; i++) {
			if (i == mesh->rank || (mesh->rank < i) != giving)
				continue;
			int control = parent->planes[CKT_PLANE_CONTROL].sockets[members[i]];
			int error =
				giving ? give(control, mesh, i) : take(parent, control, mesh, i);
			if (error)
				return error;
		}
	}
	return 0;
}
