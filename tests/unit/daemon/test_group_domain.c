/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/session/group_domain.c: what the workers of one owner share, and others do not
 * reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/spawn_user.h"
#include "server/daemon/session/user_namespace.h"

enum { WORKERS = 4246 };

static const struct ckt_identity alice = {.kind = CKT_IDENTITY_USER, .uid = 4247},
				 bob = {.kind = CKT_IDENTITY_USER, .uid = 4248};
static char name[32];   /* of an abstract socket */
static char shared[64]; /* a file in /dev/shm */

static struct ckt_group_domain *join(const struct ckt_identity *owner)
{
	struct ckt_group_domain *domain;
	char why[256] = "";
	MUST(ckt_group_domain_join(&server, owner, &server.user, &domain, why, sizeof why), 0);
	return domain;
}

static void run_child(void *context)
{
	int (*child)(void);
	memcpy(&child, context, sizeof child);
	_exit(child());
}

/* What a child in the domain ends with. */
static int run(struct ckt_group_domain *domain, int (*child)(void))
{
	int status = -1;
	pid_t pid = ckt_group_domain_fork(domain, run_child, &child);
	MUST(pid > 0, true);
	MUST(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct sockaddr_un address(socklen_t *ret_size)
{
	struct sockaddr_un result = {.sun_family = AF_UNIX};
	snprintf(result.sun_path + 1, sizeof result.sun_path - 1, "%s", name);
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return result;
}

static int connect_to(void)
{
	socklen_t size;
	struct sockaddr_un to = address(&size);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&to, size) ? errno : 0;
}

/* Listens until the pipe ends. */
static int ends[2];

static int listen_at(void)
{
	socklen_t size;
	struct sockaddr_un at = address(&size);
	char byte;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	close(ends[1]);
	if (bind(fd, (struct sockaddr *)&at, size) || listen(fd, 4))
		return 1;
	return read(ends[0], &byte, 1) == 0 ? 0 : 2;
}

static bool sees_name(void)
{
	char line[512];
	FILE *file = fopen("/proc/net/unix", "re");
	bool found = false;
	while (file && fgets(line, sizeof line, file))
		found |= strstr(line, name) != NULL;
	if (file)
		fclose(file);
	return found;
}

static int has_name(void)
{
	return sees_name();
}

static int leave_file(void)
{
	int fd = open(shared, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd >= 0 ? 0 : errno;
}

static int has_file(void)
{
	return access(shared, F_OK) == 0;
}

static int has_little_room(void)
{
	struct statvfs shm;
	if (statvfs("/dev/shm", &shm))
		return 1;
	return (uint64_t)shm.f_blocks * shm.f_frsize == 64 << 20 && shm.f_files <= 65536 ? 0 : 2;
}

/* Only the loopback, and that is down. */
static int has_interfaces(void)
{
	struct if_nameindex *all = if_nameindex();
	int count = 0;
	for (; all && all[count].if_index; count++)
		if (strcmp(all[count].if_name, "lo") != 0)
			return 100;
	return count;
}

static int has_new_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static char message[256];

static void begin(void)
{
	server.user =
		(struct ckt_worker_user){.change = geteuid() == 0, .uid = WORKERS, .gid = WORKERS};
	server.options.cage = (char *)"on";
	server.driver.soft = true;
	snprintf(name, sizeof name, "ckt-group-domain-%d", (int)getpid());
	snprintf(shared, sizeof shared, "/dev/shm/%s", name);
	ckt_spawn_mounts_probe(&server);
	IS(ckt_group_domain_probe(&server, message, sizeof message), 0);
}

static void end(void)
{
	CU_ASSERT_PTR_NULL(server.group_domains);
	server.user.change = server.mounts = server.own_network = server.own_sockets = false;
	server.options.cage = server.options.worker_network = NULL;
	server.driver.soft = false;
	/* The server's own thread is as before. */
	IS(has_new_privileges(), 0);
	YES(unlink(shared) && errno == ENOENT);
}

static void test_sockets(void)
{
	begin();
	if (!server.own_sockets) {
		puts("skipped: the kernel has no Landlock of version 6");
		end();
		return;
	}
	/* By Landlock alone, as where the server is not root. */
	server.own_network = server.mounts = false;
	struct ckt_group_domain *first = join(&alice), *second = join(&alice), *other = join(&bob);
	CU_ASSERT_PTR_EQUAL(first, second);
	YES(first != other);
	/* With all that is in it. */
	const struct ckt_identity carol = {.kind = CKT_IDENTITY_USER, .uid = 4249};
	YES(ckt_group_domain_exists(&server, &bob) && !ckt_group_domain_exists(&server, &carol));
	ckt_group_domain_give(other, &carol);
	YES(ckt_group_domain_exists(&server, &carol) && !ckt_group_domain_exists(&server, &bob));
	ckt_group_domain_give(other, &bob);
	ckt_group_domain_give(NULL, &bob);
	int (*child)(void) = listen_at;
	MUST(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = ckt_group_domain_fork(first, run_child, &child);
	MUST(pid > 0, true);
	while (!sees_name())
		usleep(1000);
	IS(run(first, connect_to), 0);
	IS(run(other, connect_to), EPERM);
	IS(run(other, has_new_privileges), 1);
	/* A domain keeps in, not out: who is in none reaches it. */
	IS(run(NULL, connect_to), 0);
	/* The domain of the last worker is gone, and a new one is another. */
	ckt_group_domain_leave(second);
	IS(run(first, connect_to), 0);
	ckt_group_domain_leave(first);
	CU_ASSERT_PTR_EQUAL(server.group_domains, other);
	second = join(&alice);
	IS(run(second, connect_to), EPERM);
	ckt_group_domain_leave(second);
	ckt_group_domain_leave(other);
	close(ends[1]);
	close(ends[0]);
	IS(waitpid(pid, NULL, 0), pid);
	end();
}

static void test_network(void)
{
	begin();
	if (!server.own_network) {
		printf("skipped: %s\n",
			geteuid() ? "not root" : "this host refuses network namespaces");
		end();
		return;
	}
	socklen_t size;
	struct sockaddr_un at = address(&size);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	IS(bind(fd, (struct sockaddr *)&at, size), 0);
	IS(listen(fd, 4), 0);
	struct ckt_group_domain *domain = join(&alice);
	YES(sees_name());
	IS(run(domain, has_name), 0);
	IS(run(domain, has_interfaces), 1);
	/* Whatever Landlock says. */
	YES(run(domain, connect_to) != 0);
	YES(sees_name());
	ckt_group_domain_leave(domain);
	close(fd);
	end();
}

/* Of the loopback. */
static struct sockaddr_in port = {.sin_family = AF_INET};

static int connect_to_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&port, sizeof port) ? errno : 0;
}

/* Says that it listens, and does so until the other end is closed. */
static int listen_at_port(void)
{
	char byte = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&port, sizeof port) || listen(fd, 4))
		return errno;
	close(ends[0]);
	return send(ends[1], &byte, 1, 0) == 1 && recv(ends[1], &byte, 1, 0) == 0 ? 0 : 100;
}

