/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/blob_cache.h: modules from the owner's cache, whatever the other side of the
 * connection says.  The test is that side: its answer lies in the socket before the worker asks.
 */
#include "server/worker/module/blob_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/module_cache.h"
#include "rpc/net.h"
#include "rpc/record.h"
#include "rpc/session.h"
#include "server/worker/worker.h"
#include "tests/unit/suite.h"

enum { SIZE = 5000 };

static struct ckt_blobs blobs;
static int far_end = -1;

/* A blob that no other test has. */
static const uint8_t *fresh(uint8_t ret_hash[CKT_HASH_SIZE])
{
	static uint8_t data[SIZE];
	static unsigned number;
	memcpy(data, &number, sizeof number);
	number++;
	ckt_blob_hash(data, sizeof data, ret_hash);
	return data;
}

static void begin(void)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	if (far_end >= 0)
		close(far_end);
	far_end = ends[1];
	IS(ckt_blob_cache_use(ends[0]), 0);
}

static int file_with(const void *data, size_t size)
{
	int fd = memfd_create("blob", MFD_CLOEXEC);
	IS(write(fd, data, size), size);
	return fd;
}

static void answer(uint32_t found, uint64_t size, int fd, size_t length)
{
	struct ckt_module_cache_answer text = {.found = found, .size = size};
	struct iovec part = {.iov_base = &text, .iov_len = length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union ckt_net_fd_room room;
	ckt_net_fd_put(&message, &room, fd);
	IS(sendmsg(far_end, &message, 0), length);
	if (fd >= 0)
		close(fd);
}

/* The next message of the worker, or kind 0. */
static struct ckt_module_cache_message heard(void)
{
	struct ckt_module_cache_message message = {0};
	if (recv(far_end, &message, sizeof message, MSG_DONTWAIT) != sizeof message)
		message.kind = 0;
	return message;
}

static void test_hit(void)
{
	uint8_t hash[CKT_HASH_SIZE];
	struct ckt_blob_cache_counts before, after;
	const uint8_t *data = fresh(hash);
	begin();
	ckt_blob_cache_count(&before);
	answer(1, SIZE, file_with(data, SIZE), 16);
	const struct ckt_blob *blob = ckt_blob_cache_find(&blobs, hash);
	MUST(blob != NULL, true);
	IS(blob->size, SIZE);
	IS(memcmp(blob->data, data, SIZE), 0);
	IS(blob->data[SIZE], 0);
	struct ckt_module_cache_message message = heard();
	IS(message.kind, CKT_MODULE_CACHE_GET);
	IS(memcmp(message.hash, hash, sizeof hash), 0);
	/* From then on it is the session's. */
	YES(ckt_blob_cache_find(&blobs, hash) == blob);
	IS(heard().kind, 0);
	ckt_blob_cache_count(&after);
	IS(after.hits - before.hits, 1);
	IS(after.hit_bytes - before.hit_bytes, SIZE);
	IS(after.misses - before.misses, 0);
}

static void test_miss(void)
{
	uint8_t hash[CKT_HASH_SIZE], *got = malloc(SIZE);
	struct ckt_blob_cache_counts before, after;
	const uint8_t *data = fresh(hash);
	begin();
	ckt_blob_cache_count(&before);
	answer(0, 0, -1, 16);
	YES(!ckt_blob_cache_find(&blobs, hash));
	IS(heard().kind, CKT_MODULE_CACHE_GET);
	/* The client sends it: half of it is nothing yet. */
	IS(ckt_blobs_piece(&blobs, hash, SIZE, 0, data, 1000), 0);
	ckt_blob_cache_keep(&blobs, hash);
	IS(heard().kind, 0);
	/* And pieces of it are not replaced. */
	answer(1, SIZE, file_with(data, SIZE), 16);
	YES(!ckt_blob_cache_find(&blobs, hash));
	IS(heard().kind, CKT_MODULE_CACHE_GET);
	IS(ckt_blobs_piece(&blobs, hash, SIZE, 1000, data + 1000, SIZE - 1000), 0);
	ckt_blob_cache_keep(&blobs, hash);
	struct ckt_module_cache_message message = heard();
	IS(message.kind, CKT_MODULE_CACHE_PUT);
	IS(message.size, SIZE);
	IS(memcmp(message.hash, hash, sizeof hash), 0);
	IS(recv(far_end, got, SIZE, MSG_WAITALL), SIZE);
	IS(memcmp(got, data, SIZE), 0);
	free(got);
	ckt_blob_cache_count(&after);
	IS(after.hits - before.hits, 0);
	IS(after.misses - before.misses, 1);
}

/* A file with other bytes, with too few, of no file, of more than a session may have. */
static void test_damaged(void)
{
	uint8_t hash[CKT_HASH_SIZE], wrong[SIZE];
	memcpy(wrong, fresh(hash), SIZE);
	wrong[77] ^= 1;
	begin();
	for (int i = 0; i < 3; i++) {
		answer(1, SIZE, file_with(wrong, i ? SIZE - 1 : SIZE), 16);
		YES(!ckt_blob_cache_find(&blobs, hash));
		IS(heard().kind, CKT_MODULE_CACHE_GET);
		struct ckt_module_cache_message message = heard();
		IS(message.kind, CKT_MODULE_CACHE_BAD);
		IS(memcmp(message.hash, hash, sizeof hash), 0);
	}
	answer(1, SIZE, open("/tmp", O_RDONLY | O_DIRECTORY), 16);
	YES(!ckt_blob_cache_find(&blobs, hash));
	answer(1, UINT64_MAX, file_with(wrong, SIZE), 16);
	YES(!ckt_blob_cache_find(&blobs, hash));
	IS(heard().kind, CKT_MODULE_CACHE_GET);
	IS(heard().kind, CKT_MODULE_CACHE_GET);
	IS(heard().kind, 0);
}

/* An answer that is none ends the use of the cache; the session goes on without. */
static void test_nonsense(void)
{
	uint8_t hash[CKT_HASH_SIZE];
	const uint8_t *data = fresh(hash);
	for (int i = 0; i < 4; i++) {
		begin();
		if (i == 0)
			answer(0, 0, file_with(data, SIZE), 16);
		else if (i == 1)
			answer(1, SIZE, -1, 16);
		else if (i == 2)
			answer(1, SIZE, file_with(data, SIZE), 7);
		shutdown(far_end, SHUT_WR);
		YES(!ckt_blob_cache_find(&blobs, hash));
		IS(heard().kind, CKT_MODULE_CACHE_GET);
		YES(!ckt_blob_cache_find(&blobs, hash));
		ckt_blob_cache_keep(&blobs, hash);
		IS(heard().kind, 0);
	}
}

/* What the client hears after the cache answered with a list; 0: nothing. */
static size_t told(uint8_t *ret_record, size_t max)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	IS(ckt_output_connect(&ckt_worker.output, ends[0], 1, NULL, 0), 0);
	ckt_blob_cache_tell(&ckt_worker);
	ckt_output_flush(&ckt_worker.output);
	ckt_output_connect(&ckt_worker.output, -1, 0, NULL, 0);
	ssize_t n = recv(ends[1], ret_record, max, MSG_DONTWAIT);
	close(ends[0]);
	close(ends[1]);
	return n > 0 ? (size_t)n : 0;
}

