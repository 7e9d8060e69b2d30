/* Tokens, HMAC and the user behind a connection. */
#include <CUnit/Basic.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/identity.h"

static int load(const char *content, size_t size, mode_t mode, struct ckt_token *token, char *message, size_t message_size)
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
	struct ckt_token token = {0};
	char message[512], big[CKT_TOKEN_MAX + 2];
	memset(big, 'x', sizeof big);
	CU_ASSERT_EQUAL(load("0123456789abcdef\r\n", 18, 0600, &token, message, sizeof message), 0);
	CU_ASSERT_EQUAL(token.size_bytes, 16);
	CU_ASSERT_EQUAL(memcmp(token.bytes, "0123456789abcdef", 16), 0);
	CU_ASSERT_EQUAL(load("0123456789abcdef", 16, 0640, &token, message, sizeof message), 0);
	token.size_bytes = 5;
	CU_ASSERT(load("0123456789abcdef", 16, 0604, &token, message, sizeof message) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "chmod 600"));
	CU_ASSERT(load("0123456789abcdef", 16, 0602, &token, message, sizeof message) < 0);
	CU_ASSERT(load("0123456789abcde\n", 16, 0600, &token, message, sizeof message) < 0);
	CU_ASSERT(load("", 0, 0600, &token, message, sizeof message) < 0);
	CU_ASSERT_EQUAL(token.size_bytes, 5);
	CU_ASSERT_EQUAL(load(big, CKT_TOKEN_MAX, 0600, &token, message, sizeof message), 0);
	CU_ASSERT_EQUAL(token.size_bytes, CKT_TOKEN_MAX);
	CU_ASSERT(load(big, CKT_TOKEN_MAX + 1, 0600, &token, message, sizeof message) < 0);
	CU_ASSERT(ckt_auth_token_load("/nonexistent", &token, message, sizeof message) < 0);
	CU_ASSERT(ckt_auth_token_load("/dev/null", &token, message, sizeof message) < 0);
	CU_ASSERT(ckt_auth_token_load("/tmp", &token, message, sizeof message) < 0);
}

/* Computed with Python's hmac and hashlib: key "0123456789abcdef", nonce of bytes 0..31, "arguments". */
static const uint8_t expected[] = {
	0x28, 0x9f, 0x21, 0x45, 0x0d, 0xa0, 0x80, 0x8e, 0x8f, 0xe4, 0x98, 0xfc, 0x8d, 0x47, 0x8a, 0x30,
	0xa8, 0x35, 0x1b, 0xd2, 0xdc, 0x87, 0xec, 0x31, 0xd2, 0xe5, 0x79, 0x79, 0x1f, 0x5e, 0xe5, 0x4c,
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
		((struct sockaddr_in6 *)&storage)->sin6_addr = to_v4 ? in6addr_any : in6addr_loopback;
		setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
	}
	if (listener < 0 || bind(listener, (struct sockaddr *)&storage, sizeof(struct sockaddr_in6)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&storage, &size)) {
		close(listener);
		return;
	}
	int client;
	if (to_v4) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = ((struct sockaddr_in6 *)&storage)->sin6_port};
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
		return;	/* no IPv6 here */
	CU_ASSERT_EQUAL(ckt_auth_peer_get(server, &peer), 0);
	CU_ASSERT_EQUAL(peer.kind, CKT_PEER_LOOPBACK);
	CU_ASSERT_EQUAL(peer.uid, getuid());
	/* Half closed it is still the user's; closed it is nobody's, and above all not root's. */
	shutdown(client, SHUT_WR);
	CU_ASSERT_EQUAL(ckt_auth_peer_get(server, &peer), 0);
	CU_ASSERT_EQUAL(peer.uid, getuid());
	close(client);
	if (ckt_auth_peer_get(server, &peer) == 0)
		CU_ASSERT_EQUAL(peer.uid, CKT_UID_UNKNOWN);
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
	close(fds[0]);
	close(fds[1]);
	CU_ASSERT(ckt_auth_peer_get(-1, &peer) < 0);
}

static void test_local_socket(void)
{
	char path[256], message[256];
	if (geteuid() == 0) {
		CU_ASSERT_EQUAL(ckt_local_socket_path(path, sizeof path, message, sizeof message), 0);
		CU_ASSERT_STRING_EQUAL(path, "/run/cricket/socket");
	} else {
		setenv("XDG_RUNTIME_DIR", "/somewhere", 1);
		CU_ASSERT_EQUAL(ckt_local_socket_path(path, sizeof path, message, sizeof message), 0);
		CU_ASSERT_STRING_EQUAL(path, "/somewhere/cricket/socket");
	}
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("identity", NULL, NULL);
	CU_add_test(suite, "token file", test_token_file);
	CU_add_test(suite, "hmac", test_hmac);
	CU_add_test(suite, "tcp peer", test_tcp_peer);
	CU_add_test(suite, "unix peer", test_unix_peer);
	CU_add_test(suite, "local socket", test_local_socket);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