/* --worker-network group: a loopback that the group's workers share with nobody. */
static void test_loopback(void)
{
	socklen_t size = sizeof port;
	char byte;
	begin();
	server.options.worker_network = (char *)"group";
	if (!server.own_network) {
		IS(ckt_group_domain_probe(&server, message, sizeof message), -EPERM);
		HAS(message, "--worker-network group: cannot make a network: ");
		printf("skipped: %s\n",
			geteuid() ? "not root" : "this host refuses network namespaces");
		end();
		return;
	}
	MUST(ckt_group_domain_probe(&server, message, sizeof message), 0);
	YES(server.own_network && ckt_group_domain_has_network(&server));
	port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(bind(fd, (struct sockaddr *)&port, sizeof port) || listen(fd, 4) ||
			getsockname(fd, (struct sockaddr *)&port, &size),
		0);
	struct ckt_group_domain *first = join(&alice), *other = join(&bob);
	IS(run(NULL, connect_to_port), 0);
	/* The host's. */
	IS(run(first, connect_to_port), ECONNREFUSED);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	int (*child)(void) = listen_at_port;
	pid_t pid = ckt_group_domain_fork(first, run_child, &child);
	MUST(pid > 0, true);
	close(ends[1]);
	IS(recv(ends[0], &byte, 1, 0), 1);
	IS(run(first, connect_to_port), 0);
	IS(run(other, connect_to_port), ECONNREFUSED);
	close(ends[0]);
	IS(waitpid(pid, NULL, 0), pid);
	close(fd);
	ckt_group_domain_leave(first);
	ckt_group_domain_leave(other);
	end();
}

