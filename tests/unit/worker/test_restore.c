/* SPDX-License-Identifier: Apache-2.0 */
/* Restores, end to end on the soft GPU: damaged images, copies of one session. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/worker/module/blob.h"
#include "tests/unit/worker/restore.h"

enum { HEADER = 3 * 4 + 8 + 32 };

static uint8_t *read_whole(const char *path, size_t *ret_size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	uint8_t *data = malloc((size_t)st.st_size);
	*ret_size = (size_t)st.st_size;
	CU_ASSERT_EQUAL_FATAL(read(fd, data, *ret_size), st.st_size);
	close(fd);
	return data;
}

static void write_whole(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_EQUAL_FATAL(write(fd, data, size), (ssize_t)size);
	close(fd);
}

/* With a checksum that is right. */
static void write_manifest(const char *path, uint8_t *data, size_t size)
{
	uint8_t sum[32];
	ckt_blob_hash(data + HEADER, size - HEADER, sum);
	memcpy(data + HEADER - sizeof sum, sum, sizeof sum);
	write_whole(path, data, size);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* A session with something of most kinds. */
static void make_busy(struct wire *w)
{
	uint64_t block = alloc(w, 4 * MIB);
	const uint32_t step = 100;
	load(w, 0, common);
	load(w, 1, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(1))), CUDA_SUCCESS);
	ask(w, 0, "total");
	launch(w, 0, ADD, &step, 4);
	fill(w, block, 7, 4 * MIB);
	make_streams(w, 0, 34);
	WIRE_BATCH(w, event_create, .id = EVENT(0), .flags = 0);
	WIRE_BATCH(w, event_record, .event = EVENT(0), .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE,
				.value = 4096)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, pool_create, true,
				.id = ckt_handle_make(CKT_KIND_POOL, 1, 2000), .device = 0)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, physical_create, true,
				.id = ckt_handle_make(CKT_KIND_PHYSICAL, 1, 2001), .device = 0,
				.size = 2 * MIB)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

/*
 * Any word of a manifest may be anything: what comes of it is a refusal or a session, and never a
 * dead worker.
 */
static void test_hostile(void)
{
	static const uint32_t words[] = {
		0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x2000, 0x10000};
	char directory[] = "/tmp/ckt-image-XXXXXX", path[64], message[CKT_MESSAGE_MAX];
	const char *text = getenv("CKT_TEST_HOSTILE");
	unsigned count = text ? (unsigned)atoi(text) : 60, refusals = 0;
	uint32_t seed = getenv("CKT_TEST_SEED") ? (uint32_t)atoi(getenv("CKT_TEST_SEED")) : 1;
	make_directory(directory);
	snprintf(path, sizeof path, "%s/manifest", directory);
	struct wire *w = session_new();
	make_busy(w);
	save_and_stop(w, directory);
	size_t size;
	uint8_t *good = read_whole(path, &size), *bad = malloc(size);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < count; i++) {
		memcpy(bad, good, size);
		uint32_t at = HEADER + next_random(&seed) % (uint32_t)((size - HEADER) / 4) * 4,
			 what = next_random(&seed);
		if (what % 3 == 0)
			bad[at + what / 3 % 4] ^= (uint8_t)(1 << what / 16 % 8);
		else
			for (unsigned k = 0; k < 4; k++)
				bad[at + k] = (uint8_t)(words[what / 3 %
								(sizeof words / sizeof *words)] >>
					(24 - 8 * k));
		write_manifest(path, bad, size);
		w->may_die = true;
		int status = wire_start(w, worker_path, driver_path, 0, fd, message);
		CU_ASSERT_FALSE(w->died);
		if (w->died)
			fprintf(stderr, "word at %u of %zu, case %u: the worker died\n", at, size,
				what);
		refusals += status != 0;
		if (!status)
			kill(w->pid, SIGKILL);
		CU_ASSERT_TRUE(wire_ended(w));
		w->may_die = w->died = false;
	}
	/* Many words may be anything, but not all of them. */
	CU_ASSERT_TRUE(refusals > 0 || count < 20);
	write_whole(path, good, size);
	restore(w, directory);
	session_end(w);
	close(fd);
	free(good);
	free(bad);
	remove_directory(directory);
}