static void test_list(void)
{
	static const uint32_t words[] = {0x01020304, 0xfffffffe};
	uint8_t record[4096];
	struct ckt_call_header header = {0};
	ckt_output_init(&ckt_worker.output);
	begin();
	answer(2, sizeof words, -1, 16);
	IS(send(far_end, words, sizeof words, 0), sizeof words);
	IS(told(record, sizeof record), CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 16);
	IS(heard().kind, CKT_MODULE_CACHE_LIST);
	struct ckt_cursor c = {.p = record + CKT_MARK_SIZE, .end = record + sizeof record};
	YES(ckt_call_header_get(&c, &header));
	IS(header.proc, CKT_CALLBACK_MODULES);
	IS(ckt_get_u32(&c), 0); /* not all of them */
	IS(ckt_get_u32(&c), 2);
	IS(ckt_get_u32(&c), words[0]);
	IS(ckt_get_u32(&c), words[1]);
	/* More bytes than words, more words than there may be, no end: no list, and no cache. */
	static const struct {
		uint32_t found;
		uint64_t size;
	} wrong[] = {{2, 4}, {513, 2052}, {UINT32_MAX, UINT64_MAX}, {2, 8}};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		begin();
		answer(wrong[i].found, wrong[i].size, -1, 16);
		shutdown(far_end, SHUT_WR);
		IS(told(record, sizeof record), 0);
		IS(heard().kind, CKT_MODULE_CACHE_LIST);
		IS(told(record, sizeof record), 0);
		IS(heard().kind, 0);
	}
}

static void test_descriptors(void)
{
	uint8_t hash[CKT_HASH_SIZE];
	int ends[2], pipes[2];
	fresh(hash);
	begin();
	IS(ckt_blob_cache_use(-1), -EINVAL);
	MUST(pipe(pipes), 0);
	IS(ckt_blob_cache_use(pipes[0]), -EINVAL);
	IS(fcntl(pipes[0], F_GETFD), -1); /* closed */
	close(pipes[1]);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	IS(ckt_blob_cache_use(ends[0]), -EINVAL);
	close(ends[1]);
	/* The one before stays in use. */
	answer(0, 0, -1, 16);
	YES(!ckt_blob_cache_find(&blobs, hash));
	IS(heard().kind, CKT_MODULE_CACHE_GET);
	/* One whose other end is gone. */
	close(far_end);
	far_end = -1;
	YES(!ckt_blob_cache_find(&blobs, hash));
	YES(!ckt_blob_cache_find(&blobs, hash));
}

UNIT_SUITE(blob_cache, {"hit", test_hit}, {"miss", test_miss}, {"damaged", test_damaged},
	{"nonsense", test_nonsense}, {"list", test_list}, {"descriptors", test_descriptors})