static void test_shm(void)
{
	begin();
	if (!server.mounts) {
		printf("skipped: %s\n",
			geteuid() ? "not root" : "this host refuses mount namespaces");
		end();
		return;
	}
	struct ckt_group_domain *first = join(&alice), *other = join(&bob);
	IS(run(first, leave_file), 0);
	IS(run(first, has_file), 1);
	IS(run(other, has_file), 0);
	IS(run(NULL, has_file), 0);
	IS(run(other, has_little_room), 0);
	/* Another user id, as when an owner gets a new one, is another group. */
	server.user.uid++;
	struct ckt_group_domain *again = join(&alice);
	YES(again != first);
	IS(run(again, has_file), 0);
	server.user.uid--;
	ckt_group_domain_leave(again);
	ckt_group_domain_leave(other);
	ckt_group_domain_leave(first);
	/* What a group had is gone with it. */
	first = join(&alice);
	IS(run(first, has_file), 0);
	ckt_group_domain_leave(first);
	end();
}

/* A user namespace with the workers' id; 0: this host has none, or we may not write its mapping. */
static int make_user_namespace(void)
{
	static const char *const maps[] = {"uid_map", "gid_map"};
	char path[64], byte;
	int told[2], heard[2], fd = -1;
	MUST(pipe2(told, O_CLOEXEC) || pipe2(heard, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(heard[1]);
		if (unshare(CLONE_NEWUSER) || write(told[1], "", 1) != 1)
			_exit(1);
		_exit(read(heard[0], &byte, 1) != 0);
	}
	close(told[1]);
	bool made = read(told[0], &byte, 1) == 1;
	for (unsigned i = 0; made && i < COUNT(maps); i++) {
		snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, maps[i]);
		FILE *file = fopen(path, "we");
		/* Ours has another number there: root's would lose its capabilities with it. */
		made = file && fprintf(file, "1 0 1\n%d %d 1\n", WORKERS, WORKERS) > 0;
		made = file && fclose(file) == 0 && made;
	}
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	if (made)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	close(told[0]);
	close(heard[0]);
	close(heard[1]);
	IS(waitpid(pid, NULL, 0), pid);
	return fd < 0 ? 0 : fd;
}

static struct ckt_group_domain *entered;
static int (*entered_child)(void);

/* As a worker does. */
static int enter_and_run(void)
{
	if (ckt_user_namespace_enter(server.user.user_namespace, server.user.gid))
		return 101;
	if (ckt_group_domain_enter(entered))
		return 102;
	return ckt_spawn_become_user(&server.user) ? 103 : entered_child();
}

static int run_entered(struct ckt_group_domain *domain, int (*child)(void))
{
	entered = domain;
	entered_child = child;
	return run(domain, enter_and_run);
}

