/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/landlock.c: what is allowed, what is not, and a kernel without it. */
#include "server/worker/cage/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage_child.h"
#include "tests/unit/suite.h"

static char place[64];

static bool is_missing(const char *test, int abi)
{
	struct ckt_landlock landlock;
	MUST(ckt_landlock_begin(&landlock, true), 0);
	ckt_landlock_drop(&landlock);
	if (landlock.abi < abi)
		printf("skipped %s: the kernel has Landlock %d, not %d\n", test, landlock.abi, abi);
	return landlock.abi < abi;
}

/* With `place` alone, and these rights. */
static int enter(unsigned rights, bool tcp)
{
	struct ckt_landlock landlock;
	if (ckt_landlock_begin(&landlock, tcp) || ckt_landlock_allow(&landlock, place, rights) ||
		ckt_landlock_allow(&landlock, "/no/such/path", rights))
		return 90;
	return ckt_landlock_enter(&landlock) ? 91 : 0;
}

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static const char *in_place(const char *name)
{
	static char path[128];
	snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

static int only_read(void)
{
	if (enter(CKT_LANDLOCK_READ, true))
		return 1;
	if (!opens(in_place("file"), O_RDONLY) || !opens(place, O_RDONLY | O_DIRECTORY))
		return 2;
	if (opens(in_place("file"), O_WRONLY) || errno != EACCES)
		return 3;
	if (opens(in_place("new"), O_WRONLY | O_CREAT) || errno != EACCES)
		return 4;
	if (opens("/etc/passwd", O_RDONLY) || errno != EACCES)
		return 5;
	if (unlink(in_place("file")) == 0 || mkdir(in_place("dir"), 0700) == 0)
		return 6;
	/* Those that were open before stay so: standard output. */
	return write(STDOUT_FILENO, "", 0) == 0 ? 0 : 7;
}

static int own(void)
{
	char from[128];
	if (enter(CKT_LANDLOCK_READ | CKT_LANDLOCK_WRITE | CKT_LANDLOCK_MAKE, true))
		return 1;
	if (!opens(in_place("new"), O_RDWR | O_CREAT | O_TRUNC))
		return 2;
	snprintf(from, sizeof from, "%s", in_place("new"));
	if (rename(from, in_place("newer")) || unlink(in_place("newer")))
		return 3;
	if (opens("/tmp/ckt-landlock-escape", O_RDWR | O_CREAT))
		return 4;
	execl("/bin/true", "true", (char *)NULL);
	return errno == EACCES ? 0 : 5;
}

static int network(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (enter(CKT_LANDLOCK_READ, false))
		return 1;
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != EACCES)
		return 2;
	address.sin_port = 0;
	return bind(fd, (struct sockaddr *)&address, sizeof address) && errno == EACCES ? 0 : 3;
}

static pid_t outside;

static int signals(void)
{
	if (enter(CKT_LANDLOCK_READ, true))
		return 1;
	if (kill(outside, 0) == 0 || errno != EPERM)
		return 2;
	/* A dead process is still told from a living one. */
	if (kill(0x3fffff, 0) == 0 || errno != ESRCH)
		return 3;
	return kill(getpid(), 0) == 0 ? 0 : 4;
}

static void begin(void)
{
	snprintf(place, sizeof place, "/tmp/ckt-landlock-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place));
	YES(opens(in_place("file"), O_RDWR | O_CREAT));
}

static void end(void)
{
	unlink(in_place("file"));
	rmdir(place);
}

static void test_files(void)
{
	if (is_missing("files", 1))
		return;
	begin();
	IS(cage_child(only_read), 0);
	IS(cage_child(own), 0);
	end();
}

static void test_network(void)
{
	if (is_missing("network", 4))
		return;
	begin();
	IS(cage_child(network), 0);
	end();
}

static void test_signals(void)
{
	if (is_missing("signals", 6))
		return;
	begin();
	outside = getpid();
	IS(cage_child(signals), 0);
	end();
}

/* As on a kernel without it: nothing is done, and nothing fails. */
static void test_none(void)
{
	struct ckt_landlock none = {.fd = -1};
	IS(ckt_landlock_allow(&none, "/tmp", CKT_LANDLOCK_READ), 0);
	IS(ckt_landlock_enter(&none), 0);
	YES(opens("/etc/passwd", O_RDONLY));
}

UNIT_SUITE(landlock, {"files", test_files}, {"network", test_network}, {"signals", test_signals},
	{"none", test_none})
