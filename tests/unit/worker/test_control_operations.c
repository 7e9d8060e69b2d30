/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/control_operations.c: what takes long, end to end on the soft GPU: holding,
 * releasing, chains of images, pausing.  argv[1] the worker, argv[2] the soft libcuda.so.1.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/wire_session.h"

static void test_hold(void)
{
	char first[] = "/tmp/ckt-image-XXXXXX", second[] = "/tmp/ckt-image-XXXXXX";
	make_directory(first);
	make_directory(second);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 5 << 20);
	fill(w, block, 7, 5 << 20);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, -EINVAL);
	int64_t begun_ms = ckt_net_now_ms();
	ckt_worker_save2_res saved = wire_save2(
		w, first, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true});
	CU_ASSERT_EQUAL_FATAL(saved.status, 0);
	CU_ASSERT_TRUE(saved.stopped_us > 0 &&
		saved.stopped_us <= (uint64_t)(ckt_net_now_ms() - begun_ms + 1) * 1000);
	CU_ASSERT_EQUAL(saved.memory_bytes, 6 << 20);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_FROZEN);
	/* Sent into the silence, answered when it goes on. */
	uint32_t xid = WIRE_SEND(w, memcpy_dtoh, true, false, .src = block, .size = 4);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, 0);
	struct wire_reply reply = wire_read(w, xid);
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	free(reply.data);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
	/*
	 * Parked: the client hears it, however little it reads; nobody waits for a client that
	 * keeps its end open.
	 */
	fill(w, block, 8, 5 << 20);
	ckt_worker_save2_res again = wire_save2(w, second,
		(ckt_worker_save2_args){
			.deadline_ms = WIRE_GUARD_MS, .hold = true, .compress = true});
	CU_ASSERT_EQUAL_FATAL(again.status, 0);
	CU_ASSERT_NOT_EQUAL(memcmp(again.image, saved.image, sizeof saved.image), 0);
	CU_ASSERT_TRUE(again.bytes < 100000);
	CU_ASSERT_EQUAL(wire_release(w, true, true, "for the night", "").status, 0);
	wire_read_to_end(w);
	CU_ASSERT_TRUE(wire_ended(w));
	CU_ASSERT_STRING_EQUAL(w->parked, "for the night");
	CU_ASSERT_STRING_EQUAL(w->moved_to, "");
	restore(w, second);
	CU_ASSERT_EQUAL(get_u32(w, block), 8);
	/* And moved. */
	remove_directory(first);
	CU_ASSERT_EQUAL(mkdir(first, 0700), 0);
	CU_ASSERT_EQUAL(wire_save2(w, first,
				(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
				.status,
		0);
	CU_ASSERT_EQUAL(wire_release(w, true, false, "", "elsewhere:1").status, 0);
	wire_read_to_end(w);
	CU_ASSERT_STRING_EQUAL(w->moved_to, "elsewhere:1");
	session_free(w);
	remove_directory(first);
	remove_directory(second);
}

/*
 * The client of a held session is told to be quiet, and what it had sent beyond the boundary it
 * sends again.
 */
static void test_quiesce(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 1 << 20);
	fill(w, block, 7, 1 << 20);
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_QUIESCE, NULL, NULL).status, -EINVAL);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
			.status,
		0);
	uint64_t executed = w->executed;
	WIRE_BATCH(w, memset, .dst = block, .element_size = 4, .value = 9, .width = 1 << 18,
		.height = 1);
	uint32_t xid = WIRE_SEND(w, memcpy_dtoh, true, false, .src = block, .size = 4);
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_QUIESCE, NULL, NULL).status, 0);
	wire_read_to_end(w);
	CU_ASSERT_TRUE(w->quiesced);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_FROZEN);
	/* Once more: there is nobody to tell. */
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_QUIESCE, NULL, NULL).status, 0);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->executed, executed);
	wire_resend(w);
	struct wire_reply reply = wire_read(w, xid);
	CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
	free(reply.data);
	CU_ASSERT_EQUAL(get_u32(w, block), 9);
	session_end(w);
	remove_directory(directory);
}

