/* SPDX-License-Identifier: Apache-2.0 */
/* Unique IDs, and how ranks meet. */
#include "softgpu/libs/nccl/root.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"
#include "softgpu/libs/nccl/meeting.h"

enum {
	SECRET = 32,
	RANKS_MAX = 1024,
	STRANGERS_MAX = 64, /* connections without a hello; the oldest is closed */
	GIVE_S = 30,        /* a send to a rank fails after this time */
};

struct id {
	char magic[8];
	uint8_t name[16];
	uint8_t secret[SECRET];
};
_Static_assert(sizeof(struct id) <= sizeof(ncclUniqueId), "an id fits");

static const char id_magic[8] = "cktnccl1";

struct hello {
	uint8_t secret[SECRET];
	uint64_t process; /* a random number */
	int32_t rank, size, device, pad;
};

struct answer {
	int32_t result; /* an ncclResult_t */
	uint32_t why;   /* index into `reasons` */
	int32_t peer, plane;
};

enum { FINE, GONE, UNKNOWN, DIFFERENT_SIZES, RANK_TWICE, DEVICE_TWICE, NO_SOCKETS };
static const char *const reasons[] = {
	[FINE] = "",
	[GONE] = "a rank ended before all ranks had come",
	[UNKNOWN] =
		"no rank waits with this unique id: it was used before, or one of its ranks ended",
	[DIFFERENT_SIZES] = "ranks disagree on the number of ranks",
	[RANK_TWICE] = "two processes use the same rank",
	[DEVICE_TWICE] = "Duplicate GPU detected: two ranks of one process are on the same device",
	[NO_SOCKETS] = "cannot make more sockets; raise the limit of open files",
};

/* A connection.  After its hello, it belongs to a meeting. */
struct guest {
	struct guest *next;
	struct meeting *meeting;
	int fd;
	struct hello hello;
};

struct meeting {
	struct meeting *next;
	uint8_t secret[SECRET];
	int size, joined; /* size 0: no rank has come */
};

/* The state of this process only: a child of a fork has no root thread. */
static struct {
	pthread_mutex_t lock;
	pid_t process;
	int listener, door; /* of an abstract name, and of the worker; -1: none */
	uint8_t name[16];
	struct meeting *meetings;
} root = {.lock = PTHREAD_MUTEX_INITIALIZER};

