/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers of one group share; see group_domain.h. */
#include "server/daemon/session/group_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "rpc/net.h"
#include "server/daemon/policy/identity.h"
#include "server/daemon/server.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/user_namespace.h"

enum {
	/* The child of a fork has it until it executes the worker: some paths of PATH_MAX. */
	STACK_BYTES = 256 << 10,
	/* Landlock's, as the kernel numbers them. */
	VERSION_FLAG = 1,
	SCOPE_VERSION = 6,
	SCOPE_ABSTRACT_SOCKETS = 1
};

/* The namespaces that a group has in a user namespace. */
enum { MOUNTS, NETWORK, NAMESPACES };

enum task { NOTHING, ENTER, FORK, END };

struct ckt_group_domain {
	struct ckt_group_domain *next;
	struct ckt_server *server;
	unsigned workers;
	char name[CKT_IDENTITY_FILE_NAME];
	struct ckt_worker_user user;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum task task; /* the thread makes it NOTHING once it is done */
	int error;      /* of the task, positive */
	const char *step;
	void (*child)(void *context);
	void *context;
	pid_t pid;
	int namespaces[NAMESPACES]; /* -1: the thread is in it, or there is none */
};

enum network { NO_NETWORK, GROUPS_NETWORK, HOSTS_NETWORK };

static enum network network_of(const struct ckt_server *server)
{
	const char *mode = server->options.worker_network;
	if (!mode || strcmp(mode, "auto") == 0)
		return server->driver.soft      ? NO_NETWORK
			: server->hosts_network ? HOSTS_NETWORK
						: GROUPS_NETWORK;
	return strcmp(mode, "on") == 0       ? HOSTS_NETWORK
		: strcmp(mode, "group") == 0 ? GROUPS_NETWORK
					     : NO_NETWORK;
}

bool ckt_group_domain_has_network(const struct ckt_server *server)
{
	return network_of(server) != NO_NETWORK;
}

/* ---- The group's thread */

/* For this thread and its children.  Without rules about files, so that children may mount. */
static int scope_sockets(void)
{
	const struct {
		uint64_t files, net, scoped;
	} rules = {.scoped = SCOPE_ABSTRACT_SOCKETS};
	long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
	if (fd < 0)
		return -1;
	long result = syscall(SYS_landlock_restrict_self, (int)fd, 0);
	int error = errno;
	close((int)fd);
	errno = error;
	return (int)result;
}

/* A new network has it, down and without its address. */
static int raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	int result = ioctl(fd, SIOCSIFFLAGS, &request);
	int error = errno;
	close(fd);
	errno = error;
	return result;
}

static int enter_network(const struct ckt_server *server)
{
	if (unshare(CLONE_NEWNET))
		return -1;
	return network_of(server) == GROUPS_NETWORK ? raise_loopback() : 0;
}

/* For the caller.  0 or an error, and what cannot be made. */
static int make_namespaces(struct ckt_group_domain *domain)
{
	struct ckt_server *server = domain->server;
	domain->step = "a network namespace";
	if (server->own_network && enter_network(server))
		return errno;
	domain->step = "a /dev/shm";
	return server->mounts && ckt_spawn_mounts_make_shm(server, &domain->user) ? errno : 0;
}

static int send_descriptor(int socket, int fd)
{
	char byte = 0;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof byte ? 0 : errno;
}

static int receive_descriptor(int socket)
{
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_expect(&message, &room);
	ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	return n == sizeof byte ? ckt_net_fd_take(&message) : -1;
}

struct making {
	struct ckt_group_domain *domain;
	int socket;
};

/* Another one would be the server's, which workers may not enter. */
static bool has_own(const struct ckt_server *server, int namespace)
{
	return namespace == MOUNTS ? server->mounts : server->own_network;
}

/* In a child, in the user namespace. */
static int make_there(void *opaque)
{
	static const char *const paths[] = {
		[MOUNTS] = "/proc/self/ns/mnt", [NETWORK] = "/proc/self/ns/net"};
	const struct making *making = opaque;
	int error = make_namespaces(making->domain);
	for (int i = 0; i < NAMESPACES && !error; i++) {
		if (!has_own(making->domain->server, i))
			continue;
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		error = fd < 0 ? errno : send_descriptor(making->socket, fd);
	}
	return -error;
}