/* A base, three increments, each restored with what it builds on. */
static void test_chain(void)
{
	enum { IMAGES = 4 };
	char names[IMAGES][32];
	ckt_worker_save2_res saved[IMAGES];
	struct wire *w = session_new();
	uint64_t a = alloc(w, 8 * MIB), b = alloc(w, 4 * MIB);
	fill(w, a, 1, 8 * MIB);
	fill(w, b, 2, 4 * MIB);
	for (unsigned i = 0; i < IMAGES; i++) {
		strcpy(names[i], "/tmp/ckt-image-XXXXXX");
		make_directory(names[i]);
		if (i == 1)
			fill(w, a + 3 * MIB + 4, 77, 4); /* one word */
		if (i == 2)
			fill(w, b, 0, 2 * MIB);
		if (i == 3) {
			fill(w, a + 8 * MIB - 4, 78, 4);
			fill(w, a, 1, 2 * MIB); /* written, but the same */
		}
		ckt_worker_save2_args args = {
			.deadline_ms = WIRE_GUARD_MS, .keep_hashes = true, .incremental = i > 0};
		if (i)
			memcpy(args.base, saved[i - 1].image, sizeof args.base);
		saved[i] = wire_save2(w, names[i], args);
		CU_ASSERT_EQUAL_FATAL(saved[i].status, 0);
	}
	CU_ASSERT_EQUAL(saved[0].changed_bytes, 12 * MIB);
	CU_ASSERT_EQUAL(saved[1].changed_bytes, 2 * MIB);
	CU_ASSERT_EQUAL(saved[2].changed_bytes, 0);
	CU_ASSERT_EQUAL(saved[3].changed_bytes, 2 * MIB);
	CU_ASSERT_TRUE(saved[3].bytes <= 2 * MIB && saved[3].memory_bytes == 12 * MIB);
	/* Of an older one the manifest is needed. */
	char other[] = "/tmp/ckt-image-XXXXXX";
	make_directory(other);
	ckt_worker_save2_args stale = {
		.deadline_ms = WIRE_GUARD_MS, .incremental = true, .keep_hashes = true};
	memcpy(stale.base, saved[1].image, sizeof stale.base);
	CU_ASSERT_EQUAL(wire_save2(w, other, stale).status, -ESTALE);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
	CU_ASSERT_EQUAL(kill(w->pid, SIGKILL), 0);
	CU_ASSERT_TRUE(wire_ended(w));
	/* Without what it builds on it is refused, and the next attempt succeeds. */
	const char *chain[IMAGES] = {names[3], names[2], names[1], names[0]};
	char message[CKT_MESSAGE_MAX] = "";
	CU_ASSERT_NOT_EQUAL(wire_start_chain(w, worker_path, driver_path, chain, 1, message), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "builds on another"));
	CU_ASSERT_TRUE(wire_ended(w));
	/* The third holds nothing of its own, so it is no link of the chain any more. */
	const char *needed[] = {names[3], names[1], names[0]};
	int status = wire_start_chain(w, worker_path, driver_path, needed, 3, message);
	if (status)
		fprintf(stderr, "restore: %s\n", message);
	CU_ASSERT_EQUAL_FATAL(status, 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(get_u32(w, a), 1);
	CU_ASSERT_EQUAL(get_u32(w, a + 3 * MIB), 1);
	CU_ASSERT_EQUAL(get_u32(w, a + 3 * MIB + 4), 77);
	CU_ASSERT_EQUAL(get_u32(w, a + 8 * MIB - 4), 78);
	CU_ASSERT_EQUAL(get_u32(w, b), 0);
	CU_ASSERT_EQUAL(get_u32(w, b + 2 * MIB), 2);
	/* And on from there, as if it had written the image that it came from. */
	memcpy(stale.base, saved[3].image, sizeof stale.base);
	fill(w, b + 2 * MIB, 5, 4);
	ckt_worker_save2_res next = wire_save2(w, other, stale);
	CU_ASSERT_EQUAL(next.status, 0);
	CU_ASSERT_EQUAL(next.changed_bytes, 2 * MIB);
	session_end(w);
	for (unsigned i = 0; i < IMAGES; i++)
		remove_directory(names[i]);
	remove_directory(other);
}

