/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/save/image_save.c: a whole image, an increment, and none where anything failed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/save/chain.h"
#include "checkpoint/save/save.h"
#include "tests/unit/worker/inside_image.h"

/* What a chain promises: only what changed since the image that is built on. */
static void test_incremental(void)
{
	uint64_t memory = inside_memory((uint64_t)8 << 20, 5);
	struct ckt_save whole = {.keep_hashes = true},
			next = {.keep_hashes = true, .incremental = true};
	image_files_new();
	next.base = (const char *)whole.image;
	IS(image_save(&next), -ESTALE);
	HAS(image_message, "its manifest was not sent");
	image_files_close();
	image_files_new();
	MUST(image_save(&whole), 0);
	ckt_image *image = image_read();
	YES(image->chain);
	IS(image->ancestors.ancestors_len, 0);
	image_free(image);
	YES(ckt_chain_continues((const char *)whole.image));
	image_files_close();
	inside_fill(memory + 3 * CKT_IMAGE_CHUNK, 6, 4);
	image_files_new();
	MUST(image_save(&next), 0);
	YES(next.changed_bytes >= CKT_IMAGE_CHUNK && next.changed_bytes < 3 * CKT_IMAGE_CHUNK);
	IS(next.memory_bytes, whole.memory_bytes);
	NO(ckt_chain_continues((const char *)whole.image));
	YES(ckt_chain_continues((const char *)next.image));
	image_files_close();
	/* One that is not to be built on leaves the chain as it is. */
	struct ckt_save aside = {0};
	image_files_new();
	MUST(image_save(&aside), 0);
	NO(ckt_chain_continues((const char *)aside.image));
	YES(ckt_chain_continues((const char *)next.image));
	YES(ckt_chain_hashed());
	image_files_close();
	inside_free(memory);
}

/* Told to fail at each step: no image, no chain, and the next one is good. */
static void test_faults(void)
{
	static const char *const points[] = {"fail:2", "fail:3", "fail:4"};
	uint64_t memory = inside_memory(4 << 20, 5);
	for (size_t i = 0; i < COUNT(points); i++) {
		struct ckt_save s = {.keep_hashes = true};
		ckt_image image = {0};
		image_files_new();
		setenv("CRICKET_FAULT", points[i], 1);
		IS(image_save(&s), -EIO);
		unsetenv("CRICKET_FAULT");
		YES(image_message[0] != 0);
		YES(ckt_image_read_open(image_fds, CKT_IMAGE_MEMORY_FILES, &image, image_message,
			    sizeof image_message) != 0);
		NO(ckt_chain_continues((const char *)s.image));
		image_files_close();
	}
	struct ckt_save s = {0};
	image_files_new();
	IS(image_save(&s), 0);
	ckt_image *image = image_read();
	IS(image_word(image, memory), 5);
	image_free(image);
	image_files_close();
	inside_free(memory);
	ckt_chain_break();
}

/* The manifest, cut anywhere or one bit another, is no image. */
static void test_damaged(void)
{
	struct ckt_save s = {0};
	unsigned taken = 0;
	image_files_new();
	MUST(image_save(&s), 0);
	off_t size = lseek(image_fds[0], 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)size);
	IS(pread(image_fds[0], bytes, (size_t)size, 0), size);
	for (off_t cut = 0; cut < size; cut++) {
		ckt_image image = {0};
		if (!ckt_image_decode(
			    bytes, (size_t)cut, &image, image_message, sizeof image_message)) {
			xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
			taken++;
		}
	}
	for (off_t at = 0; at < size; at += 1 + at / 64) {
		ckt_image image = {0};
		bytes[at] ^= 0x10;
		if (!ckt_image_decode(
			    bytes, (size_t)size, &image, image_message, sizeof image_message)) {
			xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
			/* A newer minor version is no harm. */
			taken += !(at >= 8 && at < 12);
		}
		bytes[at] ^= 0x10;
	}
	IS(taken, 0);
	free(bytes);
	image_files_close();
}

UNIT_SUITE(image_save, {"incremental", test_incremental}, {"faults", test_faults},
	{"damaged", test_damaged})
