/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and peers; see identity.h. */
#include "rpc/identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int ckt_auth_token_load(
	const char *path, struct ckt_token *ret_token, char *ret_message, size_t message_size)
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
		snprintf(ret_message, message_size,
			S_ISREG(st.st_mode) ? "other users can read or write token file %s (mode "
					      "%04o): run chmod 600 on it"
					    : "token file %s is not a regular file (mode %04o)",
			path, (unsigned)st.st_mode & 07777);
		close(fd);
		return -EPERM;
	}
	/* Reads one byte more than allowed, to notice a longer file. */
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
			"token file %s holds %s than %d bytes: make one with 'head -c 32 /dev/urandom | base64 > %s'",
			path, size < CKT_TOKEN_MIN ? "less" : "more",
			size < CKT_TOKEN_MIN ? CKT_TOKEN_MIN : CKT_TOKEN_MAX, path);
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

void ckt_auth_hmac(const struct ckt_token *token, const uint8_t nonce[CKT_AUTH_NONCE_SIZE],
	const void *args, size_t args_bytes, uint8_t ret_hmac[CKT_AUTH_HMAC_SIZE])
{
	struct hmac_sha256_ctx hmac;
	hmac_sha256_set_key(&hmac, token->size_bytes, token->bytes);
	hmac_sha256_update(&hmac, CKT_AUTH_NONCE_SIZE, nonce);
	hmac_sha256_update(&hmac, args_bytes, args);
	hmac_sha256_digest(&hmac, CKT_AUTH_HMAC_SIZE, ret_hmac);
	explicit_bzero(&hmac, sizeof hmac);
}

void ckt_auth_hash(const void *data, size_t size_bytes, uint8_t ret_hash[CKT_AUTH_HASH_SIZE])
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size_bytes, data);
	sha256_digest(&sha, CKT_AUTH_HASH_SIZE, ret_hash);
	explicit_bzero(&sha, sizeof sha);
}

bool ckt_auth_equal(const void *a, const void *b, size_t size_bytes)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t difference = 0;
	for (size_t i = 0; i < size_bytes; i++)
		difference |= x[i] ^ y[i];
	return difference == 0;
}

/* ---- Peers */

/*
 * As an IPv6 address, ::ffff:a.b.c.d for IPv4: one host has one address, whichever way a packet
 * came.
 */
static bool address_from(const struct sockaddr_storage *storage, uint8_t ret[16])
{
	if (storage->ss_family == AF_INET) {
		memset(ret, 0, 10);
		ret[10] = ret[11] = 0xff;
		memcpy(ret + 12, &((const struct sockaddr_in *)storage)->sin_addr, 4);
		return true;
	}
	if (storage->ss_family == AF_INET6) {
		memcpy(ret, &((const struct sockaddr_in6 *)storage)->sin6_addr, 16);
		return true;
	}
	return false;
}

bool ckt_auth_address_is_v4(const uint8_t address[16])
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address);
}

static bool address_is_loopback(const uint8_t address[16])
{
	return ckt_auth_address_is_v4(address)
		? address[12] == 127
		: IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)address);
}

int ckt_auth_peer_get(int fd, struct ckt_auth_peer *ret_peer)
{
	struct ckt_auth_peer peer = {.kind = CKT_PEER_REMOTE, .uid = CKT_UID_UNKNOWN};
	struct sockaddr_storage theirs = {0}, ours = {0};
	socklen_t theirs_size = sizeof theirs, ours_size = sizeof ours;
	char host[96], port[8];
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
	if (!address_from(&theirs, peer.address) ||
		getnameinfo((struct sockaddr *)&theirs, theirs_size, host, sizeof host, port,
			sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		return -EAFNOSUPPORT;
	snprintf(peer.text, sizeof peer.text, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	/*
	 * The kernel cannot tell whose process it is: the peer may be a forwarder that speaks for
	 * another host.
	 */
	if (address_is_loopback(peer.address))
		peer.kind = CKT_PEER_LOOPBACK;
	*ret_peer = peer;
	return 0;
}