static int send_base(struct wire *w, const char *directory, const char *id)
{
	static char data[CKT_WORKER_BASE_MAX];
	char path[64];
	int status = 0;
	snprintf(path, sizeof path, "%s/manifest", directory);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	ckt_worker_base_args args = {.data = {.data_val = data}};
	memcpy(args.base, id, sizeof args.base);
	/* In small pieces. */
	for (ssize_t n; !status && (n = pread(fd, data, 1000, (off_t)args.offset)) > 0;
		args.offset += (uint64_t)n) {
		args.data.data_len = (u_int)n;
		status =
			wire_control(w, CKT_WORKER_BASE, (xdrproc_t)xdr_ckt_worker_base_args, &args)
				.status;
	}
	close(fd);
	return status;
}

static ckt_worker_save2_res save_on(
	struct wire *w, char directory[], const char *base_directory, const char *base)
{
	ckt_worker_save2_args args = {
		.deadline_ms = WIRE_GUARD_MS, .incremental = true, .keep_hashes = true};
	make_directory(directory);
	memcpy(args.base, base, sizeof args.base);
	CU_ASSERT_EQUAL(send_base(w, base_directory, base), 0);
	return wire_save2(w, directory, args);
}

/*
 * Any image of the session can be built on: a plain one, an older one, one whose restore this is,
 * also while the session is paused.
 */
