/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/identity.h: tokens, HMAC and the user behind a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/identity.h"
#include "tests/unit/suite.h"

static int load(const char *content, size_t size, mode_t mode, struct ckt_token *token,
	char *message, size_t message_size)
{
	char path[] = "/tmp/ckt-token-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_EQUAL(write(fd, content, size), (ssize_t)size);
	fchmod(fd, mode);
	close(fd);
	int result = ckt_auth_token_load(path, token, message, message_size);
	unlink(path);
	return result;
}

static void test_token_file(void)
{
	static char big[CKT_TOKEN_MAX + 2];
	memset(big, 'x', sizeof big);
	const struct {
		const char *content;
		size_t size;
		mode_t mode;
		int result;
		size_t token_size; /* or a part of the message */
		const char *says;
	} rows[] = {
		{"0123456789abcdef\r\n", 18, 0600, 0, 16, NULL},
		{"0123456789abcdef \t\v\f\n", 21, 0600, 0, 16, NULL},
		{" 123456789abcdef", 16, 0600, 0, 16, NULL},
		{"0123456789abcdef", 16, 0640, 0, 16, NULL},
		{"0123456789abcdef", 16, 0604, -EPERM, 0, "chmod 600"},
		{"0123456789abcdef", 16, 0602, -EPERM, 0, "mode 0602"},
		{"0123456789abcdef", 16, 0601, -EPERM, 0, "other users can read or write"},
		{"0123456789abcde\n", 16, 0600, -EINVAL, 0, "less than 16 bytes"},
		{"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 16, 0600, -EINVAL, 0, "less than 16 bytes"},
		{"", 0, 0600, -EINVAL, 0, "less than 16 bytes"},
		{big, CKT_TOKEN_MAX, 0600, 0, CKT_TOKEN_MAX, NULL},
		{big, CKT_TOKEN_MAX + 1, 0600, -EINVAL, 0, "more than 1024 bytes"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_token token = {.size_bytes = 5};
		char message[512] = "";
		IS(load(rows[i].content, rows[i].size, rows[i].mode, &token, message,
			   sizeof message),
			rows[i].result);
		/* What is refused leaves the caller's token alone. */
		IS(token.size_bytes, rows[i].result ? 5 : rows[i].token_size);
		if (rows[i].result)
			HAS(message, rows[i].says);
		else
			IS(memcmp(token.bytes, rows[i].content, token.size_bytes), 0);
	}
}

static void test_no_token_file(void)
{
	static const struct {
		const char *path, *says;
		int result;
	} rows[] = {
		{"/nonexistent", "No such file", -ENOENT},
		{"/dev/null", "not a regular file", -EPERM},
		{"/tmp", "not a regular file", -EPERM},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ckt_token token;
		char message[512] = "";
		IS(ckt_auth_token_load(rows[i].path, &token, message, sizeof message),
			rows[i].result);
		HAS(message, rows[i].path);
		HAS(message, rows[i].says);
	}
}

/*
 * Computed with Python's hmac and hashlib: key "0123456789abcdef", nonce of bytes 0..31,
 * "arguments".
 */
static const uint8_t expected[] = {
	0x28,
	0x9f,
	0x21,
	0x45,
	0x0d,
	0xa0,
	0x80,
	0x8e,
	0x8f,
	0xe4,
	0x98,
	0xfc,
	0x8d,
	0x47,
	0x8a,
	0x30,
	0xa8,
	0x35,
	0x1b,
	0xd2,
	0xdc,
	0x87,
	0xec,
	0x31,
	0xd2,
	0xe5,
	0x79,
	0x79,
	0x1f,
	0x5e,
	0xe5,
	0x4c,
};

static void test_hmac(void)
{
	struct ckt_token token = {.size_bytes = 16};
	uint8_t nonce[CKT_AUTH_NONCE_SIZE], hmac[CKT_AUTH_HMAC_SIZE];
	memcpy(token.bytes, "0123456789abcdef", 16);
	for (int i = 0; i < CKT_AUTH_NONCE_SIZE; i++)
		nonce[i] = (uint8_t)i;
	ckt_auth_hmac(&token, nonce, "arguments", 9, hmac);
	CU_ASSERT_EQUAL(memcmp(hmac, expected, sizeof hmac), 0);
	CU_ASSERT(ckt_auth_equal(hmac, expected, sizeof hmac));
	for (size_t i = 0; i < sizeof hmac; i++) {
		hmac[i] ^= 0x80;
		CU_ASSERT_FALSE(ckt_auth_equal(hmac, expected, sizeof hmac));
		hmac[i] ^= 0x80;
	}
	CU_ASSERT(ckt_auth_equal(hmac, nonce, 0));
}

/* Computed with Python's hashlib. */
static void test_hash(void)
{
	static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41,
		0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
		0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	uint8_t hash[CKT_AUTH_HASH_SIZE];
	ckt_auth_hash("abc", 3, hash);
	CU_ASSERT_EQUAL(memcmp(hash, abc, sizeof hash), 0);
}

/* A connected pair over loopback TCP; to_v4: by way of a mapped address. */
static void tcp_pair(int family, bool to_v4, int *ret_server, int *ret_client)
{
	struct sockaddr_storage storage = {.ss_family = (sa_family_t)family};
	socklen_t size = sizeof storage;
	int zero = 0, listener = socket(family, SOCK_STREAM, 0);
	*ret_server = *ret_client = -1;
	if (family == AF_INET) {
		((struct sockaddr_in *)&storage)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		((struct sockaddr_in6 *)&storage)->sin6_addr =
			to_v4 ? in6addr_any : in6addr_loopback;
		setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
	}
	if (listener < 0 ||
		bind(listener, (struct sockaddr *)&storage, sizeof(struct sockaddr_in6)) ||
		listen(listener, 1) || getsockname(listener, (struct sockaddr *)&storage, &size)) {
		close(listener);
		return;
	}
	int client;
	if (to_v4) {
		struct sockaddr_in v4 = {.sin_family = AF_INET,
			.sin_port = ((struct sockaddr_in6 *)&storage)->sin6_port};
		v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		client = socket(AF_INET, SOCK_STREAM, 0);
		CU_ASSERT_EQUAL(connect(client, (struct sockaddr *)&v4, sizeof v4), 0);
	} else {
		client = socket(family, SOCK_STREAM, 0);
		CU_ASSERT_EQUAL(connect(client, (struct sockaddr *)&storage, size), 0);
	}
	*ret_server = accept(listener, NULL, NULL);
	*ret_client = client;
	close(listener);
}

static void check_tcp(int family, bool to_v4)
{
	struct ckt_auth_peer peer;
	int server, client;
	tcp_pair(family, to_v4, &server, &client);
	if (server < 0)
		return; /* no IPv6 here */
	CU_ASSERT_EQUAL(ckt_auth_peer_get(server, &peer), 0);
	CU_ASSERT_EQUAL(peer.kind, CKT_PEER_LOOPBACK);
	CU_ASSERT_EQUAL(peer.pid, 0);
	HAS(peer.text, family == AF_INET ? "127.0.0.1:" : to_v4 ? "127.0.0.1]:" : "[::1]:");
	/* Whoever it is: root's forwarder speaks for anybody. */
	CU_ASSERT_EQUAL(peer.uid, CKT_UID_UNKNOWN);
	CU_ASSERT_EQUAL(ckt_auth_address_is_v4(peer.address), family == AF_INET || to_v4);
	CU_ASSERT_EQUAL(peer.address[15], 1);
	close(client);
	close(server);
}

static void test_tcp_peer(void)
{
	check_tcp(AF_INET, false);
	check_tcp(AF_INET6, false);
	check_tcp(AF_INET6, true);
}

static void test_unix_peer(void)
{
	struct ckt_auth_peer peer;
	int fds[2];
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	CU_ASSERT_EQUAL(ckt_auth_peer_get(fds[0], &peer), 0);
	CU_ASSERT_EQUAL(peer.kind, CKT_PEER_UNIX);
	CU_ASSERT_EQUAL(peer.uid, getuid());
	CU_ASSERT_EQUAL(peer.pid, getpid());
	TEXT(peer.text, "local");
	close(fds[0]);
	close(fds[1]);
	IS(ckt_auth_peer_get(-1, &peer), -EBADF);
	/* Not connected: there is nobody to name. */
	int alone = socket(AF_INET, SOCK_STREAM, 0);
	IS(ckt_auth_peer_get(alone, &peer), -ENOTCONN);
	close(alone);
}

UNIT_SUITE(identity, {"token file", test_token_file}, {"no token file", test_no_token_file},
	{"hmac", test_hmac}, {"hash", test_hash}, {"tcp peer", test_tcp_peer},
	{"unix peer", test_unix_peer})