static socklen_t address_of(const uint8_t name[16], struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	int length = snprintf(
		ret_address->sun_path + 1, sizeof ret_address->sun_path - 1, "cricket-nccl-");
	for (int i = 0; i < 16; i++)
		length += snprintf(ret_address->sun_path + 1 + length,
			sizeof ret_address->sun_path - 1 - (size_t)length, "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool same_user(int fd)
{
	struct ucred who;
	socklen_t size = sizeof who;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static void say(int fd, ncclResult_t result, unsigned why)
{
	struct answer answer = {.result = (int32_t)result, .why = why};
	(void)ckt_soft_nccl_mesh_send_descriptor(fd, &answer, sizeof answer, -1);
}

/* ---- The root's thread */

/* Precondition: locked. */
static void forget(struct meeting *meeting)
{
	struct meeting **link = &root.meetings;
	while (*link != meeting)
		link = &(*link)->next;
	*link = meeting->next;
	free(meeting);
}

/* Ends the meeting: sends all of its guests the reason and closes them. */
static void dissolve(
	struct guest **guests, struct meeting *meeting, ncclResult_t result, unsigned why)
{
	for (struct guest **link = guests; *link;) {
		struct guest *guest = *link;
		if (guest->meeting != meeting) {
			link = &guest->next;
			continue;
		}
		if (guest->fd >= 0 && why != FINE)
			say(guest->fd, result, why);
		if (guest->fd >= 0)
			close(guest->fd);
		*link = guest->next;
		free(guest);
	}
	forget(meeting);
}

/* Makes a pair of sockets for each plane and sends both guests their ends. */
static int introduce(const struct guest *a, const struct guest *b)
{
	for (int plane = 0; plane < CKT_PLANES; plane++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return -errno;
		struct answer to_a = {.peer = b->hello.rank, .plane = plane},
			      to_b = {.peer = a->hello.rank, .plane = plane};
		int error = ckt_soft_nccl_mesh_send_descriptor(a->fd, &to_a, sizeof to_a, pair[0]);
		if (!error)
			error = ckt_soft_nccl_mesh_send_descriptor(
				b->fd, &to_b, sizeof to_b, pair[1]);
		close(pair[0]);
		close(pair[1]);
		if (error)
			return error;
	}
	return 0;
}

/* All ranks have come: connects them. */
static void begin(struct guest **guests, struct meeting *meeting)
{
	int error = 0;
	for (struct guest *a = *guests; a && !error; a = a->next)
		for (struct guest *b = a->next; b && !error && a->meeting == meeting; b = b->next)
			if (b->meeting == meeting)
				error = introduce(a, b);
	bool gone = error == -EPIPE || error == -EAGAIN;
	dissolve(guests, meeting, gone ? ncclRemoteError : ncclSystemError,
		!error         ? FINE
			: gone ? GONE
			       : NO_SOCKETS);
}

static unsigned objection(
	struct guest *guests, const struct guest *who, const struct meeting *meeting)
{
	const struct hello *hello = &who->hello;
	if (hello->size < 1 || hello->size > RANKS_MAX ||
		(meeting->size && meeting->size != hello->size))
		return DIFFERENT_SIZES;
	if (hello->rank < 0 || hello->rank >= hello->size)
		return RANK_TWICE;
	for (const struct guest *other = guests; other; other = other->next) {
		if (other->meeting != meeting)
			continue;
		if (other->hello.rank == hello->rank)
			return RANK_TWICE;
		if (other->hello.process == hello->process && other->hello.device == hello->device)
			return DEVICE_TWICE;
	}
	return FINE;
}

/*
 * Reads a guest's hello.  Returns whether the guest stays.  If the meeting ended, the guest is no
 * longer in the list.  Precondition: locked.
 */
static bool welcome(struct guest **guests, struct guest *guest)
{
	ssize_t got = recv(guest->fd, &guest->hello, sizeof guest->hello, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got != sizeof guest->hello)
		return false;
	struct meeting *meeting = root.meetings;
	while (meeting && memcmp(meeting->secret, guest->hello.secret, SECRET) != 0)
		meeting = meeting->next;
	if (!meeting) {
		say(guest->fd, ncclRemoteError, UNKNOWN);
		return false;
	}
	unsigned why = objection(*guests, guest, meeting);
	guest->meeting = meeting;
	meeting->size = guest->hello.size;
	if (why != FINE)
		dissolve(guests, meeting, ncclInvalidUsage, why);
	else if (++meeting->joined == meeting->size)
		begin(guests, meeting);
	return true;
}

/* From an abstract name anybody comes; whom the worker lets in is of its group.  -1: none. */
static int accept_guest(void)
{
	int fd = accept4(root.listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0 && !same_user(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Takes the descriptor; -1: nobody came. */
static void enter_guest(struct guest **guests, int fd)
{
	if (fd < 0)
		return;
	struct guest *guest = calloc(1, sizeof *guest);
	if (!guest) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = GIVE_S},
		sizeof(struct timeval));
	guest->fd = fd;
	guest->next = *guests;
	*guests = guest;
	/* The list begins with the newest guests. */
	unsigned strangers = 0;
	for (struct guest **link = guests; *link;) {
		struct guest *other = *link;
		if (other->meeting || ++strangers <= STRANGERS_MAX) {
			link = &other->next;
			continue;
		}
		*link = other->next;
		close(other->fd);
		free(other);
	}
}

/*
 * Handles a readable guest: it said hello, or its connection ended.  This may remove any guest from
 * the list.
 */
static void serve(struct guest **guests, int fd)
{
	struct guest *guest = *guests;
	while (guest && guest->fd != fd)
		guest = guest->next;
	if (!guest)
		return;
	if (guest->meeting) {
		/* After its hello, a guest sends nothing: the connection ended. */
		struct meeting *meeting = guest->meeting;
		close(guest->fd);
		guest->fd = -1;
		dissolve(guests, meeting, ncclRemoteError, GONE);
	} else if (!welcome(guests, guest)) {
		struct guest **link = guests;
		while (*link != guest)
			link = &(*link)->next;
		*link = guest->next;
		close(guest->fd);
		free(guest);
	}
}

static void open_door(struct guest **guests)
{
	int fd = ckt_soft_nccl_meeting_take(root.door);
	enter_guest(guests, fd);
	/* The worker has another root's, or wants none. */
	if (fd == -EPIPE) {
		close(root.door);
		root.door = -1;
	}
}

static void *root_main(void *unused)
{
	struct guest *guests = NULL;
	for (;;) {
		size_t count = 2;
		for (struct guest *g = guests; g; g = g->next)
			count++;
		struct pollfd *polls = calloc(count, sizeof *polls);
		if (!polls) {
			usleep(10000);
			continue;
		}
		polls[0] = (struct pollfd){.fd = root.listener, .events = POLLIN};
		polls[1] = (struct pollfd){.fd = root.door, .events = POLLIN};
		size_t i = 2;
		for (struct guest *g = guests; g; g = g->next)
			polls[i++] = (struct pollfd){.fd = g->fd, .events = POLLIN};
		if (poll(polls, count, -1) > 0) {
			pthread_mutex_lock(&root.lock);
			for (i = 2; i < count; i++)
				if (polls[i].revents)
					serve(&guests, polls[i].fd);
			if (polls[0].revents)
				enter_guest(&guests, accept_guest());
			if (polls[1].revents)
				open_door(&guests);
			pthread_mutex_unlock(&root.lock);
		}
		free(polls);
	}
	return unused;
}

/* ---- IDs */

/* Precondition: locked. */
static void stop_listening(void)
{
	if (root.listener >= 0)
		close(root.listener);
	if (root.door >= 0)
		close(root.door);
	root.listener = root.door = -1;
}

/* Precondition: locked.  At the abstract name. */
static int listen_at_name(void)
{
	struct sockaddr_un address;
	socklen_t size = address_of(root.name, &address);
	root.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return root.listener < 0 || bind(root.listener, (struct sockaddr *)&address, size) ||
			listen(root.listener, RANKS_MAX)
		? -errno
		: 0;
}

/* Precondition: locked. */
static int start(void)
{
	if (getrandom(root.name, sizeof root.name, 0) != sizeof root.name)
		return -errno;
	root.listener = -1;
	root.door = ckt_soft_nccl_meeting_announce(root.name);
	int error = root.door < 0 && root.door != -ENOTCONN ? root.door : 0;
	if (!error && ckt_soft_nccl_meeting_is_open())
		error = listen_at_name();
	if (error) {
		stop_listening();
		return error;
	}
	root.process = getpid();
	root.meetings = NULL;
	error = ckt_thread_start(NULL, 0, root_main, NULL);
	if (error) {
		stop_listening();
		root.process = 0;
	}
	return error;
}

ncclResult_t ckt_soft_nccl_root_make(ncclUniqueId *ret_id)
{
	struct meeting *meeting = calloc(1, sizeof *meeting);
	if (!meeting || getrandom(meeting->secret, SECRET, 0) != SECRET) {
		free(meeting);
		return ncclSystemError;
	}
	pthread_mutex_lock(&root.lock);
	int error = root.process == getpid() ? 0 : start();
	if (!error) {
		struct id id = {0};
		memcpy(id.magic, id_magic, sizeof id.magic);
		memcpy(id.name, root.name, sizeof id.name);
		memcpy(id.secret, meeting->secret, SECRET);
		*ret_id = (ncclUniqueId){0};
		memcpy(ret_id, &id, sizeof id);
		meeting->next = root.meetings;
		root.meetings = meeting;
	}
	pthread_mutex_unlock(&root.lock);
	if (error)
		free(meeting);
	return error ? ncclSystemError : ncclSuccess;
}

bool ckt_soft_nccl_root_is_id(const ncclUniqueId *id)
{
	return memcmp(id->internal, id_magic, sizeof id_magic) == 0;
}

/* ---- The rank's side */

static uint64_t process_number(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pid_t process;
	static uint64_t number;
	pthread_mutex_lock(&lock);
	if (process != getpid() && getrandom(&number, sizeof number, 0) == sizeof number)
		process = getpid();
	uint64_t result = number;
	pthread_mutex_unlock(&lock);
	return result;
}

/* Receives a socket for each peer and plane. */
static ncclResult_t take_sockets(int root_socket, struct ckt_mesh *mesh, const char **ret_why)
{
	for (int left = CKT_PLANES * (mesh->size - 1); left > 0; left--) {
		struct answer answer = {0};
		int fd = -1,
		    error = ckt_soft_nccl_mesh_wait_readable(mesh, CKT_PLANE_CONTROL, root_socket);
		if (!error)
			error = ckt_soft_nccl_mesh_receive_descriptor(
				root_socket, &answer, sizeof answer, &fd);
		if (error) {
			*ret_why = error == -ECANCELED ? "aborted"
				: error == -EPIPE ? "the process that made the unique id is gone"
						  : strerror(-error);
			return error == -EPIPE ? ncclRemoteError : ncclSystemError;
		}
		if (answer.result != ncclSuccess) {
			*ret_why = answer.why < sizeof reasons / sizeof *reasons
				? reasons[answer.why]
				: "";
			if (fd >= 0)
				close(fd);
			return (ncclResult_t)answer.result;
		}
		bool fits = fd >= 0 && answer.peer >= 0 && answer.peer < mesh->size &&
			answer.peer != mesh->rank && answer.plane >= 0 &&
			answer.plane < CKT_PLANES &&
			mesh->planes[answer.plane].sockets[answer.peer] < 0;
		if (!fits) {
			if (fd >= 0)
				close(fd);
			*ret_why = "the root sent what is no answer";
			return ncclInternalError;
		}
		mesh->planes[answer.plane].sockets[answer.peer] = fd;
	}
	return ncclSuccess;
}

/* A connection with the root, the caller's; -errno. */
static int visit(const uint8_t name[16])
{
	struct sockaddr_un address;
	int fd = ckt_soft_nccl_meeting_visit(name);
	if (fd >= 0 || !ckt_soft_nccl_meeting_is_open())
		return fd;
	socklen_t size = address_of(name, &address);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) == 0)
		return fd < 0 ? -errno : fd;
	int error = -errno;
	close(fd);
	return error;
}

ncclResult_t ckt_soft_nccl_root_join(
	const ncclUniqueId *unique, struct ckt_mesh *mesh, int device, const char **ret_why)
{
	struct id id;
	memcpy(&id, unique, sizeof id);
	struct hello hello = {.process = process_number(),
		.rank = mesh->rank,
		.size = mesh->size,
		.device = device};
	memcpy(hello.secret, id.secret, SECRET);
	int fd = visit(id.name);
	if (fd == -EMFILE || fd == -ENFILE) {
		*ret_why = "cannot make more sockets; raise the limit of open files";
		return ncclSystemError;
	}
	ncclResult_t result = ncclRemoteError;
	*ret_why = "the process that made the unique id is gone";
	if (fd < 0)
		return result;
	if (ckt_soft_nccl_mesh_send_descriptor(fd, &hello, sizeof hello, -1) == 0)
		result = take_sockets(fd, mesh, ret_why);
	close(fd);
	return result;
}