static void test_any_base(void)
{
	char plain[] = "/tmp/ckt-image-XXXXXX", first[] = "/tmp/ckt-image-XXXXXX",
	     second[] = "/tmp/ckt-image-XXXXXX", third[] = "/tmp/ckt-image-XXXXXX",
	     foreign[] = "/tmp/ckt-image-XXXXXX";
	struct wire *w = session_new();
	uint64_t a = alloc(w, 8 * MIB), b = alloc(w, 4 * MIB);
	fill(w, a, 1, 8 * MIB);
	fill(w, b, 0, 4 * MIB);
	make_directory(plain);
	ckt_worker_save2_res base =
		wire_save2(w, plain, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS});
	CU_ASSERT_EQUAL_FATAL(base.status, 0);
	fill(w, a + 3 * MIB, 77, 4);
	ckt_worker_save2_res one = save_on(w, first, plain, base.image);
	CU_ASSERT_EQUAL(one.status, 0);
	CU_ASSERT_EQUAL(one.changed_bytes, 2 * MIB);
	CU_ASSERT_TRUE(one.bytes <= 2 * MIB);
	/*
	 * Once more on the same, which is the last one no longer, and paused: the host's memory is
	 * compared.
	 */
	fill(w, a, 78, 4);
	ckt_worker_pause_args pause = {.deadline_ms = WIRE_GUARD_MS};
	CU_ASSERT_EQUAL(
		wire_control(w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &pause)
			.status,
		0);
	ckt_worker_save2_res two = save_on(w, second, plain, base.image);
	CU_ASSERT_EQUAL(two.status, 0);
	CU_ASSERT_TRUE(two.bytes <= 4 * MIB && two.bytes > 0);
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
	/* Another session's image is refused by name, and is no base of ours later either. */
	struct wire *other = calloc(1, sizeof *other);
	strcpy(other->session, "ba9876543210");
	CU_ASSERT_EQUAL_FATAL(wire_start(other, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(other, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	fill(other, alloc(other, 1 * MIB), 1, 1 * MIB);
	make_directory(foreign);
	ckt_worker_save2_res theirs =
		wire_save2(other, foreign, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS});
	CU_ASSERT_EQUAL(theirs.status, 0);
	CU_ASSERT_EQUAL(save_on(w, third, foreign, theirs.image).status, -EINVAL);
	session_end(other);
	char message[CKT_MESSAGE_MAX] = "";
	const char *chains[][2] = {{first, plain}, {second, plain}, {third, plain}};
	const uint32_t words[][3] = {{1, 77, 0}, {78, 77, 0}, {1, 1, 5}};
	for (unsigned i = 0; i < 3; i++) {
		kill(w->pid, SIGKILL);
		CU_ASSERT_TRUE(wire_ended(w));
		if (i == 2) {
			/* Restored from an image of no chain, it builds on that. */
			restore(w, plain);
			CU_ASSERT_EQUAL(get_u32(w, a), 1);
			fill(w, b + 2 * MIB, 5, 4);
			remove_directory(third);
			strcpy(third, "/tmp/ckt-image-XXXXXX");
			ckt_worker_save2_res three = save_on(w, third, plain, base.image);
			CU_ASSERT_EQUAL(three.status, 0);
			CU_ASSERT_TRUE(three.bytes > 0 && three.bytes <= 2 * MIB);
			kill(w->pid, SIGKILL);
			CU_ASSERT_TRUE(wire_ended(w));
		}
		CU_ASSERT_EQUAL_FATAL(
			wire_start_chain(w, worker_path, driver_path, chains[i], 2, message), 0);
		/* We bear to be set back. */
		w->acked = w->copy = 0;
		CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
		w->seq = w->acked = w->executed;
		CU_ASSERT_EQUAL(get_u32(w, a), words[i][0]);
		CU_ASSERT_EQUAL(get_u32(w, a + 3 * MIB), words[i][1]);
		CU_ASSERT_EQUAL(get_u32(w, b + 2 * MIB), words[i][2]);
	}
	session_end(w);
	char *all[] = {plain, first, second, third, foreign};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		remove_directory(all[i]);
}

static void test_pause(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t a = alloc(w, 6 * MIB), small = alloc(w, 4);
	fill(w, a, 3, 6 * MIB);
	fill(w, small, 4, 4);
	ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, -EINVAL);
	for (uint32_t i = 0; i < 100; i++) {
		/* Sent into a paused session, executed when it goes on. */
		ckt_worker_result gone = wire_control(
			w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
		CU_ASSERT_EQUAL_FATAL(gone.status, 0);
		CU_ASSERT_EQUAL(gone.bytes, 8 * MIB);
		CU_ASSERT_EQUAL(state(w), CKT_STATE_PAUSED);
		WIRE_BATCH(w, memset, .dst = a + 4 * i, .element_size = 4, .value = i, .width = 1,
			.height = 1);
		uint32_t xid = WIRE_SEND(w, ctx_synchronize, false, false);
		ckt_worker_result back = wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL);
		CU_ASSERT_EQUAL_FATAL(back.status, 0);
		CU_ASSERT_EQUAL(back.bytes, 8 * MIB);
		free(wire_read(w, xid).data);
	}
	for (uint32_t i = 0; i < 100; i += 33)
		CU_ASSERT_EQUAL(get_u32(w, a + 4 * i), i);
	CU_ASSERT_EQUAL(get_u32(w, a + 6 * MIB - 4), 3);
	CU_ASSERT_EQUAL(get_u32(w, small), 4);
	/* A paused session is saved from the host's memory, and stays paused. */
	CU_ASSERT_EQUAL(
		wire_control(w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args)
			.status,
		0);
	CU_ASSERT_EQUAL(wire_save2(w, directory,
				(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
				.status,
		0);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, 0);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_PAUSED);
	CU_ASSERT_EQUAL(kill(w->pid, SIGKILL), 0);
	CU_ASSERT_TRUE(wire_ended(w));
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, a + 4 * 99), 99);
	CU_ASSERT_EQUAL(get_u32(w, a + 6 * MIB - 4), 3);
	CU_ASSERT_EQUAL(get_u32(w, small), 4);
	session_end(w);
	remove_directory(directory);
}

/*
 * Asks over a connection of its own and gives up: before the worker looks, or so that it finds out
 * only when it answers.
 */
