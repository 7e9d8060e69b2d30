/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/transport/known_servers.c: a first contact, the same key again, another one; with and without
 * a terminal; files of others; several at one time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/transport/known_servers.h"
#include "tests/unit/suite.h"

static const uint8_t one[CKT_FINGERPRINT_SIZE] = {1}, two[CKT_FINGERPRINT_SIZE] = {2};
static char home[] = "/tmp/ckt-known-XXXXXX", path[CKT_KNOWN_SERVERS_PATH], message[1024];

static void begin(const char *first)
{
	strcpy(home + sizeof home - 7, "XXXXXX");
	MUST(mkdtemp(home) != NULL, true);
	setenv("XDG_CONFIG_HOME", home, 1);
	if (first)
		setenv("CRICKET_TLS_FIRST", first, 1);
	else
		unsetenv("CRICKET_TLS_FIRST");
	MUST(ckt_known_servers_configuration("known_servers", path, sizeof path), 0);
	*message = 0;
}

static void end(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", home);
	IS(system(command), 0);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("CRICKET_TLS_FIRST");
}

static int decide(const char *server, const uint8_t *fingerprint)
{
	return ckt_known_servers_decide(server, fingerprint, NULL, 0, message, sizeof message);
}

static void write_text(const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	MUST(file != NULL, true);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

static const char *text_of_file(void)
{
	static char text[8192];
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file)
		fclose(file);
	text[n] = 0;
	return text;
}

static void test_accept(void)
{
	uint8_t kept[CKT_FINGERPRINT_SIZE];
	enum ckt_known_server known = CKT_KNOWN_OTHER;
	struct stat st;
	begin("accept");
	IS(ckt_known_servers_look("node", one, &known, kept, message, sizeof message), 0);
	IS(known, CKT_KNOWN_NOT);
	IS(decide("Node", one), 0);
	IS(decide("node", one), 0);
	IS(decide("node2", two), 0);
	MUST(stat(path, &st), 0);
	IS(st.st_mode & 0777, 0600);
	/* Another key is never accepted. */
	IS(decide("node", two), -EACCES);
	HAS(message, "HAS ANOTHER KEY than before: now SHA256:AgAA");
	HAS(message, "it is SHA256:AQAA");
	HAS(message, "cricketctl certificate trust node --fingerprint SHA256:AgAA");
	IS(ckt_known_servers_look("NODE", two, &known, kept, message, sizeof message), 0);
	IS(known, CKT_KNOWN_OTHER);
	IS(memcmp(kept, one, sizeof kept), 0);
	/* Until the user says so; the other lines stay. */
	IS(ckt_known_servers_keep("node", two, message, sizeof message), 0);
	IS(decide("node", two), 0);
	IS(decide("node2", two), 0);
	IS(decide("node", one), -EACCES);
	end();
}

static void test_refuse(void)
{
	static const char *const words[] = {"refuse", "refused", "yes", "ACCEPT"};
	for (unsigned i = 0; i < COUNT(words); i++) {
		begin(words[i]);
		IS(decide("node", one), -EACCES);
		HAS(message, "is not known and no authority is given");
		HAS(message, "SHA256:AQAA");
		HAS(message, "run cricketctl certificate trust node --fingerprint SHA256:AQAA");
		NO(access(path, F_OK) == 0);
		end();
	}
}

static void test_names(void)
{
	char name[300];
	memset(name, 'a', sizeof name);
	name[CKT_KNOWN_SERVER_MAX + 1] = 0;
	const char *const bad[] = {"", "a b", "a\nb", "#a", "a\tb", "a\x7f", "\xc3\xa4", name};
	begin("accept");
	for (unsigned i = 0; i < COUNT(bad); i++) {
		IS(decide(bad[i], one), -EINVAL);
		HAS(message, "no name of a server");
	}
	name[CKT_KNOWN_SERVER_MAX] = 0;
	IS(decide(name, one), 0);
	IS(decide("fd00::7", one), 0);
	IS(decide("fd00::7", two), -EACCES);
	/* A name that another one begins with. */
	IS(decide("fd00::", two), 0);
	end();
}

