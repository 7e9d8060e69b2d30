/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/stamps_replay.c: a command of a replay runs in its place, whatever the other
 * members write into the page; what has no place is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "rpc/stamps.h"
#include "server/worker/session/stamps.h"
#include "tests/unit/worker/wire_session.h"

/* Of a place: no member is late but where a test wants that. */
enum { SHORT_MS = 200 };

static unsigned patience_ms = WIRE_GUARD_MS;

static struct ckt_stamps_page *page;
static int page_fd;

static void make_page(void)
{
	page_fd = memfd_create("stamps", MFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ftruncate(page_fd, CKT_STAMPS_PAGE_SIZE), 0);
	page = mmap(NULL, CKT_STAMPS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	CU_ASSERT_TRUE_FATAL(page != MAP_FAILED);
}

static void drop_page(void)
{
	munmap(page, CKT_STAMPS_PAGE_SIZE);
	close(page_fd);
}

/* Without a wait. */
static void set(struct wire *w, uint64_t block, uint32_t value)
{
	WIRE_BATCH(w, memset, .dst = block, .element_size = 4, .value = value, .width = 16,
		.height = 1);
}

static uint64_t slot(unsigned number)
{
	return __atomic_load_n(&page->slots[number].next, __ATOMIC_ACQUIRE);
}

static void set_slot(unsigned number, uint64_t value)
{
	__atomic_store_n(&page->slots[number].next, value, __ATOMIC_RELEASE);
}

static int join(struct wire *w, int fd, unsigned number, unsigned count)
{
	ckt_worker_stamps_args args = {.slot = number, .count = count};
	ckt_worker_result res = {0};
	wire_ask_with(w, CKT_WORKER_STAMPS, (xdrproc_t)xdr_ckt_worker_stamps_args, &args,
		(xdrproc_t)xdr_ckt_worker_result, &res, fd);
	free(res.message);
	return res.status;
}

static int say(struct wire *w, uint32_t proc, xdrproc_t xdr, void *args, uint32_t xid)
{
	uint8_t *data;
	size_t size;
	CU_ASSERT_EQUAL_FATAL(
		ckt_net_encode_call(xid, CRICKET_SESSION_PROG, proc, xdr, args, &data, &size), 0);
	int result = ckt_net_write_record(w->fd, data, size, -1, -1);
	free(data);
	return result;
}

static void stamp(struct wire *w, ckt_stamp_args args)
{
	args.patience_ms = patience_ms;
	say(w, CKT_SESSION_STAMP, (xdrproc_t)xdr_ckt_stamp_args, &args, ++w->xid);
}

static int status_of(struct wire *w, uint32_t proc, xdrproc_t xdr, void *args)
{
	uint32_t xid = ++w->xid;
	say(w, proc, xdr, args, xid);
	struct wire_reply reply = wire_read(w, xid);
	int status = (int)reply.result;
	free(reply.data);
	return status;
}

static int begin(struct wire *w, uint64_t last)
{
	ckt_replay_args args = {.last = last};
	return status_of(w, CKT_SESSION_REPLAY, (xdrproc_t)xdr_ckt_replay_args, &args);
}

static int end(struct wire *w)
{
	ckt_stamps_end_args args = {.patience_ms = patience_ms};
	return status_of(w, CKT_SESSION_STAMPS_END, (xdrproc_t)xdr_ckt_stamps_end_args, &args);
}

/* A session that is the first of two members, restored, with so many commands to come. */
static struct wire *member(char *directory, unsigned commands, uint64_t *ret_block)
{
	char message[CKT_MESSAGE_MAX];
	make_directory(directory);
	make_page();
	struct wire *w = session_new();
	*ret_block = alloc(w, MIB);
	uint64_t copy = w->copy;
	save_and_stop(w, directory);
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	w->durable = w->stamped = true;
	w->past = w->copy = copy;
	CU_ASSERT_EQUAL_FATAL(join(w, page_fd, 0, 2), 0);
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_UNKNOWN);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL_FATAL(begin(w, w->seq + commands), 0);
	return w;
}

static void leave(struct wire *w, const char *directory)
{
	session_end(w);
	remove_directory(directory);
	drop_page();
}

/* Until the slot of the worker is so far: it has read what was sent. */
static void await(uint64_t value)
{
	for (int64_t until = ckt_net_now_ms() + WIRE_GUARD_MS;
		slot(0) != value && ckt_net_now_ms() < until;)
		usleep(1000);
	CU_ASSERT_EQUAL(slot(0), value);
}

