/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/listen.c: what the server listens on: refusals that name the remedy, a lock
 * that a dead server leaves behind for the next, the address file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/peer/listen.h"

static char message[512];

/* A server of our own beside that of the other suites. */
static struct ckt_server *fresh(const char *name, const char *address)
{
	static struct ckt_server s;
	memset(&s, 0, sizeof s);
	ckt_loop_init(&s.loop);
	s.lock_fd = -1;
	snprintf(s.host, sizeof s.host, "this-host");
	snprintf(s.socket_path, sizeof s.socket_path, "%s", path_in(name));
	snprintf(s.socket_dir, sizeof s.socket_dir, "%.4000s.d", s.socket_path);
	if (address) {
		s.options.listen.items[0] = (char *)address;
		s.options.listen.count = 1;
	}
	return &s;
}

static int try_open(const char *name, const char *address)
{
	struct ckt_server *s = fresh(name, address);
	int result = ckt_listen_open(s, message, sizeof message);
	ckt_listen_close(s);
	ckt_loop_fini(&s->loop);
	return result;
}

static void test_tcp(void)
{
	static const struct {
		const char *address;
		int result;
		const char *words;
	} cases[] = {
		{"127.0.0.1:0", 0, NULL},
		{":0", 0, NULL},
		{"none", 0, NULL},
		{"0.0.0.0:0", -EPERM, "--tokens FILE or --token-file"},
		{"[::]:0", -EPERM, "--tokens FILE or --token-file"},
		{"127.0.0.1:99999", -EINVAL, "--listen"},
		{"", -EINVAL, "--listen"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int result = try_open("l1", cases[i].address);
		if (cases[i].result == -EPERM && result == -EAFNOSUPPORT)
			continue; /* a host without IPv6 */
		if (!IS(result, cases[i].result))
			fprintf(stderr, "%s: %s\n", cases[i].address, message);
		if (cases[i].words)
			HAS(message, cases[i].words);
	}
	struct ckt_server *s = fresh("l1", "none");
	s->options.listen.items[1] = (char *)":0";
	s->options.listen.count = 2;
	IS(ckt_listen_open(s, message, sizeof message), -EINVAL);
	HAS(message, "cannot be combined");
	ckt_listen_close(s);
	/* With a token or --insecure it may be open to others, but not in the clear. */
	s = fresh("l1", "0.0.0.0:0");
	s->options.insecure = true;
	IS(ckt_listen_open(s, message, sizeof message), -EPERM);
	HAS(message, "nothing is encrypted: give --tls-certificate FILE and --tls-key FILE");
	ckt_listen_close(s);
	s = fresh("l1", "0.0.0.0:0");
	s->options.insecure = s->options.insecure_plaintext = true;
	IS(ckt_listen_open(s, message, sizeof message), 0);
	IS(s->listener_count, 2);
	/* the real port */
	NO(strstr(s->listeners[1].text, ":0") && strlen(strrchr(s->listeners[1].text, ':')) == 2);
	/* The port is taken now. */
	char taken[CKT_ADDRESS_TEXT_MAX];
	snprintf(taken, sizeof taken, "127.0.0.1%s", strrchr(s->listeners[1].text, ':'));
	struct ckt_server kept = *s;
	s = fresh("l2", taken);
	IS(ckt_listen_open(s, message, sizeof message), -EADDRINUSE);
	HAS(message, "another server may have it");
	ckt_listen_close(s);
	*s = kept;
	ckt_listen_close(s);
}

static void test_unix(void)
{
	struct stat st;
	char lock[256];
	struct ckt_server *s = fresh("u1", NULL), kept;
	MUST(ckt_listen_open(s, message, sizeof message), 0);
	IS(stat(path_in("u1"), &st), 0);
	YES(S_ISSOCK(st.st_mode));
	IS(stat(path_in("u1.d"), &st), 0);
	IS(st.st_mode & 07777, 0700);
	snprintf(lock, sizeof lock, "%s", path_in("u1.lock"));
	IS(stat(lock, &st), 0);
	kept = *s;
	IS(try_open("u1", NULL), -EADDRINUSE);
	HAS(message, "a running server uses");
	*s = kept;
	ckt_listen_close(s);
	YES(stat(path_in("u1"), &st) != 0 && stat(lock, &st) != 0 &&
		stat(path_in("u1.d"), &st) != 0);
	/* What a dead server left: its socket, its lock, its directory with sessions. */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path_in("u1"));
	IS(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	write_file(lock, "", 0600);
	IS(mkdir(path_in("u1.d"), 0700), 0);
	write_file(path_in("u1.d/0000000000f1.sock"), "", 0600);
	IS(try_open("u1", NULL), 0);
	/* sessions are left to the next server */
	IS(stat(path_in("u1.d/0000000000f1.sock"), &st), 0);
	/* Not ours to remove. */
	write_file(path_in("u2"), "x", 0600);
	IS(try_open("u2", NULL), -EEXIST);
	TEXT(read_file(path_in("u2")), "x");
	IS(mkdir(path_in("u3.d"), 0755), 0);
	IS(chmod(path_in("u3.d"), 0755), 0);
	IS(try_open("u3", NULL), -EPERM);
	HAS(message, "mode 0700");
	char longest[100];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	IS(try_open(longest, NULL), -ENAMETOOLONG);
	/* Somebody holds the lock, though nobody answers. */
	fd = open(path_in("u4.lock"), O_RDWR | O_CREAT, 0600);
	IS(flock(fd, LOCK_EX), 0);
	IS(try_open("u4", NULL), -EADDRINUSE);
	close(fd);
	IS(try_open("u4", NULL), 0);
}

static void test_address_file(void)
{
	char path[256], expected[CKT_ADDRESS_TEXT_MAX + 64];
	snprintf(path, sizeof path, "%s", path_in("address"));
	struct ckt_server *s = fresh("a1", "none");
	IS(ckt_listen_write_address_file(s, message, sizeof message), 0); /* none is wanted */
	s->options.address_file = path;
	MUST(ckt_listen_open(s, message, sizeof message), 0);
	IS(ckt_listen_write_address_file(s, message, sizeof message), 0);
	snprintf(expected, sizeof expected, "unix:%.200s\n", s->socket_path);
	TEXT(read_file(path), expected);
	ckt_listen_close(s);
	YES(access(path, F_OK) != 0);
	/* A wildcard is of no use to others: they get the host's name. */
	s = fresh("a1", "0.0.0.0:0");
	s->options.insecure = s->options.insecure_plaintext = true;
	s->options.address_file = path;
	MUST(ckt_listen_open(s, message, sizeof message), 0);
	IS(ckt_listen_write_address_file(s, message, sizeof message), 0);
	snprintf(
		expected, sizeof expected, "this-host%.100s\n", strrchr(s->listeners[1].text, ':'));
	TEXT(read_file(path), expected);
	ckt_listen_close(s);
	s = fresh("a1", "none");
	s->options.address_file = (char *)"/nowhere/address";
	MUST(ckt_listen_open(s, message, sizeof message), 0);
	IS(ckt_listen_write_address_file(s, message, sizeof message), -ENOENT);
	HAS(message, "--address-file");
	ckt_listen_close(s);
}

UNIT_SUITE(listen, {"tcp", test_tcp}, {"unix", test_unix}, {"address file", test_address_file})