static void ask_and_leave(
	struct wire *w, uint32_t proc, xdrproc_t xdr_args, void *args, bool before)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint8_t *data;
	size_t size;
	snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", w->directory);
	struct pollfd p = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	CU_ASSERT_EQUAL_FATAL(connect(p.fd, (struct sockaddr *)&address, sizeof address), 0);
	CU_ASSERT_EQUAL_FATAL(
		ckt_net_encode_call(7, CRICKET_WORKER_PROG, proc, xdr_args, args, &data, &size), 0);
	if (before) {
		CU_ASSERT_EQUAL(kill(w->pid, SIGSTOP), 0);
		CU_ASSERT_EQUAL(waitpid(w->pid, NULL, WUNTRACED), w->pid);
	} else {
		shutdown(p.fd, SHUT_RD);
	}
	CU_ASSERT_EQUAL(
		ckt_net_write_record(p.fd, data, size, ckt_net_now_ms() + WIRE_GUARD_MS, -1), 0);
	if (before) {
		shutdown(p.fd, SHUT_WR);
		CU_ASSERT_EQUAL(kill(w->pid, SIGCONT), 0);
	}
	/* The worker closes its end when it is done with the call. */
	CU_ASSERT_EQUAL(poll(&p, 1, WIRE_GUARD_MS), 1);
	CU_ASSERT_TRUE(p.revents & POLLHUP);
	close(p.fd);
	free(data);
}

/* What was asked by somebody who has given up is not done, or undone. */
static void test_asker_gone(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t a = alloc(w, 6 * MIB);
	fill(w, a, 3, 6 * MIB);
	ckt_worker_pause_args pause = {.deadline_ms = WIRE_GUARD_MS};
	ckt_worker_save2_args save = {
		.deadline_ms = WIRE_GUARD_MS, .to_memory = true, .hold = true};
	for (int before = 0; before < 2; before++) {
		ask_and_leave(
			w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &pause, before);
		CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
		CU_ASSERT_EQUAL(get_u32(w, a + 6 * MIB - 4), 3);
	}
	ask_and_leave(w, CKT_WORKER_SAVE2, (xdrproc_t)xdr_ckt_worker_save2_args, &save, true);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
			.status,
		0);
	ask_and_leave(w, CKT_WORKER_QUIESCE, NULL, NULL, true);
	CU_ASSERT_FALSE(w->quiesced);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, 0);
	CU_ASSERT_EQUAL(get_u32(w, a), 3);
	/* And what is asked by somebody who waits is done as ever. */
	CU_ASSERT_EQUAL(
		wire_control(w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &pause)
			.status,
		0);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_PAUSED);
	CU_ASSERT_EQUAL(wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL).status, 0);
	session_end(w);
	remove_directory(directory);
}

/*
 * Steps of pausing and resuming that fail: the session is as before, and the same again succeeds or
 * fails alike.
 */
static void test_pause_faults(void)
{
	static const char *const faults[] = {"fail:20", "fail:21", "fail:22", "fail:23"};
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct wire *w = calloc(1, sizeof *w);
		strcpy(w->fault, faults[i]);
		CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
		CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
		uint64_t a = alloc(w, 6 << 20);
		fill(w, a, 3, 6 << 20);
		ckt_worker_pause_args args = {.deadline_ms = WIRE_GUARD_MS};
		ckt_worker_result gone = wire_control(
			w, CKT_WORKER_PAUSE, (xdrproc_t)xdr_ckt_worker_pause_args, &args);
		if (i < 2) {
			CU_ASSERT_EQUAL(gone.status, -EIO);
			CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
			CU_ASSERT_EQUAL(get_u32(w, a + 4096), 3);
			session_end(w);
			continue;
		}
		CU_ASSERT_EQUAL(gone.status, 0);
		for (int again = 0; again < 2; again++) {
			ckt_worker_result back = wire_control(w, CKT_WORKER_UNPAUSE, NULL, NULL);
			CU_ASSERT_EQUAL(back.status, i == 2 ? -ENOMEM : -EIO);
			CU_ASSERT_TRUE(i != 2 || back.bytes > 0);
			CU_ASSERT_EQUAL(state(w), CKT_STATE_PAUSED);
		}
		/* Nothing was lost. */
		char directory[] = "/tmp/ckt-image-XXXXXX";
		make_directory(directory);
		CU_ASSERT_EQUAL(wire_save2(w, directory,
					(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS})
					.status,
			0);
		kill(w->pid, SIGKILL);
		CU_ASSERT_TRUE(wire_ended(w));
		w->fault[0] = 0;
		restore(w, directory);
		CU_ASSERT_EQUAL(get_u32(w, a + 4096), 3);
		session_end(w);
		remove_directory(directory);
	}
}

