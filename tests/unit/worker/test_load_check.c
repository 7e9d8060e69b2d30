/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/load/load_check.c: whether a session can go on here. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/worker/restore.h"

static void test_other_model(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", again[] = "/tmp/ckt-image-XXXXXX",
	     message[CKT_MESSAGE_MAX];
	make_directory(directory);
	make_directory(again);
	struct wire *w = session_new();
	load(w, 0, common);
	uint64_t block = alloc(w, 4 * MIB);
	const uint32_t step = 100;
	launch(w, 0, ADD, &step, 4);
	fill(w, block, 9, 4 * MIB);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING);
	save_and_stop(w, directory);
	w->devices = "9.0:2G";
	restore(w, directory);
	CU_ASSERT_TRUE(noted(w, "(capability 12.0) and resumes on Cricket Soft GPU"));
	CU_ASSERT_EQUAL(get_u32(w, block + 4 * MIB - 4), 9);
	launch(w, 0, ADD, &step, 4);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	/* A module for newer GPUs, dead, does no harm on the way back and forth. */
	save_and_stop(w, again);
	w->devices = "12.0:8G";
	restore(w, again);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	load(w, 1, newer);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(1))), CUDA_SUCCESS);
	remove_directory(again);
	CU_ASSERT_EQUAL(mkdir(again, 0700), 0);
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, again, (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS}).status,
		0);
	load(w, 1, newer);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	w->devices = "9.0:2G";
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENODEV);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "has PTX for newer GPUs only"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "(add)"));
	restore(w, again);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w));
	/* The refused one restores where it fits. */
	w->devices = NULL;
	restore(w, directory);
	launch(w, 1, ADD, &step, 4);
	CU_ASSERT_EQUAL(hidden(w, 1, block), 107);
	session_end(w);
	remove_directory(directory);
	remove_directory(again);
}

/*
 * Too little memory is said before anything is made, and the next attempt, with enough, succeeds.
 */
static void test_too_little(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 64 * MIB);
	fill(w, block, 9, 64 * MIB);
	save_and_stop(w, directory);
	for (int i = 0; i < 2; i++) {
		w->devices = "12.0:32M";
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOMEM);
		/* Of the card's 32 MiB the context itself takes some. */
		unsigned has = 0, missing = 0;
		const char *figures = strstr(message, "needs 64 MiB");
		CU_ASSERT_PTR_NOT_NULL_FATAL(figures);
		CU_ASSERT_EQUAL(
			sscanf(figures,
				"needs 64 MiB of GPU memory, but Cricket Soft GPU has only %u MiB free: %u MiB are missing",
				&has, &missing),
			2);
		CU_ASSERT_TRUE(has >= 30 && has <= 32);
		CU_ASSERT_EQUAL(has + missing, 64);
		w->devices = NULL;
		int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CU_ASSERT_EQUAL(
			wire_start(w, worker_path, driver_path, 32 * MIB, fd, message), -ENOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "--session-memory"));
		CU_ASSERT_TRUE(wire_ended(w));
		close(fd);
	}
	/* In the middle of it: the last extent finds no memory. */
	strcpy(w->fault, "fail:15");
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOMEM);
	w->fault[0] = 0;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 64 * MIB - 4), 9);
	session_end(w);
	remove_directory(directory);
}

/* The server's limit of now holds, whatever it was where the image was written. */
static void test_limit(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	alloc(w, 16 * MIB);
	save_and_stop(w, directory);
	for (unsigned limit = 32; limit; limit = limit == 32 ? 128 : 0) {
		int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CU_ASSERT_EQUAL_FATAL(
			wire_start(w, worker_path, driver_path, limit * MIB, fd, message), 0);
		close(fd);
		CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
		struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = 64 * MIB);
		CU_ASSERT_EQUAL(
			reply.result, limit == 32 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
		free(reply.data);
		/* What it writes has no limit to bring back. */
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		save_and_stop(w, directory);
	}
	free(w->log);
	free(w->printed);
	free(w);
	remove_directory(directory);
}

UNIT_SUITE(load_check, {"other model", test_other_model}, {"too little", test_too_little},
	{"limit", test_limit})
