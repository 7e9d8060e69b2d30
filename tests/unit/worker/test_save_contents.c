/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/save/save_contents.c: pieces of memory into files: what is not zero, by the crew, or
 * nothing counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/content_threads.h"
#include "checkpoint/freeze/spare_memory.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside_image.h"

/* The sizes that an image says its files have. */
static uint64_t file_bytes(const ckt_image *image)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < image->file_bytes.file_bytes_len; i++)
		bytes += image->file_bytes.file_bytes_val[i];
	return bytes;
}

static void test_words(void)
{
	uint64_t memory = inside_memory(5 << 20, 3);
	inside_fill(memory + CKT_IMAGE_CHUNK, 0, CKT_IMAGE_CHUNK);
	for (unsigned compress = 0; compress < 2; compress++) {
		struct ckt_save s = {.compress = compress};
		image_files_new();
		MUST(image_save(&s), 0);
		ckt_image *image = image_read();
		IS(image_word(image, memory), 3);
		IS(image_word(image, memory + CKT_IMAGE_CHUNK), -1); /* zeros are left out */
		IS(image_word(image, memory + (5 << 20) - 4), 3);
		IS(image->file_bytes.file_bytes_len, ckt_content_threads_count());
		IS(file_bytes(image), s.bytes);
		YES(s.bytes > 0 && s.bytes < s.memory_bytes);
		IS(s.changed_bytes, s.memory_bytes);
		image_free(image);
		image_files_close();
	}
	inside_free(memory);
}

/* A full disk: every data file refuses to grow. */
static void test_full(void)
{
	uint64_t memory = inside_memory(4 << 20, 5);
	struct ckt_save s = {0};
	image_files_new();
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++) {
		close(image_fds[i]);
		image_fds[i] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		IS(fcntl(image_fds[i], F_ADD_SEALS, F_SEAL_GROW), 0);
	}
	IS(image_save(&s), -EPERM);
	HAS(image_message, "cannot write the image");
	image_files_close();
	inside_free(memory);
}

static int let_go_calls;

static void count_let_go(struct ckt_save *save, struct ckt_worker *worker)
{
	(void)save;
	(void)worker;
	let_go_calls++;
}

/*
 * The frozen state is copied aside and the session goes on; where it cannot be, the session stands
 * still and the image is the same.
 */
static void test_aside(void)
{
	struct ckt_worker *w = &ckt_worker;
	uint64_t memory = inside_memory(9 << 20, 7), there = 0, owner;
	struct ckt_memory *second = &w->devices[1].memory;
	MUST(ckt_worker_use_context(w, ckt_handle_primary(1)), CUDA_SUCCESS);
	MUST(ckt_memory_alloc(second, 4 << 20, ckt_handle_primary(1), &there), CUDA_SUCCESS);
	inside_fill(there, 8, 4 << 20);
	MUST(ckt_worker_use_context(w, ckt_handle_primary(0)), CUDA_SUCCESS);
	for (int fails = 0; fails < 2; fails++) {
		struct ckt_save s = {.let_go = count_let_go};
		ckt_spare_memory_take(w, &s.spare);
		YES(s.spare.size >= 9 << 20);
		if (fails)
			setenv("CRICKET_FAULT", "fail:6", 1);
		let_go_calls = 0;
		image_files_new();
		MUST(image_save(&s), 0);
		IS(let_go_calls, !fails);
		ckt_image *image = image_read();
		IS(image_word(image, memory), 7);
		IS(image_word(image, memory + (9 << 20) - 4), 7);
		IS(image_word(image, there), 8);
		IS(image_word(image, there + (4 << 20) - 4), 8);
		YES(s.spare.parts[1].size >= 4 << 20);
		image_free(image);
		image_files_close();
		ckt_spare_memory_give(w, &s.spare);
	}
	unsetenv("CRICKET_FAULT");
	IS(ckt_memory_free_begin(second, there, &owner), CUDA_SUCCESS);
	ckt_memory_free_end(second, there);
	inside_free(memory);
}

UNIT_SUITE(save_contents, {"words", test_words}, {"full", test_full}, {"aside", test_aside})
