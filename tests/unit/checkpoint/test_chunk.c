/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/format/chunk.c: data files: zeros left out, compression where it helps, hashes, and
 * readers of files that are not what they should be.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/blake3.h"
#include "checkpoint/format/store.h"
#include "tests/unit/suite.h"

static char directory[64], message[256];
static int dir = -1;

static void begin(void)
{
	strcpy(directory, "/tmp/ckt-chunk-XXXXXX");
	MUST(mkdtemp(directory) != NULL, 1);
	dir = open(directory, O_RDONLY | O_DIRECTORY);
}

static void end(void)
{
	char name[32];
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "data-%u", i);
		unlinkat(dir, name, 0);
	}
	close(dir);
	IS(rmdir(directory), 0);
}

static void noise(uint8_t *data, size_t size)
{
	uint32_t seed = 1;
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
}

static void test_writer(void)
{
	static uint8_t data[CKT_IMAGE_CHUNK], back[CKT_IMAGE_CHUNK];
	struct ckt_image_writer w;
	for (int compress = 0; compress < 2; compress++) {
		begin();
		IS(ckt_image_writer_init(&w, dir, 2, compress), 0);
		memset(data, 0, sizeof data);
		IS(ckt_image_writer_add(&w, 0, 0x1000, data, sizeof data, NULL), 0);
		IS(ckt_image_writer_add(&w, 0, 0x1000, data, 0, NULL), 0);
		IS(w.count, 0);
		IS(w.offset, 0);
		/* One byte alone, the last of many, text, noise. */
		data[0] = 7;
		IS(ckt_image_writer_add(&w, 3, 5, data, 1, NULL), 0);
		memset(data, 'a', 5000);
		IS(ckt_image_writer_add(&w, 4, 6, data, 5000, NULL), 0);
		noise(data, sizeof data);
		IS(ckt_image_writer_add(&w, 5, 7, data, sizeof data, NULL), 0);
		IS(w.count, 3);
		static const struct {
			unsigned space, size;
			uint64_t address;
			bool shrinks;
		} want[] = {{3, 1, 5, false}, {4, 5000, 6, true}, {5, CKT_IMAGE_CHUNK, 7, false}};
		uint64_t offset = 0;
		for (unsigned i = 0; i < 3; i++) {
			const ckt_image_chunk *c = &w.chunks[i];
			bool packed = compress && want[i].shrinks;
			YES(c->space == want[i].space && c->size == want[i].size &&
				c->address == want[i].address && c->file == 2 &&
				c->offset == offset);
			IS(c->encoding, packed ? CKT_IMAGE_ZSTD : CKT_IMAGE_RAW);
			YES(packed ? c->stored < 500 : c->stored == c->size);
			offset += c->stored;
		}
		IS(w.offset, offset);
		IS(ckt_image_writer_finish(&w), 0);
		struct stat st;
		IS(fstatat(dir, "data-2", &st, 0), 0);
		YES((uint64_t)st.st_size == offset && (st.st_mode & 0777) == 0600);
		/* There already. */
		struct ckt_image_writer again;
		IS(ckt_image_writer_init(&again, dir, 2, compress), -EEXIST);
		ckt_image_writer_fini(&again);
		/* Read as the manifest would have it. */
		u_quad_t sizes[3] = {0, 0, offset};
		ckt_image image = {.hash_kind = w.hash_kind, .file_bytes = {3, sizes}};
		IS(ckt_image_chunk_read(dir, &image, &w.chunks[2], back), 0);
		IS(memcmp(back, data, sizeof data), 0);
		ckt_image_chunk outside = w.chunks[2];
		outside.file = 3;
		IS(ckt_image_chunk_read(dir, &image, &outside, back), -EBADMSG);
		outside.file = 1;
		IS(ckt_image_chunk_read(dir, &image, &outside, back), -ENOENT);
		outside = w.chunks[2];
		outside.offset++;
		/* its end is behind the file's */
		IS(ckt_image_chunk_read(dir, &image, &outside, back), -EBADMSG);
		ckt_image_writer_fini(&w);
		ckt_image_writer_fini(&w);
		end();
	}
	IS(ckt_image_writer_init(&w, -1, 0, false), -EBADF);
	ckt_image_writer_fini(&w);
}

static void test_hashes(void)
{
	char sum[CKT_IMAGE_HASH], other[CKT_IMAGE_HASH];
	uint8_t direct[32], given[CKT_IMAGE_HASH] = {1, 2, 3};
	static const uint8_t sha256_of_abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
	ckt_image_hash(CKT_IMAGE_SHA256, "abc", 3, sum);
	IS(memcmp(sum, sha256_of_abc, sizeof sha256_of_abc), 0);
	ckt_image_hash(CKT_IMAGE_BLAKE3, "abc", 3, other);
	ckt_blake3("abc", 3, direct);
	IS(memcmp(other, direct, 32), 0);
	YES(memcmp(sum, other, 32) != 0);
	/* One that the caller brings is taken as it is; reading finds that it is not right. */
	struct ckt_image_writer w;
	char back[8];
	begin();
	IS(ckt_image_writer_init(&w, dir, 0, false), 0);
	IS(ckt_image_writer_add(&w, 0, 0, "wrong", 5, given), 0);
	IS(memcmp(w.chunks[0].hash, given, sizeof given), 0);
	IS(ckt_image_writer_finish(&w), 0);
	u_quad_t size = 5;
	ckt_image image = {.hash_kind = CKT_IMAGE_BLAKE3, .file_bytes = {1, &size}};
	IS(ckt_image_chunk_read(dir, &image, &w.chunks[0], back), -EBADMSG);
	struct ckt_image_reader r;
	IS(ckt_image_reader_init(&r, &image, &dir, 1, message, sizeof message), 0);
	IS(ckt_image_reader_chunk(&r, &w.chunks[0], back), -EBADMSG);
	IS(ckt_image_reader_chunk_unchecked(&r, &w.chunks[0], back), 0);
	IS(memcmp(back, "wrong", 5), 0);
	ckt_image_reader_fini(&r);
	ckt_image_reader_fini(&r);
	ckt_image_writer_fini(&w);
	end();
}

