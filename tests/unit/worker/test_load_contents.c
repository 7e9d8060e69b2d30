/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/load/load_contents.c: contents from files, from memory, verified by the GPU and by the
 * CPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "tests/unit/worker/restore.h"

static void test_memory(void)
{
	int fds[CKT_IMAGE_MEMORY_FILES], more[CKT_IMAGE_MEMORY_FILES];
	char message[CKT_MESSAGE_MAX], other[] = "/tmp/ckt-image-XXXXXX";
	make_directory(other);
	struct wire *w = session_new();
	uint64_t a = alloc(w, 6 * MIB), b = alloc(w, 2 * MIB);
	fill(w, a, 3, 6 * MIB);
	/* Without files it is refused, and so is an increment. */
	CU_ASSERT_EQUAL(
		wire_save2(w, NULL,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .to_memory = true})
			.status,
		-EINVAL);
	make_files(more);
	w->memory_fds = more;
	CU_ASSERT_EQUAL(wire_save2(w, NULL,
				(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS,
					.to_memory = true,
					.incremental = true})
				.status,
		-EINVAL);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
	close_files(more);
	make_files(fds);
	w->memory_fds = fds;
	ckt_worker_save2_res saved = wire_save2(w, NULL,
		(ckt_worker_save2_args){
			.deadline_ms = WIRE_GUARD_MS, .to_memory = true, .compress = true});
	CU_ASSERT_EQUAL_FATAL(saved.status, 0);
	CU_ASSERT_TRUE(saved.bytes > 0 && saved.bytes < MIB);
	/* It runs on, and what it does now is not in that image. */
	fill(w, a, 4, 4);
	fill(w, b, 5, 4);
	make_files(more);
	w->memory_fds = more;
	save_and_stop(w, NULL);
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		CU_ASSERT_EQUAL(fcntl(more[i], F_ADD_SEALS,
					F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK),
			0);
	w->memory_fds = fds;
	restore(w, NULL);
	CU_ASSERT_EQUAL(get_u32(w, a), 3);
	CU_ASSERT_EQUAL(get_u32(w, b), 0);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w));
	/* From a sealed one, twice; from memory it goes on to a directory as ever. */
	w->memory_fds = more;
	for (int i = 0; i < 2; i++) {
		restore(w, NULL);
		CU_ASSERT_EQUAL(get_u32(w, a), 4);
		CU_ASSERT_EQUAL(get_u32(w, a + 4), 3);
		CU_ASSERT_EQUAL(get_u32(w, b), 5);
		if (i == 0) {
			kill(w->pid, SIGKILL);
			CU_ASSERT_TRUE(wire_ended(w));
		}
	}
	CU_ASSERT_EQUAL(
		wire_save2(w, other,
			(ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS, .keep_hashes = true})
			.status,
		0);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w));
	/* Damaged, cut, and without a manifest. */
	uint8_t byte;
	CU_ASSERT_EQUAL(pread(fds[0], &byte, 1, 100), 1);
	byte ^= 1;
	CU_ASSERT_EQUAL(pwrite(fds[0], &byte, 1, 100), 1);
	w->memory_fds = fds;
	CU_ASSERT_EQUAL(try_restore(w, NULL, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "checksum"));
	byte ^= 1;
	CU_ASSERT_EQUAL(pwrite(fds[0], &byte, 1, 100), 1);
	for (unsigned i = 1; i < CKT_IMAGE_MEMORY_FILES; i++) {
		struct stat st;
		CU_ASSERT_EQUAL(fstat(fds[i], &st), 0);
		if (!st.st_size)
			continue;
		CU_ASSERT_EQUAL(ftruncate(fds[i], st.st_size - 1), 0);
		CU_ASSERT_EQUAL(try_restore(w, NULL, message), -EBADMSG);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "its size differs"));
		break;
	}
	CU_ASSERT_EQUAL(ftruncate(fds[0], 0), 0);
	CU_ASSERT_NOT_EQUAL(try_restore(w, NULL, message), 0);
	w->memory_fds = NULL;
	restore(w, other);
	CU_ASSERT_EQUAL(get_u32(w, b), 5);
	session_end(w);
	close_files(fds);
	close_files(more);
	remove_directory(other);
}

static void flip_a_byte(const char *directory)
{
	char path[64], byte;
	struct stat st;
	for (unsigned i = 0; i < CKT_IMAGE_FILES; i++) {
		snprintf(path, sizeof path, "%s/data-%u", directory, i);
		int fd = open(path, O_RDWR | O_CLOEXEC);
		CU_ASSERT_TRUE_FATAL(fd >= 0);
		if (fstat(fd, &st) == 0 && st.st_size >= 2 * MIB) {
			CU_ASSERT_EQUAL(pread(fd, &byte, 1, st.st_size - 77), 1);
			byte ^= 4;
			CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, st.st_size - 77), 1);
			close(fd);
			return;
		}
		close(fd);
	}
	CU_FAIL("no data file holds a chunk");
}

/* The GPU writes what the CPU verifies, the other way round, and both find what is damaged. */
static void test_digests(void)
{
#ifdef __SANITIZE_THREAD__
	/* Minutes of hashing on the interpreter. */
	return;
#endif
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = calloc(1, sizeof *w);
	w->env[0] = "CKT_DIGEST_ANY=1";
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	uint64_t block = alloc(w, 6 * MIB);
	fill(w, block, 0x01020304, 3 * MIB);
	fill(w, block + 5 * MIB, 5, 4096);
	save_and_stop(w, directory);
	w->env[0] = NULL;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 3 * MIB - 4), 0x01020304);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	w->env[0] = "CKT_DIGEST_ANY=1";
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 5 * MIB), 5);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	flip_a_byte(directory);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged: contents of the GPU's memory at 0x"));
	w->env[0] = NULL;
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged"));
	remove_directory(directory);
	free(w->log);
	free(w->printed);
	free(w);
}

UNIT_SUITE(load_contents, {"memory", test_memory}, {"digests", test_digests})