static int make_in_user_namespace(struct ckt_group_domain *domain)
{
	const struct ckt_worker_user *user = &domain->user;
	int ends[2];
	domain->step = "namespaces";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	struct making making = {domain, ends[1]};
	int result = ckt_user_namespace_run(user->user_namespace, user->uid, make_there, &making);
	for (int i = 0; i < NAMESPACES && !result; i++) {
		if (!has_own(domain->server, i))
			continue;
		domain->namespaces[i] = receive_descriptor(ends[0]);
		if (domain->namespaces[i] < 0)
			result = -EIO;
	}
	close(ends[0]);
	close(ends[1]);
	return -result;
}

int ckt_group_domain_enter(const struct ckt_group_domain *domain)
{
	for (int i = 0; domain && i < NAMESPACES; i++)
		if (domain->namespaces[i] >= 0 && setns(domain->namespaces[i], 0))
			return -1;
	return 0;
}

static int enter(struct ckt_group_domain *domain)
{
	struct ckt_server *server = domain->server;
	int error = domain->user.user_namespace ? make_in_user_namespace(domain)
						: make_namespaces(domain);
	if (error)
		return error;
	domain->step = "a scope of sockets";
	/* Who is not root may restrict only what gains no privileges. */
	if (server->own_sockets && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || scope_sockets()))
		return errno;
	return 0;
}

static void fork_child(struct ckt_group_domain *domain)
{
	domain->pid = fork();
	domain->error = domain->pid < 0 ? errno : 0;
	if (domain->pid == 0) {
		domain->child(domain->context);
		_exit(EXIT_FAILURE);
	}
}

static void *run(void *opaque)
{
	struct ckt_group_domain *domain = opaque;
	bool over = false;
	pthread_mutex_lock(&domain->lock);
	while (!over) {
		while (domain->task == NOTHING)
			pthread_cond_wait(&domain->changed, &domain->lock);
		if (domain->task == ENTER)
			domain->error = enter(domain);
		else if (domain->task == FORK)
			fork_child(domain);
		else
			over = true;
		domain->task = NOTHING;
		pthread_cond_broadcast(&domain->changed);
	}
	pthread_mutex_unlock(&domain->lock);
	return NULL;
}

/* ---- The loop's thread */

static int ask(struct ckt_group_domain *domain, enum task task)
{
	pthread_mutex_lock(&domain->lock);
	domain->task = task;
	pthread_cond_broadcast(&domain->changed);
	while (domain->task != NOTHING)
		pthread_cond_wait(&domain->changed, &domain->lock);
	int error = domain->error;
	pthread_mutex_unlock(&domain->lock);
	return -error;
}

/* Signals stay the loop's. */
static int start(struct ckt_group_domain *domain)
{
	return ckt_thread_start(&domain->thread, STACK_BYTES, run, domain);
}

static void stop(struct ckt_group_domain *domain)
{
	ask(domain, END);
	pthread_join(domain->thread, NULL);
}

static void domain_free(struct ckt_group_domain *domain)
{
	for (int i = 0; i < NAMESPACES; i++)
		if (domain->namespaces[i] >= 0)
			close(domain->namespaces[i]);
	pthread_cond_destroy(&domain->changed);
	pthread_mutex_destroy(&domain->lock);
	free(domain);
}

static struct ckt_group_domain *find(
	const struct ckt_server *server, const char *name, const struct ckt_worker_user *user)
{
	struct ckt_group_domain *domain = server->group_domains;
	while (domain && (strcmp(domain->name, name) != 0 || domain->user.uid != user->uid))
		domain = domain->next;
	return domain;
}

