/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/cage.c: what the environment asks for, and attempts to escape from it. */
#include "server/worker/cage/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage_child.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/landlock.h"
#include "tests/unit/suite.h"

static pid_t victim;
static volatile long secret = 42;

static const char *profile = "soft:/usr/lib/libcuda.so.1";

static int enter(void)
{
	char message[256];
	setenv("CRICKET_CAGE", profile, 1);
	return ckt_cage_enter(-1, message, sizeof message);
}

static int read_files(void)
{
	static const char *const files[] = {"/etc/shadow", "/root/.ssh", "/run/cricket", "/home"};
	if (enter())
		return 90;
	for (unsigned i = 0; i < COUNT(files); i++)
		if (open(files[i], O_RDONLY | O_CLOEXEC) >= 0)
			return (int)i + 1;
	return 0;
}

/* Another worker of the same user, which even is dumpable. */
static int read_memory(void)
{
	char path[64];
	long copy = 0;
	struct iovec here = {&copy, sizeof copy}, there = {(void *)&secret, sizeof secret};
	if (enter())
		return 90;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)victim);
	if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
		return 1;
	if (process_vm_readv(victim, &here, 1, &there, 1, 0) >= 0)
		return 2;
	if (ptrace(PTRACE_ATTACH, victim, NULL, NULL) == 0)
		return 3;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)victim);
	return open(path, O_RDONLY | O_CLOEXEC) >= 0 ? 4 : 0;
}

static int send_signal(void)
{
	if (enter())
		return 90;
	return kill(victim, SIGKILL) == 0 || errno != EPERM ? 1 : 0;
}

static int use_network(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(22)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (enter())
		return 90;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd >= 0 &&
			(connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ||
				errno == ECONNREFUSED)
		? 1
		: 0;
}

static int gain_rights(void)
{
	if (enter())
		return 90;
	if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0)
		return 1;
	if (geteuid() != 0 && setuid(0) == 0)
		return 2;
	execl("/bin/su", "su", "-c", "true", (char *)NULL);
	execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
	return errno == EPERM ? 0 : 3;
}

