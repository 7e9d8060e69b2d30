/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's cache of modules on disk; see blob_cache.h. */
#include "server/worker/module/blob_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/module_cache.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "server/worker/worker.h"

enum { SERVER_S = 2 };

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: no cache */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static struct {
	_Atomic uint64_t hits, hit_bytes, misses;
} counts;

static bool is_stream_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t type_size = sizeof type, domain_size = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) == 0 &&
		type == SOCK_STREAM && domain == AF_UNIX;
}

/* Precondition: lock held. */
static void leave(void)
{
	if (cache.fd >= 0)
		close(cache.fd);
	cache.fd = -1;
}

int ckt_blob_cache_use(int fd)
{
	const struct timeval limit = {.tv_sec = SERVER_S};
	if (fd < 0)
		return -EINVAL;
	if (!is_stream_socket(fd) ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit)) {
		close(fd);
		return -EINVAL;
	}
	pthread_mutex_lock(&cache.lock);
	leave();
	cache.fd = fd;
	pthread_mutex_unlock(&cache.lock);
	return 0;
}

/* Precondition: lock held.  0 or -errno, and then there is no cache any more. */
static int send_all(const void *data, size_t size)
{
	for (const uint8_t *p = data; size;) {
		ssize_t n = send(cache.fd, p, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int error = n < 0 ? errno : EPIPE;
			leave();
			return -error;
		}
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int send_message(
	enum ckt_module_cache_kind kind, const uint8_t hash[CKT_HASH_SIZE], uint64_t size)
{
	struct ckt_module_cache_message message = {.kind = kind, .size = size};
	memcpy(message.hash, hash, sizeof message.hash);
	return send_all(&message, sizeof message);
}

/* Precondition: lock held.  0: ret_fd is the caller's, or -1 if the cache has no such module. */
static int receive_answer(struct ckt_module_cache_answer *ret_answer, int *ret_fd)
{
	union ckt_net_fd_room room;
	struct iovec part = {.iov_base = ret_answer, .iov_len = sizeof *ret_answer};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ckt_net_fd_expect(&message, &room);
	ssize_t n = ckt_net_receive_message(cache.fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	int error = n < 0 ? errno : EPROTO;
	*ret_fd = n < 0 ? -1 : ckt_net_fd_take(&message);
	if (n == sizeof *ret_answer && (*ret_fd >= 0) == (ret_answer->found == 1))
		return 0;
	if (*ret_fd >= 0)
		close(*ret_fd);
	leave();
	return -error;
}

/* Precondition: lock held.  A file, the caller's, and its size; or -errno. */
static int ask(const uint8_t hash[CKT_HASH_SIZE], uint64_t *ret_size)
{
	struct ckt_module_cache_answer answer = {0};
	struct stat status;
	int fd = -1;
	int result = send_message(CKT_MODULE_CACHE_GET, hash, 0);
	if (!result)
		result = receive_answer(&answer, &fd);
	if (result) {
		ckt_info("the cache of modules is not used any more: %s", strerror(-result));
		return result;
	}
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*ret_size = answer.size;
	return fd;
}

/* Precondition: lock held.  0 or -errno. */
static int ask_list(uint32_t words[CKT_MODULE_CACHE_WORDS], struct ckt_module_cache_answer *answer)
{
	static const uint8_t none[CKT_HASH_SIZE];
	int result = send_message(CKT_MODULE_CACHE_LIST, none, 0);
	if (result)
		return result;
	ssize_t n = ckt_net_receive(cache.fd, answer, sizeof *answer, MSG_WAITALL);
	size_t size = CKT_MODULE_CACHE_WORDS * sizeof *words;
	if (n == sizeof *answer && answer->size <= size &&
		answer->size == answer->found * sizeof *words) {
		size = answer->size;
		n = size ? ckt_net_receive(cache.fd, words, size, MSG_WAITALL) : 0;
		if (n == (ssize_t)size)
			return 0;
	}
	int error = n < 0 ? errno : EPROTO;
	leave();
	return -error;
}

void ckt_blob_cache_tell(struct ckt_worker *worker)
{
	uint32_t words[CKT_MODULE_CACHE_WORDS];
	struct ckt_module_cache_answer answer = {0};
	pthread_mutex_lock(&cache.lock);
	int result = cache.fd >= 0 ? ask_list(words, &answer) : -ENOTCONN;
	pthread_mutex_unlock(&cache.lock);
	if (result)
		return;
	uint8_t *p = ckt_output_begin(&worker->output, ckt_output_epoch(&worker->output),
		CKT_CALL_HEADER_SIZE + 8 + answer.size);
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_MODULES});
	p = ckt_put_u32(p, answer.complete == 1);
	p = ckt_put_u32(p, answer.found);
	for (uint32_t i = 0; i < answer.found; i++)
		p = ckt_put_u32(p, words[i]);
	ckt_output_end(&worker->output);
}

static int fetch(struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE])
{
	uint64_t size = 0;
	int fd = ask(hash, &size);
	if (fd < 0)
		return fd;
	int result = ckt_blobs_read(blobs, hash, fd, size);
	close(fd);
	if (result == -EBADMSG && send_message(CKT_MODULE_CACHE_BAD, hash, 0))
		ckt_debug("the server does not hear of a damaged module in its cache");
	return result;
}

const struct ckt_blob *ckt_blob_cache_find(
	struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE])
{
	const struct ckt_blob *blob = ckt_blobs_find(blobs, hash);
	if (blob)
		return blob;
	pthread_mutex_lock(&cache.lock);
	int result = cache.fd >= 0 ? fetch(blobs, hash) : -ENOTCONN;
	pthread_mutex_unlock(&cache.lock);
	if (result)
		return NULL;
	blob = ckt_blobs_find(blobs, hash);
	atomic_fetch_add(&counts.hits, 1);
	atomic_fetch_add(&counts.hit_bytes, blob->size);
	return blob;
}

void ckt_blob_cache_keep(const struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE])
{
	const struct ckt_blob *blob = ckt_blobs_find(blobs, hash);
	if (!blob)
		return;
	pthread_mutex_lock(&cache.lock);
	int result = 0;
	if (cache.fd >= 0) {
		atomic_fetch_add(&counts.misses, 1);
		result = send_message(CKT_MODULE_CACHE_PUT, hash, blob->size);
		if (!result)
			result = send_all(blob->data, blob->size);
	}
	pthread_mutex_unlock(&cache.lock);
	if (result)
		ckt_info("the cache of modules is not used any more: %s", strerror(-result));
}

void ckt_blob_cache_count(struct ckt_blob_cache_counts *ret_counts)
{
	*ret_counts = (struct ckt_blob_cache_counts){.hits = atomic_load(&counts.hits),
		.hit_bytes = atomic_load(&counts.hit_bytes),
		.misses = atomic_load(&counts.misses)};
}
