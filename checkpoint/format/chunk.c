/* SPDX-License-Identifier: Apache-2.0 */
/* Contents: data files of chunks with hashes, zeros left out.  See store.h. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file_io.h"
#include "checkpoint/format/blake3.h"
#include "checkpoint/format/store.h"

enum { ZSTD_LEVEL = 1 };

void ckt_image_hash(ckt_image_hash_kind kind, const void *data, size_t size, char *ret_hash)
{
	if (kind == CKT_IMAGE_BLAKE3) {
		ckt_blake3(data, size, (uint8_t *)ret_hash);
		return;
	}
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, CKT_IMAGE_HASH, (uint8_t *)ret_hash);
}

static bool all_zero(const uint8_t *data, size_t size)
{
	/*
	 * Compares the memory with itself one byte on: the first byte decides, and memcmp is as
	 * fast as memory.
	 */
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

static int writer_init(struct ckt_image_writer *writer, int fd, unsigned file, bool compress)
{
	*writer = (struct ckt_image_writer){
		.fd = fd, .file = file, .compress = compress, .hash_kind = CKT_IMAGE_BLAKE3};
	if (fd < 0)
		return fd;
	if (!compress)
		return 0;
	writer->zstd = ZSTD_createCCtx();
	writer->buffer = malloc(CKT_IMAGE_CHUNK);
	return writer->zstd && writer->buffer ? 0 : -ENOMEM;
}

int ckt_image_writer_init(struct ckt_image_writer *writer, int place, unsigned file, bool compress)
{
	return writer_init(writer, ckt_image_open(place, CKT_BROKER_MAKE, 0, file), file, compress);
}

int ckt_image_writer_init_open(
	struct ckt_image_writer *writer, int fd, unsigned file, bool compress)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return writer_init(writer, own < 0 ? -errno : own, file, compress);
}

static int append(struct ckt_image_writer *writer, const uint8_t *data, size_t size)
{
	int result = ckt_write_all(writer->fd, data, size);
	if (!result)
		writer->offset += size;
	return result;
}

int ckt_image_writer_add(struct ckt_image_writer *writer, unsigned space, uint64_t address,
	const void *data, uint32_t size, const uint8_t hash[CKT_IMAGE_HASH])
{
	if (all_zero(data, size))
		return 0;
	if (writer->count == writer->room) {
		size_t room = writer->room ? writer->room * 2 : 256;
		ckt_image_chunk *chunks = realloc(writer->chunks, room * sizeof *chunks);
		if (!chunks)
			return -ENOMEM;
		writer->chunks = chunks;
		writer->room = room;
	}
	ckt_image_chunk chunk = {.space = space,
		.address = address,
		.size = size,
		.file = writer->file,
		.offset = writer->offset,
		.stored = size};
	if (hash)
		memcpy(chunk.hash, hash, sizeof chunk.hash);
	else
		ckt_image_hash(writer->hash_kind, data, size, chunk.hash);
	if (writer->compress) {
		size_t stored = ZSTD_compressCCtx(
			writer->zstd, writer->buffer, size - 1, data, size, ZSTD_LEVEL);
		if (!ZSTD_isError(stored)) {
			chunk.stored = (u_int)stored;
			chunk.encoding = CKT_IMAGE_ZSTD;
			data = writer->buffer;
		}
	}
	int result = append(writer, data, chunk.stored);
	if (!result)
		writer->chunks[writer->count++] = chunk;
	return result;
}

int ckt_image_writer_finish(struct ckt_image_writer *writer)
{
	int result = fsync(writer->fd) ? -errno : 0;
	close(writer->fd);
	writer->fd = -1;
	return result;
}

void ckt_image_writer_fini(struct ckt_image_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	if (writer->zstd)
		ZSTD_freeCCtx(writer->zstd);
	free(writer->buffer);
	free(writer->chunks);
	*writer = (struct ckt_image_writer){.fd = -1};
}

static int read_all(int fd, uint8_t *data, size_t size, uint64_t offset)
{
	ssize_t n = ckt_read_at(fd, data, size, (off_t)offset);
	return n < 0 ? (int)n : (size_t)n == size ? 0 : -EBADMSG;
}

static int reader_new(struct ckt_image_reader *reader, const ckt_image *image)
{
	*reader = (struct ckt_image_reader){.image = image,
		.count = image->file_bytes.file_bytes_len + image->elsewhere.elsewhere_len};
	reader->fds = malloc((reader->count + 1) * sizeof *reader->fds);
	for (unsigned i = 0; reader->fds && i < reader->count; i++)
		reader->fds[i] = -1;
	return reader->fds ? 0 : -ENOMEM;
}