static void test_order(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block;
	struct wire *w = member(directory, 3, &block);
	/* The others are so far: it runs, and says that nothing of it comes before what follows. */
	set_slot(1, 100);
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 100});
	await(100);
	set(w, block, 7);
	await(101);
	/* They are not: it waits, until they are. */
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 200});
	await(200);
	set(w, block, 8);
	await(200);
	set_slot(1, 200);
	await(201);
	/* A reply that the program had holds the others up until it is there again. */
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 300});
	stamp(w, (ckt_stamp_args){.xid = w->xid + 2, .end = 250});
	await(249);
	set_slot(1, CKT_STAMPS_DONE);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	await(300);
	CU_ASSERT_EQUAL(get_u32(w, block), 8);
	await(301);
	CU_ASSERT_EQUAL(end(w), 0);
	CU_ASSERT_EQUAL(slot(0), CKT_STAMPS_DONE);
	/* From here on it runs as ever, and is stamped. */
	w->stamps.count = 0;
	alloc(w, MIB);
	CU_ASSERT_EQUAL(w->stamps.count, 1);
	CU_ASSERT_EQUAL(w->stamps.first, w->seq);
	leave(w, directory);
}

static void test_late(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block;
	struct wire *w = member(directory, 20, &block);
	patience_ms = SHORT_MS;
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 100});
	uint64_t seq = w->seq + 1;
	set(w, block, 7);
	/* Nothing else is said until its time is up. */
	wire_read_late(w);
	CU_ASSERT_EQUAL(w->stamps.late, seq);
	/* On the next connection it may try again, and all must be done. */
	wire_disconnect(w);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->executed, seq - 1);
	CU_ASSERT_EQUAL(end(w), -ETIMEDOUT);
	patience_ms = WIRE_GUARD_MS;
	await(CKT_STAMPS_DONE);
	/* A connection that broke meanwhile: the client asks for its waits again. */
	wire_disconnect(w);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	stamp(w, (ckt_stamp_args){.xid = w->xid + 2, .end = 500});
	await(1);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	set_slot(1, CKT_STAMPS_DONE);
	CU_ASSERT_EQUAL(end(w), 0);
	leave(w, directory);
}

/* The worker ends the connection of a client that sends this; the session stays. */
static bool refused(struct wire *w, ckt_stamp_args args)
{
	uint8_t *data;
	size_t size;
	stamp(w, args);
	int result = ckt_net_read_record(
		w->fd, CKT_RECORD_MAX, ckt_net_now_ms() + WIRE_GUARD_MS, &data, &size, NULL);
	if (!result)
		free(data);
	wire_disconnect(w);
	return result && wire_hello(w, CKT_HELLO_RESUME, true) == CKT_HELLO_OK &&
		begin(w, w->seq + 20) == 0;
}

static void test_refused(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block;
	struct wire *w = member(directory, 20, &block);
	set_slot(1, CKT_STAMPS_DONE);
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 100});
	set(w, block, 7);
	await(101);
	/* Numbers that are not next, stamps that go back, no stamp at all, an end before its begin. */
	const ckt_stamp_args bad[] = {{.seq = w->seq, .begin = 200},
		{.seq = w->seq + 2, .begin = 200}, {.seq = w->seq + 30, .begin = 200},
		{.seq = w->seq + 1, .begin = 100}, {.seq = w->seq + 1},
		{.seq = w->seq + 1, .begin = CKT_STAMPS_DONE},
		{.seq = w->seq + 1, .begin = 200, .end = 200}, {.seq = 0, .begin = 0}};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_TRUE(refused(w, bad[i]));
	/* Two places, before the command of the first has come. */
	stamp(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 200});
	CU_ASSERT_TRUE(refused(w, (ckt_stamp_args){.seq = w->seq + 1, .begin = 300}));
	/* A second page. */
	CU_ASSERT_EQUAL(join(w, page_fd, 0, 2), -EINVAL);
	leave(w, directory);
}

static void test_pages(void)
{
	make_page();
	struct wire *w = session_new();
	int small = memfd_create("small", MFD_CLOEXEC);
	CU_ASSERT_EQUAL(join(w, small, 0, 2), -EINVAL);
	CU_ASSERT_EQUAL(join(w, page_fd, 2, 2), -EINVAL);
	CU_ASSERT_EQUAL(join(w, page_fd, 0, CKT_STAMPS_SLOTS + 1), -EINVAL);
	CU_ASSERT_EQUAL(join(w, -1, 0, 2), -EINVAL);
	/* A session that does not replay has no end of it. */
	ckt_stamps_end_args args = {.patience_ms = 1};
	say(w, CKT_SESSION_STAMPS_END, (xdrproc_t)xdr_ckt_stamps_end_args, &args, ++w->xid);
	uint8_t *data;
	size_t size;
	CU_ASSERT_NOT_EQUAL(ckt_net_read_record(w->fd, CKT_RECORD_MAX,
				    ckt_net_now_ms() + WIRE_GUARD_MS, &data, &size, NULL),
		0);
	close(small);
	drop_page();
	wire_disconnect(w);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	session_end(w);
}

UNIT_SUITE(stamps_replay, {"order", test_order}, {"late", test_late}, {"refused", test_refused},
	{"pages", test_pages})