/*
 * A contents' byte, at the beginning, in the middle and at the end of each file, and each file cut:
 * refused, and nothing stays.
 */
static void test_damaged(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", path[64], message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	make_busy(w);
	save_and_stop(w, directory);
	unsigned files = 0;
	for (unsigned i = 0; i < 16; i++) {
		struct stat st;
		snprintf(path, sizeof path, "%s/data-%u", directory, i);
		if (stat(path, &st) || !st.st_size)
			continue;
		files++;
		size_t size;
		uint8_t *good = read_whole(path, &size), *bad = malloc(size);
		for (unsigned k = 0; k < 3; k++) {
			memcpy(bad, good, size);
			bad[k == 0 ? 0 : k == 1 ? size / 2 : size - 1] ^= 0x10;
			write_whole(path, bad, size);
			CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
			CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged"));
		}
		write_whole(path, good, size - 1);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
		CU_ASSERT_EQUAL(unlink(path), 0);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
		write_whole(path, good, size);
		free(good);
		free(bad);
	}
	CU_ASSERT_TRUE(files > 0);
	/* The manifest: of another major version, of none, cut, gone. */
	size_t size;
	snprintf(path, sizeof path, "%s/manifest", directory);
	uint8_t *good = read_whole(path, &size);
	good[7] = 2;
	write_manifest(path, good, size);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EPROTONOSUPPORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "version 2."));
	good[7] = 1;
	for (unsigned k = 0; k < 3; k++) {
		write_whole(path, good, k == 0 ? size - 4 : k == 1 ? HEADER : 0);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	}
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOENT);
	write_whole(path, good, size);
	free(good);
	restore(w, directory);
	session_end(w);
	remove_directory(directory);
}

static void test_twice(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new(), *other = calloc(1, sizeof *other);
	uint64_t block = alloc(w, 2 * MIB);
	fill(w, block, 1, 2 * MIB);
	uint64_t generation = w->generation;
	save_and_stop(w, directory);
	char message[CKT_MESSAGE_MAX];
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	CU_ASSERT_EQUAL_FATAL(try_restore(other, directory, message), 0);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RESTORED);
	CU_ASSERT_EQUAL(state(other), CKT_STATE_RESTORED);
	/*
	 * The first one is claimed and goes on; the other one is behind from its first answer on.
	 */
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->generation, generation + 1);
	fill(w, block, 2, 4);
	CU_ASSERT_EQUAL(get_u32(w, block), 2);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	w->acked = w->seq;
	other->generation = w->generation;
	other->acked = w->acked;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	CU_ASSERT_EQUAL(state(other), CKT_STATE_RESTORED);
	/* One of an older generation is refused whatever it has executed. */
	char next[] = "/tmp/ckt-image-XXXXXX";
	make_directory(next);
	save_and_stop(w, next);
	restore(w, next);
	CU_ASSERT_EQUAL(w->generation, generation + 2);
	other->generation = w->generation;
	other->acked = 0;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	session_end(w);
	kill(other->pid, SIGKILL);
	session_free(other);
	remove_directory(directory);
	remove_directory(next);
}

/*
 * An image that two servers accept gives two copies of one generation, which have executed the
 * same.  The one that the client took has won; the other refuses it, and so does what was saved of
 * the other.
 */