/*
 * A session that is told to end and cannot: it runs on, nobody was told, and it can be saved and
 * held again.
 */
static void test_release_fault(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = calloc(1, sizeof *w);
	strcpy(w->fault, "fail:30");
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	uint64_t a = alloc(w, 2 << 20);
	fill(w, a, 3, 2 << 20);
	for (int again = 0; again < 2; again++) {
		CU_ASSERT_EQUAL_FATAL(
			wire_save2(w, directory,
				(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
				.status,
			0);
		CU_ASSERT_EQUAL(
			wire_release(w, true, !again, "stopped", again ? "10.0.0.1:7350" : "")
				.status,
			-EIO);
		CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
		CU_ASSERT_EQUAL(get_u32(w, a + (2 << 20) - 4), 3);
		CU_ASSERT_EQUAL(w->parked[0], 0);
		CU_ASSERT_EQUAL(w->moved_to[0], 0);
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	}
	/* Let go without an end, it does not come to that point. */
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
			.status,
		0);
	CU_ASSERT_EQUAL(wire_release(w, false, false, "", "").status, 0);
	CU_ASSERT_EQUAL(get_u32(w, a), 3);
	session_end(w);
	remove_directory(directory);
}

/*
 * Death or failure at each point of a save: the image before is good, the new one absent; and of a
 * restore: it can be tried again.
 */
static void test_faults(void)
{
	static const char *const save_faults[] = {
		"1", "2", "3", "4", "5", "fail:1", "fail:2", "fail:3", "fail:4"};
	for (unsigned i = 0; i < sizeof save_faults / sizeof *save_faults; i++) {
		char first[] = "/tmp/ckt-image-XXXXXX", second[] = "/tmp/ckt-image-XXXXXX",
		     manifest[64];
		make_directory(first);
		make_directory(second);
		struct wire *w = session_new();
		uint64_t a = alloc(w, 6 << 20);
		fill(w, a, 3, 6 << 20);
		CU_ASSERT_EQUAL_FATAL(
			wire_save2(w, first,
				(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
				.status,
			0);
		CU_ASSERT_EQUAL(wire_release(w, true, true, "", "").status, 0);
		CU_ASSERT_TRUE(wire_ended(w));
		strcpy(w->fault, save_faults[i]);
		restore(w, first);
		w->may_die = true;
		bool fails = save_faults[i][0] == 'f';
		int status = wire_save2(w, second,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .keep_hashes = true})
				     .status;
		CU_ASSERT_EQUAL(w->died, !fails);
		CU_ASSERT_TRUE(!fails || status == -EIO);
		snprintf(manifest, sizeof manifest, "%s/manifest", second);
		/* Only the last point lies behind the manifest. */
		CU_ASSERT_EQUAL(access(manifest, F_OK) == 0, i == 4);
		if (fails)
			free(WIRE_CALL(w, ctx_synchronize, false).data);
		kill(w->pid, SIGKILL);
		CU_ASSERT_TRUE(wire_ended(w));
		w->fault[0] = 0;
		w->may_die = w->died = false;
		restore(w, i == 4 ? second : first);
		CU_ASSERT_EQUAL(get_u32(w, a + (6 << 20) - 4), 3);
		session_end(w);
		remove_directory(first);
		remove_directory(second);
	}
}

static void test_restore_faults(void)
{
	static const char *const faults[] = {
		"10", "11", "12", "13", "fail:10", "fail:11", "fail:12", "fail:13"};
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t a = alloc(w, 6 << 20);
	fill(w, a, 3, 6 << 20);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .hold = true})
			.status,
		0);
	CU_ASSERT_EQUAL(wire_release(w, true, true, "", "").status, 0);
	CU_ASSERT_TRUE(wire_ended(w));
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
		strcpy(w->fault, faults[i]);
		w->may_die = true;
		int status = wire_start(w, worker_path, driver_path, 0, fd, message);
		CU_ASSERT_TRUE(w->died || status != 0);
		CU_ASSERT_EQUAL(w->died, faults[i][0] != 'f');
		CU_ASSERT_TRUE(wire_ended(w));
		w->may_die = w->died = false;
	}
	w->fault[0] = 0;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, a + (6 << 20) - 4), 3);
	/* A full disk: refused, and the session runs on. */
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
	char full[] = "/tmp/ckt-image-XXXXXX";
	make_directory(full);
	CU_ASSERT_EQUAL(prlimit(w->pid, RLIMIT_FSIZE, &limit, NULL), 0);
	CU_ASSERT_EQUAL(
		wire_save2(w, full, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS}).status,
		-EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	CU_ASSERT_EQUAL(prlimit(w->pid, RLIMIT_FSIZE, &limit, NULL), 0);
	CU_ASSERT_EQUAL(get_u32(w, a), 3);
	remove_directory(full);
	session_end(w);
	close(fd);
	remove_directory(directory);
}

