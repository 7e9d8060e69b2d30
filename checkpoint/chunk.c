/* Contents: data files of chunks with hashes, zeros left out.  See store.h. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "checkpoint/store.h"

enum { ZSTD_LEVEL = 1 };

static void hash(const void *data, size_t size, char *ret_hash)
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, CKT_IMAGE_HASH, (uint8_t *)ret_hash);
}

static bool all_zero(const uint8_t *data, size_t size)
{
	/* Compared with itself one byte on: the first byte decides, memcmp is as fast as memory. */
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

int ckt_image_writer_init(struct ckt_image_writer *writer, int dir_fd, unsigned file, bool compress)
{
	char name[32];
	*writer = (struct ckt_image_writer){.fd = -1, .file = file, .compress = compress};
	snprintf(name, sizeof name, "data-%u", file);
	if (compress) {
		writer->zstd = ZSTD_createCCtx();
		writer->buffer = malloc(CKT_IMAGE_CHUNK);
		if (!writer->zstd || !writer->buffer)
			return -ENOMEM;
	}
	writer->fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return writer->fd < 0 ? -errno : 0;
}

static int append(struct ckt_image_writer *writer, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(writer->fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
		writer->offset += (uint64_t)n;
	}
	return 0;
}

int ckt_image_writer_add(struct ckt_image_writer *writer, unsigned space, uint64_t address, const void *data, uint32_t size)
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
	ckt_image_chunk chunk = {.space = space, .address = address, .size = size, .file = writer->file, .offset = writer->offset, .stored = size};
	hash(data, size, chunk.hash);
	if (writer->compress) {
		size_t stored = ZSTD_compressCCtx(writer->zstd, writer->buffer, size - 1, data, size, ZSTD_LEVEL);
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
	while (size) {
		ssize_t n = pread(fd, data, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		data += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int ckt_image_chunk_read(int dir_fd, const ckt_image_chunk *chunk, void *ret_data)
{
	char name[32], sum[CKT_IMAGE_HASH];
	snprintf(name, sizeof name, "data-%u", chunk->file);
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	int result;
	if (chunk->encoding == CKT_IMAGE_ZSTD) {
		void *stored = malloc(chunk->stored + 1);
		result = stored ? read_all(fd, stored, chunk->stored, chunk->offset) : -ENOMEM;
		if (!result && ZSTD_decompress(ret_data, chunk->size, stored, chunk->stored) != chunk->size)
			result = -EBADMSG;
		free(stored);
	} else {
		result = read_all(fd, ret_data, chunk->size, chunk->offset);
	}
	close(fd);
	if (result)
		return result;
	hash(ret_data, chunk->size, sum);
	return memcmp(sum, chunk->hash, sizeof sum) ? -EBADMSG : 0;
}