static void test_two_copies(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", next[] = "/tmp/ckt-image-XXXXXX",
	     message[CKT_MESSAGE_MAX];
	make_directory(directory);
	make_directory(next);
	struct wire *w = session_new(), *other = calloc(1, sizeof *other),
		    *later = calloc(1, sizeof *later);
	alloc(w, 2 * MIB);
	uint64_t first = w->copy;
	CU_ASSERT_NOT_EQUAL(first, 0);
	save_and_stop(w, directory);
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	CU_ASSERT_EQUAL_FATAL(try_restore(other, directory, message), 0);
	/* A client of another past than the image's is refused by both. */
	w->copy = first + 1;
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	w->copy = first;
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_NOT_EQUAL(w->copy, first);
	other->generation = w->generation;
	other->acked = w->acked;
	/* Nothing was executed there yet: the client may still change its mind, and does not. */
	other->copy = first;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	close(other->fd);
	other->fd = -1;
	other->copy = w->copy;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	/* Again with its own it may. */
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	/* Moved on without a command in between: it was attached to what the image is of. */
	save_and_stop(w, next);
	w->attached = w->copy;
	w->copy = first;
	CU_ASSERT_EQUAL_FATAL(try_restore(w, next, message), 0);
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	w->attached = 0;
	remove_directory(next);
	CU_ASSERT_EQUAL(mkdir(next, 0700), 0);
	other->copy = w->copy;
	/*
	 * The other one's image has a later generation, and is no state that the client has seen.
	 */
	save_and_stop(other, next);
	CU_ASSERT_EQUAL_FATAL(try_restore(later, next, message), 0);
	later->generation = other->generation;
	later->copy = w->copy;
	CU_ASSERT_EQUAL(wire_hello(later, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	session_end(w);
	kill(later->pid, SIGKILL);
	session_free(later);
	free(other->log);
	free(other->printed);
	free(other);
	remove_directory(directory);
	remove_directory(next);
}

static ckt_worker_status_res status_of(struct wire *w)
{
	ckt_worker_status_res res = {0};
	wire_ask(w, CKT_WORKER_STATUS, NULL, NULL, (xdrproc_t)xdr_ckt_worker_status_res, &res);
	return res;
}

/*
 * The image's owner is told to who asks and believed by nobody; what the server says goes into the
 * next image.
 */
static void test_owner(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	ckt_worker_owner_args owner = {.uid = 1001};
	memset(owner.key, 1, sizeof owner.key);
	memset(owner.seal, 2, sizeof owner.seal);
	wire_ask(w, CKT_WORKER_OWNER, (xdrproc_t)xdr_ckt_worker_owner_args, &owner, NULL, NULL);
	ckt_worker_status_res status = status_of(w);
	CU_ASSERT_EQUAL(status.uid, 1001);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
	uint64_t generation = w->generation;
	save_and_stop(w, directory);
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	ckt_worker_origin_res origin = {0};
	wire_ask(w, CKT_WORKER_ORIGIN, NULL, NULL, (xdrproc_t)xdr_ckt_worker_origin_res, &origin);
	CU_ASSERT_STRING_EQUAL(origin.session, w->session);
	CU_ASSERT_EQUAL(origin.uid, 1001);
	CU_ASSERT_EQUAL(origin.generation, generation);
	CU_ASSERT_EQUAL(memcmp(origin.key, owner.key, sizeof origin.key) |
			memcmp(origin.seal, owner.seal, sizeof origin.seal),
		0);
	status = status_of(w);
	CU_ASSERT_NOT_EQUAL(status.uid, 1001);
	CU_ASSERT_EQUAL(
		memcmp(status.secret_hash, origin.secret_hash, sizeof origin.secret_hash), 0);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&status);
	xdr_free((xdrproc_t)xdr_ckt_worker_origin_res, (char *)&origin);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	session_end(w);
	remove_directory(directory);
}

static void test_unclaimed(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 2 * MIB);
	fill(w, block, 1, 2 * MIB);
	save_and_stop(w, directory);
	/* Its start is answered within it. */
	w->claim_timeout_ms = 2000;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, fd, message), 0);
	close(fd);
	CU_ASSERT_TRUE(wire_ended(w));
	/* The image stays. */
	w->claim_timeout_ms = 0;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block), 1);
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(restore, {"hostile", test_hostile}, {"damaged", test_damaged}, {"twice", test_twice},
	{"two copies", test_two_copies}, {"owner", test_owner}, {"unclaimed", test_unclaimed})