/* ---- Images that earlier versions wrote (tests/images) */

enum { GOLDEN_WORDS = 1000 };
#define GOLDEN_ARRAY ckt_handle_make(CKT_KIND_ARRAY, 1, 110)
#define GOLDEN_TEXTURE ckt_handle_make(CKT_KIND_TEXTURE, 1, 120)

/*
 * CKT_TEST_GOLDEN=DIRECTORY UNIT_SUITE=operations test_operations WORKER LIBCUDA: one by the worker
 * of that version.
 */
static void make_golden(const char *directory)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct wire *w = session_new();
	uint64_t small = alloc(w, 4 * GOLDEN_WORDS), big = alloc(w, 3 << 20);
	for (uint32_t i = 0; i < GOLDEN_WORDS; i++)
		WIRE_BATCH(w, memset, .dst = small + 4 * i, .element_size = 4, .value = i * i,
			.width = 1, .height = 1);
	fill(w, big, 0xabcd, 64);
	WIRE_BATCH(w, stream_create, .id = ckt_handle_make(CKT_KIND_STREAM, 1, 100),
		.flags = CU_STREAM_NON_BLOCKING);
	uint32_t words[32];
	CUDA_TEXTURE_DESC desc = {.flags = CU_TRSF_READ_AS_INTEGER};
	for (uint32_t i = 0; i < 32; i++)
		words[i] = 7 * i;
	free(WIRE_CALL(w, array_create, true, .id = GOLDEN_ARRAY, .width = 8, .height = 4,
		.format = CU_AD_FORMAT_UNSIGNED_INT32, .channels = 1)
			.data);
	WIRE_BATCH(w, memcpy_htoa, .array = GOLDEN_ARRAY, .width = 32, .height = 4,
		.data = (const uint8_t *)words, .data_len = sizeof words);
	for (uint32_t i = 0; i < 2; i++)
		free(WIRE_CALL(w, texture_create, true, .id = GOLDEN_TEXTURE + i,
			.type = CU_RESOURCE_TYPE_ARRAY, .array = GOLDEN_ARRAY,
			.desc = (const uint8_t *)&desc, .desc_len = sizeof desc)
				.data);
	WIRE_BATCH(w, texture_destroy, .id = GOLDEN_TEXTURE);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	printf("%llx %llx %llu\n", (unsigned long long)small, (unsigned long long)big,
		(unsigned long long)w->seq);
	CU_ASSERT_EQUAL(wire_save(w, directory, true, 5000, message), 0);
	session_free(w);
}