static int make(struct ckt_server *server, const char *name, const struct ckt_worker_user *user,
	struct ckt_group_domain **ret_domain, const char **ret_step)
{
	struct ckt_group_domain *domain = calloc(1, sizeof *domain);
	*ret_step = "a thread";
	if (!domain)
		return -ENOMEM;
	domain->server = server;
	domain->user = *user;
	domain->namespaces[MOUNTS] = domain->namespaces[NETWORK] = -1;
	snprintf(domain->name, sizeof domain->name, "%s", name);
	pthread_mutex_init(&domain->lock, NULL);
	pthread_cond_init(&domain->changed, NULL);
	int result = start(domain);
	if (!result) {
		result = ask(domain, ENTER);
		*ret_step = domain->step;
		if (result)
			stop(domain);
	}
	if (result) {
		domain_free(domain);
		return result;
	}
	domain->next = server->group_domains;
	server->group_domains = domain;
	*ret_domain = domain;
	return 0;
}

int ckt_group_domain_join(struct ckt_server *server, const struct ckt_identity *owner,
	const struct ckt_worker_user *user, struct ckt_group_domain **ret_domain, char *ret_message,
	size_t message_size)
{
	char name[CKT_IDENTITY_FILE_NAME];
	*ret_domain = NULL;
	if (!server->own_network && !server->own_sockets && !server->mounts)
		return 0;
	ckt_identity_file_name(owner, name);
	struct ckt_group_domain *domain = find(server, name, user);
	const char *step;
	int result = domain ? 0 : make(server, name, user, &domain, &step);
	if (result) {
		snprintf(ret_message, message_size,
			"cannot make %s for the workers of its owner: %s", step, strerror(-result));
		return result;
	}
	domain->workers++;
	*ret_domain = domain;
	return 0;
}

bool ckt_group_domain_exists(const struct ckt_server *server, const struct ckt_identity *owner)
{
	char name[CKT_IDENTITY_FILE_NAME];
	ckt_identity_file_name(owner, name);
	const struct ckt_group_domain *domain = server->group_domains;
	while (domain && strcmp(domain->name, name) != 0)
		domain = domain->next;
	return domain;
}

void ckt_group_domain_give(struct ckt_group_domain *domain, const struct ckt_identity *owner)
{
	if (domain)
		ckt_identity_file_name(owner, domain->name);
}

void ckt_group_domain_leave(struct ckt_group_domain *domain)
{
	if (!domain || --domain->workers)
		return;
	struct ckt_group_domain **place = &domain->server->group_domains;
	while (*place != domain)
		place = &(*place)->next;
	*place = domain->next;
	stop(domain);
	domain_free(domain);
}

pid_t ckt_group_domain_fork(
	struct ckt_group_domain *domain, void (*child)(void *context), void *context)
{
	if (!domain) {
		pid_t pid = fork();
		if (pid)
			return pid;
		child(context);
		_exit(EXIT_FAILURE);
	}
	domain->child = child;
	domain->context = context;
	errno = -ask(domain, FORK);
	return domain->pid;
}

/* Whether a child may; the exit status is the error. */
static int try_network(const struct ckt_server *server)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(ckt_user_namespace_enter(server->user.user_namespace, server->user.gid) ||
					enter_network(server)
				? errno
				: 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static bool is_chosen(const struct ckt_server *server)
{
	const char *mode = server->options.worker_network;
	return mode && strcmp(mode, "auto") != 0;
}

int ckt_group_domain_probe(struct ckt_server *server, char *ret_message, size_t message_size)
{
	bool on = ckt_spawn_cage_is_on(server);
	server->hosts_network = !on;
	int error = on && server->user.change && network_of(server) != HOSTS_NETWORK
		? try_network(server)
		: EPERM;
	/* Nobody asked for it: NCCL needs some network. */
	server->hosts_network = !on || (error && !is_chosen(server));
	enum network network = network_of(server);
	/* The soft GPU's NCCL of several servers of one host has nothing else to meet at. */
	server->own_sockets = on && !(network == HOSTS_NETWORK && server->driver.soft) &&
		syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG) >= SCOPE_VERSION;
	server->own_network = false;
	if (!on || network == HOSTS_NETWORK)
		return 0;
	server->own_network = !error;
	if (!error || network == NO_NETWORK)
		return 0;
	snprintf(ret_message, message_size,
		"--worker-network group: cannot make a network: %s; it needs root with "
		"CAP_SYS_ADMIN and CAP_NET_ADMIN, or --uid-range: choose on or off",
		strerror(error));
	return -EPERM;
}