static void test_files(void)
{
	begin("accept");
	IS(decide("first", one), 0);
	write_text("# of the lab\n\nnode SHA256:spoiled 2026-11-28\nlast SHA256:x", 0600);
	IS(decide("node", one), -EACCES);
	HAS(message, "HAS ANOTHER KEY");
	IS(ckt_known_servers_keep("node", one, message, sizeof message), 0);
	IS(decide("node", one), 0);
	HAS(text_of_file(), "# of the lab\n\nlast SHA256:x\nnode SHA256:AQAA");
	/* Who can write it decides who is trusted. */
	write_text("", 0622);
	IS(decide("node", one), -EPERM);
	HAS(message, "others may write it");
	unlink(path);
	MUST(mkdir(path, 0700), 0);
	IS(decide("node", one), -EFBIG);
	rmdir(path);
	/* A server that cannot be remembered is not accepted. */
	char directory[CKT_KNOWN_SERVERS_PATH + 8];
	snprintf(directory, sizeof directory, "%s.new", path);
	MUST(mkdir(directory, 0700), 0);
	IS(decide("node", one), -EEXIST);
	HAS(message, "cannot write it");
	end();
	unsetenv("HOME");
	IS(decide("node", one), -ENOENT);
	HAS(message, "set HOME");
	setenv("HOME", "/root", 1);
}

/* Each of several processes remembers a server of its own, and all of them one in common. */
static void test_several(void)
{
	enum { PROCESSES = 8 };
	pid_t pids[PROCESSES];
	begin("accept");
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			char name[16];
			snprintf(name, sizeof name, "node%d", i);
			_exit(decide(name, one) || decide("common", one));
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = -1;
		waitpid(pids[i], &status, 0);
		IS(status, 0);
	}
	unsigned lines = 0;
	for (const char *p = text_of_file(); (p = strchr(p, '\n')); p++)
		lines++;
	IS(lines, PROCESSES + 1);
	end();
}

/* In a child with a terminal of its own: the exit status is the decision's. */
static int ask_on_terminal(const char *answer, char *ret_said, size_t size)
{
	int status = -1, terminal = posix_openpt(O_RDWR | O_NOCTTY);
	MUST(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal), true);
	pid_t pid = fork();
	if (!pid) {
		setsid();
		int own = open(ptsname(terminal), O_RDWR);
		if (own < 0 || ioctl(own, TIOCSCTTY, 0))
			_exit(99);
		close(terminal);
		_exit(-decide("node", one));
	}
	size_t said = 0;
	while (said < size - 1 && !memmem(ret_said, said, "(yes/no)?", 9)) {
		ssize_t n = read(terminal, ret_said + said, size - 1 - said);
		if (n <= 0)
			break;
		said += (size_t)n;
	}
	ret_said[said] = 0;
	IS(write(terminal, answer, strlen(answer)), strlen(answer));
	waitpid(pid, &status, 0);
	close(terminal);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_terminal(void)
{
	char said[2048];
	begin(NULL);
	IS(ask_on_terminal("no\n", said, sizeof said), EACCES);
	HAS(said, "Server 'node' is not known.  Its key has the fingerprint SHA256:AQAA");
	IS(ask_on_terminal("y\n", said, sizeof said), EACCES);
	IS(ask_on_terminal("\n", said, sizeof said), EACCES);
	NO(access(path, F_OK) == 0);
	IS(ask_on_terminal("yes\n", said, sizeof said), 0);
	HAS(text_of_file(), "node SHA256:AQAA");
	end();
}

/* A process without one, or in its background, is not stopped by the question. */
static void test_no_terminal(void)
{
	int status = -1;
	begin("ask");
	pid_t pid = fork();
	if (!pid) {
		setsid();
		_exit(-decide("node", one));
	}
	waitpid(pid, &status, 0);
	IS(WIFEXITED(status) ? WEXITSTATUS(status) : -1, EACCES);
	end();
}

UNIT_SUITE(known_servers, {"accept", test_accept}, {"refuse", test_refuse}, {"names", test_names},
	{"files", test_files}, {"several", test_several}, {"terminal", test_terminal},
	{"no_terminal", test_no_terminal})
