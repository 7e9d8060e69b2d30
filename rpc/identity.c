/* Tokens and peers; see identity.h. */
#include "rpc/identity.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int ckt_auth_token_load(const char *path, struct ckt_token *ret_token, char *ret_message, size_t message_size)
{
	struct ckt_token token = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st)) {
		int error = errno;
		snprintf(ret_message, message_size, "token file %s: %s", path, strerror(error));
		if (fd >= 0)
			close(fd);
		return -error;
	}
	if (!S_ISREG(st.st_mode) || st.st_mode & 0007) {
		snprintf(ret_message, message_size, S_ISREG(st.st_mode) ? "token file %s is open to every user (mode %04o): chmod 600 it"
									: "token file %s is no ordinary file (mode %04o)",
			 path, (unsigned)st.st_mode & 07777);
		close(fd);
		return -EPERM;
	}
	/* One byte more than allowed, so that a longer file is noticed. */
	uint8_t bytes[CKT_TOKEN_MAX + 1];
	ssize_t n;
	size_t size = 0;
	while (size < sizeof bytes && (n = read(fd, bytes + size, sizeof bytes - size)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		size += (size_t)n;
	}
	close(fd);
	while (size && isspace(bytes[size - 1]))
		size--;
	if (size < CKT_TOKEN_MIN || size > CKT_TOKEN_MAX) {
		snprintf(ret_message, message_size,
			 "token file %s holds %s than %d bytes: make one with 'head -c 32 /dev/urandom | base64 > %s'", path,
			 size < CKT_TOKEN_MIN ? "less" : "more", size < CKT_TOKEN_MIN ? CKT_TOKEN_MIN : CKT_TOKEN_MAX, path);
		explicit_bzero(bytes, sizeof bytes);
		return -EINVAL;
	}
	memcpy(token.bytes, bytes, size);
	token.size_bytes = size;
	*ret_token = token;
	explicit_bzero(bytes, sizeof bytes);
	explicit_bzero(&token, sizeof token);
	return 0;
}

void ckt_auth_hmac(const struct ckt_token *token, const uint8_t nonce[CKT_AUTH_NONCE_SIZE], const void *args, size_t args_bytes,
		   uint8_t ret_hmac[CKT_AUTH_HMAC_SIZE])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, token->size_bytes, token->bytes);
	hmac_sha256_update(&hmac, CKT_AUTH_NONCE_SIZE, nonce);
	hmac_sha256_update(&hmac, args_bytes, args);
	hmac_sha256_digest(&hmac, CKT_AUTH_HMAC_SIZE, ret_hmac);
	explicit_bzero(&hmac, sizeof hmac);
}

bool ckt_auth_equal(const void *a, const void *b, size_t size_bytes)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t difference = 0;
	for (size_t i = 0; i < size_bytes; i++)
		difference |= x[i] ^ y[i];
	return difference == 0;
}

/* ---- The user behind a loopback connection */

struct endpoint {
	uint32_t words[4];	/* as the kernel prints them: network order, one hexadecimal number per 32-bit word in host order */
	int count;		/* 1: IPv4, 4: IPv6 */
	uint16_t port;
};

static bool endpoint_from(const struct sockaddr_storage *storage, struct endpoint *ret)
{
	struct endpoint e = {0};
	if (storage->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)storage;
		e.count = 1;
		e.words[0] = in->sin_addr.s_addr;
		e.port = ntohs(in->sin_port);
	} else if (storage->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)storage;
		e.port = ntohs(in6->sin6_port);
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			e.count = 1;
			memcpy(e.words, in6->sin6_addr.s6_addr + 12, 4);
		} else {
			e.count = 4;
			memcpy(e.words, in6->sin6_addr.s6_addr, 16);
		}
	} else {
		return false;
	}
	*ret = e;
	return true;
}