/* Where the server is not root: the namespaces are made in the workers' user namespace. */
static void test_user_namespace(void)
{
	int fd = geteuid() == 0 ? make_user_namespace() : 0;
	if (!fd) {
		printf("skipped: %s\n",
			geteuid() ? "not root" : "this host refuses user namespaces");
		return;
	}
	begin();
	server.user.user_namespace = fd;
	server.user.keeps_groups = true;
	ckt_spawn_mounts_probe(&server);
	IS(ckt_group_domain_probe(&server, message, sizeof message), 0);
	YES(server.mounts && server.own_network);
	struct ckt_group_domain *first = join(&alice), *other = join(&bob);
	IS(run_entered(first, leave_file), 0);
	IS(run_entered(first, has_file), 1);
	IS(run_entered(other, has_file), 0);
	IS(run(NULL, has_file), 0);
	IS(run_entered(other, has_little_room), 0);
	IS(run_entered(first, has_interfaces), 1);
	YES(run(first, has_interfaces) != 1);
	ckt_group_domain_leave(first);
	first = join(&alice);
	IS(run_entered(first, has_file), 0);
	ckt_group_domain_leave(first);
	/* The server has only one of them to give. */
	server.own_network = false;
	first = join(&alice);
	IS(run_entered(first, has_little_room), 0);
	YES(run_entered(first, has_interfaces) != 1);
	ckt_group_domain_leave(first);
	ckt_group_domain_leave(other);
	/* A loopback, which is up: nobody listens. */
	server.options.worker_network = (char *)"group";
	IS(ckt_group_domain_probe(&server, message, sizeof message), 0);
	first = join(&alice);
	port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	IS(run_entered(first, connect_to_port), ECONNREFUSED);
	ckt_group_domain_leave(first);
	server.user.user_namespace = 0;
	server.user.keeps_groups = false;
	close(fd);
	end();
}

/* Who gets what: the option, the driver and the cage decide. */
static void test_probe(void)
{
	static const struct {
		const char *cage, *network;
		bool soft, has_network, own_sockets;
	} rows[] = {
		{"on", "auto", true, false, true},
		{"on", "auto", false, true, true},
		{"on", "off", false, false, true},
		{"on", "on", false, true, true},
		{"on", "on", true, true, false},
		{"off", "off", true, false, false},
	};
	begin();
	bool known = server.own_sockets, refused = geteuid() == 0 && !server.own_network;
	for (size_t i = 0; i < COUNT(rows); i++) {
		server.options.cage = (char *)rows[i].cage;
		server.options.worker_network = (char *)rows[i].network;
		server.driver.soft = rows[i].soft;
		IS(ckt_group_domain_probe(&server, message, sizeof message), 0);
		IS(ckt_group_domain_has_network(&server), rows[i].has_network);
		IS(server.own_sockets, rows[i].own_sockets && known);
		if (!refused)
			IS(server.own_network,
				geteuid() == 0 && strcmp(rows[i].cage, "on") == 0 &&
					strcmp(rows[i].network, "on") != 0);
	}
	/* With nothing to share there is no thread. */
	server.mounts = server.own_network = server.own_sockets = false;
	CU_ASSERT_PTR_NULL(join(&alice));
	ckt_group_domain_leave(NULL);
	end();
}

/* What the kernel refuses afterwards is an error that says what. */
static void test_refused(void)
{
	struct ckt_group_domain *domain;
	begin();
	if (geteuid() == 0) {
		puts("skipped: root may do all of it");
	} else {
		server.own_network = true;
		IS(ckt_group_domain_join(
			   &server, &alice, &server.user, &domain, message, sizeof message),
			-EPERM);
		HAS(message, "cannot make a network namespace for the workers of its owner: ");
		CU_ASSERT_PTR_NULL(domain);
	}
	end();
}

UNIT_SUITE(group_domain, {"sockets", test_sockets}, {"network", test_network},
	{"loopback", test_loopback}, {"shm", test_shm}, {"user namespace", test_user_namespace},
	{"probe", test_probe}, {"refused", test_refused})