/* A process of the same user to attack. */
static int with_victim(int (*attempt)(void))
{
	int status = -1, ready[2];
	char byte;
	MUST(pipe2(ready, O_CLOEXEC), 0);
	victim = fork();
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (geteuid() == 0 && (setresgid(4244, 4244, 4244) || setresuid(4244, 4244, 4244)))
			_exit(1);
		/* The kernel clears this at a change of the user. */
		prctl(PR_SET_DUMPABLE, 1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	/* What it is to be attacked for is there. */
	IS(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	int result = cage_child_of_nobody(attempt);
	/* It still lives. */
	IS(waitpid(victim, &status, WNOHANG), 0);
	kill(victim, SIGKILL);
	waitpid(victim, &status, 0);
	return result;
}

static int landlock_abi(void)
{
	struct ckt_landlock landlock;
	MUST(ckt_landlock_begin(&landlock, true), 0);
	ckt_landlock_drop(&landlock);
	return landlock.abi;
}

/* This one is in a cage, who started it is in none. */
static int knows_peers(void)
{
	if (ckt_cage_has_peer(getpid()))
		return 1;
	if (enter())
		return 90;
	if (ckt_cage_has_peer(getppid()))
		return 2;
	char status[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, status, sizeof status - 1) : -1;
	status[n > 0 ? n : 0] = 0;
	return ckt_cage_has_peer(getpid()) || !strstr(status, "Seccomp_filters:") ? 0 : 3;
}

/* The cache of its own owner, beside that of another, both of which its user may write to. */
static int writes_cache(void)
{
	char parent[] = "/var/tmp/ckt-cache-XXXXXX", own[64], other[64], path[80];
	if (!mkdtemp(parent))
		return 1;
	snprintf(own, sizeof own, "%s/owner-1", parent);
	snprintf(other, sizeof other, "%s/owner-2", parent);
	if (mkdir(own, 0700) || mkdir(other, 0700) || setenv("XDG_CACHE_HOME", own, 1) || enter())
		return 90;
	snprintf(path, sizeof path, "%s/planted", other);
	if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EACCES)
		return 2;
	if (rename(own, other) == 0)
		return 3;
	snprintf(path, sizeof path, "%s/kernel", own);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || unlink(path) ? 4 : 0;
}

static int remove_caches(void)
{
	return system("rm -rf /var/tmp/ckt-cache-??????") == 0 ? 0 : 1;
}

static void test_escapes(void)
{
	int abi = landlock_abi();
	if (abi < 1) {
		puts("skipped: the kernel has no Landlock");
		return;
	}
	IS(cage_child_of_nobody(read_files), 0);
	IS(with_victim(read_memory), 0);
	IS(cage_child_of_nobody(gain_rights), 0);
	IS(cage_child_of_nobody(knows_peers), 0);
	IS(cage_child_of_nobody(writes_cache), 0);
	IS(cage_child_of_nobody(remove_caches), 0);
	static const struct {
		const char *profile;
		int used;
	} tried[] = {{"soft:/usr/lib/libcuda.so.1", 0}, {"nvidia:/usr/lib/libcuda.so.1", 0},
		{"soft+network:/usr/lib/libcuda.so.1", 1},
		{"nvidia+network:/usr/lib/libcuda.so.1", 1},
		{"soft+group:/usr/lib/libcuda.so.1", 1}, {"nvidia+group:/usr/lib/libcuda.so.1", 1}};
	for (unsigned i = COUNT(tried); i-- > 0;) {
		profile = tried[i].profile;
		IS(cage_child_of_nobody(use_network), tried[i].used);
	}
	if (abi >= 6)
		IS(with_victim(send_signal), 0);
	else
		puts("skipped: the kernel's Landlock does not know signals");
}

static int without(void)
{
	char message[256] = "";
	unsetenv("CRICKET_CAGE");
	if (ckt_cage_has_peer(getpid()))
		return 5;
	if (ckt_cage_is_off() || ckt_cage_enter(-1, message, sizeof message))
		return 1;
	setenv("CRICKET_CAGE", "none", 1);
	if (ckt_cage_is_off() || ckt_cage_enter(-1, message, sizeof message) || *message)
		return 4;
	setenv("CRICKET_CAGE", "off", 1);
	if (!ckt_cage_has_network())
		return 4;
	if (!ckt_cage_is_off() || ckt_cage_enter(-1, message, sizeof message) || *message)
		return 2;
	return open("/home", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 3;
}

/* Which of them leave the host's network. */
static int networks(void)
{
	static const struct {
		const char *text;
		bool network;
	} rows[] = {{"soft:/x", false}, {"soft+group:/x", false}, {"soft+network:/x", true},
		{"nvidia+network:/x", true}, {"nvidia:/x", false}, {"none", true}};
	for (unsigned i = 0; i < COUNT(rows); i++) {
		setenv("CRICKET_CAGE", rows[i].text, 1);
		if (ckt_cage_has_network() != rows[i].network)
			return (int)i + 1;
	}
	return 0;
}

static int malformed(void)
{
	static const char *const texts[] = {"", "soft", "hard:/x", "nvidi:/x", ":/x", "softer:/x",
		"soft+:/x", "soft+group", "+network:/x", "nvidia+networks:/x"};
	for (unsigned i = 0; i < COUNT(texts); i++) {
		char message[256] = "";
		setenv("CRICKET_CAGE", texts[i], 1);
		if (ckt_cage_enter(-1, message, sizeof message) != -EINVAL ||
			!strstr(message, "is no cage"))
			return (int)i + 1;
	}
	return 0;
}

static unsigned open_descriptors(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* One message with one descriptor goes to the server, and neither that nor the socket is kept. */
static int passes_listener(void)
{
	char message[256], byte = 0;
	int pair[2];
	struct iovec part = {&byte, 1};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 1;
	unsigned before = open_descriptors();
	setenv("CRICKET_CAGE", "soft:/usr/lib/libcuda.so.1", 1);
	if (ckt_cage_enter(pair[1], message, sizeof message))
		return 90;
	if (open_descriptors() != before - 1 || fcntl(pair[1], F_GETFD) != -1)
		return 2;
	ckt_net_fd_expect(&packet, &room);
	if (recvmsg(pair[0], &packet, MSG_CMSG_CLOEXEC) != 1 || byte != CKT_WORKER_REFUSED_BYTE ||
		ckt_net_fd_take(&packet) < 0)
		return 3;
	return recv(pair[0], &byte, 1, 0) == 0 ? 0 : 4;
}

/* What is no such socket stays open, and nothing is sent; without a cage the socket is closed. */
static int other_descriptors(void)
{
	char message[256], byte;
	int pair[2], other[2];
	if (pipe(other) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 1;
	setenv("CRICKET_CAGE", "none", 1);
	if (ckt_cage_enter(pair[1], message, sizeof message))
		return 2;
	if (fcntl(pair[1], F_GETFD) != -1 || recv(pair[0], &byte, 1, 0) != 0)
		return 3;
	setenv("CRICKET_CAGE", "soft:/usr/lib/libcuda.so.1", 1);
	if (ckt_cage_enter(other[1], message, sizeof message))
		return 90;
	if (fcntl(other[1], F_GETFD) < 0)
		return 4;
	return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == -1 && errno == EPERM ? 0 : 5;
}

static void test_refused(void)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
		puts("skipped: the kernel has no filters of system calls");
		return;
	}
	IS(cage_child(passes_listener), 0);
	IS(cage_child(other_descriptors), 0);
}

static void test_variable(void)
{
	IS(cage_child(without), 0);
	IS(cage_child(networks), 0);
	IS(cage_child(malformed), 0);
}

UNIT_SUITE(cage, {"variable", test_variable}, {"escapes", test_escapes}, {"refused", test_refused})