static bool endpoint_parse(const char *text, struct endpoint *ret)
{
	struct endpoint e = {0};
	size_t digits = strspn(text, "0123456789ABCDEFabcdef");
	unsigned port;
	if ((digits != 8 && digits != 32) || sscanf(text + digits, ":%4x", &port) != 1)
		return false;
	e.port = (uint16_t)port;
	e.count = (int)digits / 8;
	for (int i = 0; i < e.count; i++)
		if (sscanf(text + 8 * i, "%8x", &e.words[i]) != 1)
			return false;
	/* ::ffff:a.b.c.d is IPv4, whichever table it stands in. */
	if (e.count == 4 && !e.words[0] && !e.words[1] && e.words[2] == htonl(0xffff)) {
		e.words[0] = e.words[3];
		e.words[1] = e.words[2] = e.words[3] = 0;
		e.count = 1;
	}
	*ret = e;
	return true;
}

static bool endpoint_same(const struct endpoint *a, const struct endpoint *b)
{
	return a->count == b->count && a->port == b->port && memcmp(a->words, b->words, sizeof a->words) == 0;
}

/*
 * Rows: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...".  A socket that its process has closed shows
 * uid 0 and inode 0, so only rows with an inode count: otherwise a peer that hangs up early would pass for root.
 */
static uint32_t find_uid(const char *table, const struct endpoint *local, const struct endpoint *remote)
{
	char line[512];
	uint32_t found = CKT_UID_UNKNOWN;
	FILE *file = fopen(table, "re");
	if (!file)
		return found;
	while (found == CKT_UID_UNKNOWN && fgets(line, sizeof line, file)) {
		char local_text[64], remote_text[64];
		unsigned state, uid;
		unsigned long inode;
		struct endpoint l, r;
		if (sscanf(line, " %*[^:]: %63s %63s %x %*s %*s %*s %u %*s %lu", local_text, remote_text, &state, &uid, &inode) != 5)
			continue;
		if (inode && endpoint_parse(local_text, &l) && endpoint_parse(remote_text, &r) && endpoint_same(&l, local) &&
		    endpoint_same(&r, remote))
			found = uid;
	}
	fclose(file);
	return found;
}

static bool endpoint_is_loopback(const struct endpoint *e)
{
	if (e->count == 1)
		return ntohl(e->words[0]) >> 24 == 127;
	return !e->words[0] && !e->words[1] && !e->words[2] && ntohl(e->words[3]) == 1;
}

int ckt_auth_peer_get(int fd, struct ckt_auth_peer *ret_peer)
{
	struct ckt_auth_peer peer = {.kind = CKT_PEER_REMOTE, .uid = CKT_UID_UNKNOWN};
	struct sockaddr_storage theirs = {0}, ours = {0};
	socklen_t theirs_size = sizeof theirs, ours_size = sizeof ours;
	if (getsockname(fd, (struct sockaddr *)&ours, &ours_size))
		return -errno;
	if (ours.ss_family == AF_UNIX) {
		struct ucred credentials;
		socklen_t size = sizeof credentials;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
			return -errno;
		peer.kind = CKT_PEER_UNIX;
		peer.uid = credentials.uid;
		peer.pid = credentials.pid;
		strcpy(peer.text, "local");
		*ret_peer = peer;
		return 0;
	}
	if (getpeername(fd, (struct sockaddr *)&theirs, &theirs_size))
		return -errno;
	char host[96], port[8];
	struct endpoint from, to;
	if (!endpoint_from(&theirs, &from) || !endpoint_from(&ours, &to) ||
	    getnameinfo((struct sockaddr *)&theirs, theirs_size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		return -EAFNOSUPPORT;
	snprintf(peer.text, sizeof peer.text, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	if (endpoint_is_loopback(&from)) {
		peer.kind = CKT_PEER_LOOPBACK;
		peer.uid = find_uid("/proc/net/tcp", &from, &to);
		if (peer.uid == CKT_UID_UNKNOWN)
			peer.uid = find_uid("/proc/net/tcp6", &from, &to);
	}
	*ret_peer = peer;
	return 0;
}