/* Of the image's own directory and of one that it builds on. */
static void test_reader(void)
{
	struct ckt_image_writer w[2];
	char back[8], first[64];
	int dirs[2];
	begin();
	strcpy(first, directory);
	dirs[1] = dir;
	IS(ckt_image_writer_init(&w[1], dirs[1], 3, false), 0);
	IS(ckt_image_writer_add(&w[1], 0, 0, "older", 5, NULL), 0);
	IS(ckt_image_writer_finish(&w[1]), 0);
	begin();
	dirs[0] = dir;
	IS(ckt_image_writer_init(&w[0], dirs[0], 0, false), 0);
	IS(ckt_image_writer_add(&w[0], 0, 0, "newer!", 6, NULL), 0);
	IS(ckt_image_writer_finish(&w[0]), 0);
	u_quad_t size = 6;
	ckt_image_file elsewhere = {.ancestor = 0, .file = 3, .bytes = 5};
	ckt_image image = {.hash_kind = CKT_IMAGE_BLAKE3,
		.file_bytes = {1, &size},
		.elsewhere = {1, &elsewhere}};
	struct ckt_image_reader r;
	IS(ckt_image_reader_init(&r, &image, dirs, 2, message, sizeof message), 0);
	IS(ckt_image_reader_chunk(&r, &w[0].chunks[0], back), 0);
	IS(memcmp(back, "newer!", 6), 0);
	ckt_image_chunk old = w[1].chunks[0];
	old.file = 1; /* behind the image's own */
	IS(ckt_image_reader_chunk(&r, &old, back), 0);
	IS(memcmp(back, "older", 5), 0);
	old.file = 2;
	IS(ckt_image_reader_chunk(&r, &old, back), -EBADMSG);
	IS(ckt_image_reader_chunk_unchecked(&r, &old, back), -EBADMSG);
	ckt_image_reader_fini(&r);
	/* The ancestor's directory is not there, or its file has another size; the own file has. */
	IS(ckt_image_reader_init(&r, &image, dirs, 1, message, sizeof message), -EBADMSG);
	HAS(message, "builds on another (number 1 of its chain), and data-3");
	elsewhere.bytes = 6;
	IS(ckt_image_reader_init(&r, &image, dirs, 2, message, sizeof message), -EBADMSG);
	HAS(message, "data-3");
	elsewhere.bytes = 5;
	size = 7;
	IS(ckt_image_reader_init(&r, &image, dirs, 2, message, sizeof message), -EBADMSG);
	HAS(message, "data-0 is missing or its size differs");
	size = 6;
	/* A link where a file should be, though it leads to just that file. */
	IS(renameat(dirs[0], "data-0", dirs[0], "data-1"), 0);
	IS(symlinkat("data-1", dirs[0], "data-0"), 0);
	IS(ckt_image_chunk_read(dirs[0], &image, &w[0].chunks[0], back), -ELOOP);
	IS(ckt_image_reader_init(&r, &image, dirs, 2, message, sizeof message), -EBADMSG);
	ckt_image_writer_fini(&w[0]);
	ckt_image_writer_fini(&w[1]);
	end();
	dir = dirs[1];
	strcpy(directory, first);
	end();
}

/* An image in memory: files that are open already. */
static void test_open(void)
{
	int fds[2] = {memfd_create("manifest", MFD_CLOEXEC), memfd_create("data", MFD_CLOEXEC)};
	struct ckt_image_writer w;
	struct ckt_image_reader r;
	char back[8];
	IS(ckt_image_writer_init_open(&w, fds[1], 0, true), 0);
	IS(ckt_image_writer_add(&w, 0, 0, "memory", 6, NULL), 0);
	IS(ckt_image_writer_finish(&w), 0);
	u_quad_t sizes[2] = {w.offset, 1};
	ckt_image_file elsewhere = {.bytes = 5};
	ckt_image image = {.hash_kind = CKT_IMAGE_BLAKE3, .file_bytes = {1, sizes}};
	IS(ckt_image_reader_init_open(&r, &image, fds, 2, message, sizeof message), 0);
	IS(ckt_image_reader_chunk(&r, &w.chunks[0], back), 0);
	IS(memcmp(back, "memory", 6), 0);
	ckt_image_reader_fini(&r);
	/* The caller's descriptors are still open. */
	YES(fcntl(fds[1], F_GETFD) >= 0);
	IS(ckt_image_reader_init_open(&r, &image, fds, 1, message, sizeof message), -EBADMSG);
	HAS(message, "the image in memory is incomplete");
	image.file_bytes.file_bytes_len = 2;
	IS(ckt_image_reader_init_open(&r, &image, fds, 2, message, sizeof message), -EBADMSG);
	image.file_bytes.file_bytes_len = 1;
	image.elsewhere.elsewhere_len = 1;
	image.elsewhere.elsewhere_val = &elsewhere;
	IS(ckt_image_reader_init_open(&r, &image, fds, 2, message, sizeof message), -EBADMSG);
	ckt_image_writer_fini(&w);
	close(fds[0]);
	close(fds[1]);
}

UNIT_SUITE(checkpoint / format / chunk, {"writer", test_writer}, {"hashes", test_hashes},
	{"reader", test_reader}, {"open", test_open})