int ckt_image_reader_init_open(struct ckt_image_reader *reader, const ckt_image *image,
	const int *fds, unsigned count, char *ret_message, size_t message_size)
{
	int result = image->elsewhere.elsewhere_len ? -EBADMSG : reader_new(reader, image);
	for (unsigned i = 0; !result && i < reader->count; i++)
		if (1 + i >= count || (reader->fds[i] = fcntl(fds[1 + i], F_DUPFD_CLOEXEC, 3)) < 0)
			result = -EBADMSG;
	if (!result)
		return 0;
	snprintf(ret_message, message_size, "the image in memory is incomplete: %s",
		strerror(-result));
	ckt_image_reader_fini(reader);
	return result;
}

int ckt_image_reader_init(struct ckt_image_reader *reader, const ckt_image *image,
	const int *places, unsigned count, char *ret_message, size_t message_size)
{
	unsigned own = image->file_bytes.file_bytes_len;
	int error = reader_new(reader, image);
	if (error)
		return error;
	for (unsigned i = 0; i < reader->count; i++) {
		const ckt_image_file *file =
			i < own ? NULL : &image->elsewhere.elsewhere_val[i - own];
		unsigned dir = file ? file->ancestor + 1 : 0;
		uint64_t bytes = file ? file->bytes : image->file_bytes.file_bytes_val[i];
		char name[32];
		struct stat st;
		snprintf(name, sizeof name, "data-%u", file ? file->file : i);
		if (dir < count && places[dir] >= 0)
			reader->fds[i] = ckt_image_open(
				places[dir], CKT_BROKER_READ, dir, file ? file->file : i);
		if (reader->fds[i] < 0 || fstat(reader->fds[i], &st) || !S_ISREG(st.st_mode) ||
			(uint64_t)st.st_size != bytes) {
			if (file)
				snprintf(ret_message, message_size,
					"the image builds on another (number %u of its "
					"chain), and %s of that image is missing or "
					"has the wrong size",
					dir, name);
			else
				snprintf(ret_message, message_size,
					"the image is damaged: %s is missing or its "
					"size differs from the manifest's",
					name);
			ckt_image_reader_fini(reader);
			return -EBADMSG;
		}
	}
	return 0;
}

void ckt_image_reader_fini(struct ckt_image_reader *reader)
{
	for (unsigned i = 0; reader->fds && i < reader->count; i++)
		if (reader->fds[i] >= 0)
			close(reader->fds[i]);
	free(reader->fds);
	*reader = (struct ckt_image_reader){0};
}

static int read_contents(int fd, const ckt_image_chunk *chunk, void *ret_data)
{
	int result;
	if (chunk->encoding == CKT_IMAGE_ZSTD) {
		void *stored = malloc(chunk->stored + 1);
		result = stored ? read_all(fd, stored, chunk->stored, chunk->offset) : -ENOMEM;
		if (!result &&
			ZSTD_decompress(ret_data, chunk->size, stored, chunk->stored) !=
				chunk->size)
			result = -EBADMSG;
		free(stored);
	} else {
		result = read_all(fd, ret_data, chunk->size, chunk->offset);
	}
	return result;
}

static int read_chunk(
	int fd, ckt_image_hash_kind kind, const ckt_image_chunk *chunk, void *ret_data)
{
	char sum[CKT_IMAGE_HASH];
	int result = read_contents(fd, chunk, ret_data);
	if (result)
		return result;
	ckt_image_hash(kind, ret_data, chunk->size, sum);
	return memcmp(sum, chunk->hash, sizeof sum) ? -EBADMSG : 0;
}

int ckt_image_reader_chunk(
	const struct ckt_image_reader *reader, const ckt_image_chunk *chunk, void *ret_data)
{
	return chunk->file < reader->count
		? read_chunk(reader->fds[chunk->file], reader->image->hash_kind, chunk, ret_data)
		: -EBADMSG;
}

int ckt_image_reader_chunk_unchecked(
	const struct ckt_image_reader *reader, const ckt_image_chunk *chunk, void *ret_data)
{
	return chunk->file < reader->count
		? read_contents(reader->fds[chunk->file], chunk, ret_data)
		: -EBADMSG;
}

int ckt_image_chunk_read(
	int place, const ckt_image *image, const ckt_image_chunk *chunk, void *ret_data)
{
	if (chunk->file >= image->file_bytes.file_bytes_len)
		return -EBADMSG;
	int fd = ckt_image_open(place, CKT_BROKER_READ, 0, chunk->file);
	if (fd < 0)
		return fd;
	int result = read_chunk(fd, image->hash_kind, chunk, ret_data);
	close(fd);
	return result;
}