static void test_goldens(void)
{
	const char *images_path = getenv("CRICKET_TEST_IMAGES"), *make = getenv("CKT_TEST_GOLDEN");
	if (make) {
		make_golden(make);
		return;
	}
	DIR *list = opendir(images_path);
	unsigned found = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* These have another window, and so other addresses. */
	closedir(list);
	return;
#endif
	for (struct dirent *entry; (entry = readdir(list));) {
		char directory[] = "/tmp/ckt-image-XXXXXX", command[1024];
		if (!strstr(entry->d_name, ".tar.gz"))
			continue;
		make_directory(directory);
		snprintf(command, sizeof command, "tar -xzf '%s/%s' -C '%s'", images_path,
			entry->d_name, directory);
		CU_ASSERT_EQUAL_FATAL(system(command), 0);
		struct wire *w = calloc(1, sizeof *w);
		snprintf(w->session, sizeof w->session, "0123456789ab");
		restore(w, directory);
		w->seq = w->acked = w->executed;
		const uint64_t small = 0x200000000000, big = 0x200000200000;
		CU_ASSERT_EQUAL(get_u32(w, small + 4 * 999), 999 * 999);
		CU_ASSERT_EQUAL(get_u32(w, small + 4 * 17), 17 * 17);
		CU_ASSERT_EQUAL(get_u32(w, big + 60), 0xabcd);
		CU_ASSERT_EQUAL(get_u32(w, big + 64), 0);
		struct wire_reply reply = WIRE_CALL(w, stream_synchronize, false,
			.stream = ckt_handle_make(CKT_KIND_STREAM, 1, 100));
		CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
		free(reply.data);
		if (strtoul(entry->d_name + 2, NULL, 10) >= 6) {
			/*
			 * The second of two textures: the restored one's place is behind the one
			 * that is free.
			 */
			CUDA_TEXTURE_DESC desc = {.flags = CU_TRSF_READ_AS_INTEGER};
			struct ckt_memcpy_atoh_res words = {0};
			struct ckt_texture_create_res texture = {0};
			reply = WIRE_CALL(w, memcpy_atoh, true, .array = GOLDEN_ARRAY, .y = 3,
				.x = 28, .width = 4, .height = 1);
			CU_ASSERT_TRUE(!reply.result &&
				ckt_memcpy_atoh_res_get(&reply.results, &words) &&
				words.data_len == 4 && words.data[0] == 217);
			free(reply.data);
			for (uint32_t i = 0; i < 2; i++) {
				reply = WIRE_CALL(w, texture_create, true,
					.id = GOLDEN_TEXTURE + 2 + i,
					.type = CU_RESOURCE_TYPE_ARRAY, .array = GOLDEN_ARRAY,
					.desc = (const uint8_t *)&desc, .desc_len = sizeof desc);
				CU_ASSERT_TRUE(!reply.result &&
					ckt_texture_create_res_get(&reply.results, &texture));
				CU_ASSERT_EQUAL(texture.handle, i ? 3 : 1);
				free(reply.data);
			}
		}
		/* What a session from an old image writes is of today. */
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		CU_ASSERT_EQUAL(wire_save2(w, directory,
					(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS})
					.status,
			0);
		session_end(w);
		remove_directory(directory);
		found++;
	}
	closedir(list);
	/* One of each minor version there has been. */
	CU_ASSERT_EQUAL(found, CKT_IMAGE_MINOR + 1);
}

UNIT_SUITE(operations, {"hold", test_hold}, {"quiesce", test_quiesce}, {"chain", test_chain},
	{"any base", test_any_base}, {"images of earlier versions", test_goldens},
	{"pause", test_pause}, {"asker gone", test_asker_gone}, {"pause faults", test_pause_faults},
	{"release fault", test_release_fault}, {"save faults", test_faults},
	{"restore faults", test_restore_faults})
