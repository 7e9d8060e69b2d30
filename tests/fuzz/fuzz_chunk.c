/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: contents of an image (checkpoint/format/chunk.c): chunks are written, some of
 * their bytes or of their descriptions are changed, and they are read again.
 *
 * What nobody changed must come back; what was changed must be refused, or be the same after all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "tests/fuzz/fuzz.h"

enum { CHUNKS_MAX = 8, SIZE_MAX_ = 4096 };
enum { COMPRESS = 1, OPEN = 2, SHA = 4, HASH_GIVEN = 8, ELSEWHERE = 16, LATE = 32 };

static char directory[] = "/dev/shm/ckt-fuzz-XXXXXX";
static int place = -1;
static uint8_t contents[CHUNKS_MAX][SIZE_MAX_];
static size_t sizes[CHUNKS_MAX];

static struct ckt_image_writer writer;

static int begin(uint8_t flags)
{
	unlinkat(place, "data-0", 0);
	if (!(flags & OPEN))
		return ckt_image_writer_init(&writer, place, 0, flags & COMPRESS);
	int fd = openat(place, "data-0", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int result = ckt_image_writer_init_open(&writer, fd, 0, flags & COMPRESS);
	close(fd);
	return result;
}

/* The contents of a chunk: bytes of the input, said again and again. */
static void fill(uint8_t *to, size_t size, struct fuzz_input *input)
{
	size_t period;
	const uint8_t *bytes = fuzz_bytes(input, fuzz_u8(input), &period);
	for (size_t i = 0; i < size; i++)
		to[i] = period ? bytes[i % period] : 0;
}

static unsigned write_chunks(uint8_t flags, struct fuzz_input *input)
{
	unsigned count = 0;
	for (; count < CHUNKS_MAX && input->p < input->end; count++) {
		char hash[CKT_IMAGE_HASH];
		size_t size = 1 + ((size_t)fuzz_u8(input) << 4) % SIZE_MAX_;
		size_t before = writer.count;
		fill(contents[count], size, input);
		ckt_image_hash(writer.hash_kind, contents[count], size, hash);
		if (ckt_image_writer_add(&writer, 0, 0, contents[count], (uint32_t)size,
			    flags & HASH_GIVEN ? (uint8_t *)hash : NULL))
			break;
		/* Zeros are left out. */
		if (writer.count == before)
			count--;
		else
			sizes[count] = size;
		if (writer.count >= CHUNKS_MAX)
			break;
	}
	return (unsigned)writer.count;
}

/* Where the input says so; true if something is different now. */
static bool damage(ckt_image_chunk *chunks, unsigned count, struct fuzz_input *input)
{
	uint8_t what = fuzz_u8(input), which = fuzz_u8(input);
	uint32_t value = fuzz_u32(input);
	ckt_image_chunk *chunk = count ? &chunks[which % count] : NULL;
	if (!chunk || what < 0x80)
		return false;
	switch (what & 7) {
	case 0:
		chunk->hash[value % CKT_IMAGE_HASH] ^= 1;
		return true;
	case 1:
		chunk->offset += value;
		return value;
	case 2:
		chunk->stored = value % (chunk->size + 1);
		return true;
	case 3:
		chunk->encoding ^= 1;
		return true;
	case 4:
		chunk->file += 1 + value % 3;
		return true;
	case 5:
		/* Never above what the checks of a manifest let through. */
		chunk->size = 1 + value % SIZE_MAX_;
		chunk->stored = chunk->stored < chunk->size ? chunk->stored : chunk->size;
		return true;
	default: {
		int fd = openat(place, "data-0", O_RDWR | O_CLOEXEC);
		uint8_t byte = (uint8_t)value;
		bool wrote = pwrite(fd, &byte, 1, value >> 8 & 0xfff) == 1;
		close(fd);
		return wrote;
	}
	}
}

static void read_chunks(const ckt_image *image, uint8_t flags, bool damaged, uint8_t fails)
{
	static uint8_t data[CKT_IMAGE_CHUNK];
	char message[256] = "";
	struct ckt_image_reader reader = {0};
	int fds[2] = {-1, openat(place, "data-0", O_RDONLY | O_CLOEXEC)},
	    places[2] = {place, place};
	fuzz_fail_allocation(fails);
	int result = flags & OPEN ? ckt_image_reader_init_open(&reader, image, fds,
					    1 + !(flags & LATE), message, sizeof message)
				  : ckt_image_reader_init(&reader, image, places,
					    1 + !(flags & LATE), message, sizeof message);
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		int read = result ? -EBADMSG : ckt_image_reader_chunk(&reader, chunk, data);
		bool same =
			!read && chunk->size == sizes[i] && !memcmp(data, contents[i], sizes[i]);
		fuzz_insist(read || same, "other contents with the same hash");
		fuzz_insist(damaged || fails || result || same, "a good chunk is refused");
		if (!result)
			ckt_image_reader_chunk_unchecked(&reader, chunk, data);
		ckt_image_chunk_read(place, image, chunk, data);
	}
	fuzz_fail_allocation(0);
	if (!result)
		ckt_image_reader_fini(&reader);
	close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, data + size};
	uint8_t flags = fuzz_u8(&input), fails = fuzz_u8(&input), wrong_size = fuzz_u8(&input);
	fails = fails < 0xc0 ? 0 : fails & 15;
	fuzz_fail_allocation(fails);
	int result = begin(flags);
	writer.hash_kind = flags & SHA ? CKT_IMAGE_SHA256 : CKT_IMAGE_BLAKE3;
	/* What is changed stands before the chunks. */
	struct fuzz_input changes = input;
	size_t ignored;
	fuzz_bytes(&input, 6, &ignored);
	unsigned count = result ? 0 : write_chunks(flags, &input);
	fuzz_fail_allocation(0);
	if (!result)
		result = ckt_image_writer_finish(&writer);
	if (!result) {
		uint64_t bytes = writer.offset;
		static ckt_image_file elsewhere = {0, 0, 0};
		static ckt_image_ancestor ancestor;
		bool damaged = damage(writer.chunks, count, &changes) || wrong_size > 0xf0;
		elsewhere.bytes = bytes + (wrong_size > 0xf8);
		bytes += wrong_size > 0xf0 && wrong_size <= 0xf8;
		ckt_image image = {.hash_kind = writer.hash_kind,
			.file_bytes = {1, &bytes},
			.ancestors = {1, &ancestor},
			.elsewhere = {flags & ELSEWHERE ? 1 : 0, &elsewhere},
			.chunks = {count, writer.chunks}};
		read_chunks(&image, flags, damaged, fails);
	}
	ckt_image_writer_fini(&writer);
	return 0;
}

static void remove_files(void)
{
	unlinkat(place, "data-0", 0);
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	fuzz_insist(mkdtemp(directory), "no directory");
	place = open(directory, O_RDONLY | O_DIRECTORY);
	atexit(remove_files);
	const char *to = getenv("CKT_FUZZ_SEEDS");
	if (!to)
		return 0;
	for (uint8_t flags = 0; flags < 64; flags++) {
		uint8_t seed[32] = {flags, 0, 0, flags & 1 ? 0x80 | flags >> 1 : 0, 0, 0, 0, 1, 2};
		char name[16] = {'c', (char)('0' + flags / 8), (char)('0' + flags % 8), 0};
		memcpy(seed + 9,
			"\x80\x05hello\x20\x03"
			"abc",
			12);
		fuzz_write_seed(to, name, seed, 21);
	}
	exit(0);
}
