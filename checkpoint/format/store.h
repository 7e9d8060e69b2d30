/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and reading images (image.x): files and checks, no driver.
 *
 * Threading: a writer belongs to one thread; reading chunks is thread-safe.  Errors: 0 or -errno
 * and a sentence in ret_message; -EBADMSG for an image that is damaged, -EPROTONOSUPPORT for one of
 * another major version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/broker.h"
#include "checkpoint/format/image.h"

/*
 * A place is where an image's files are: for processes with rights, a descriptor of its directory;
 * for workers, the socket of a broker (broker.h).  `directory` is its number in the chain, which
 * only a broker uses; file: as in a question to a broker.  Returns a descriptor, the caller's, or
 * -errno.
 */
int ckt_image_open(int place, enum ckt_broker_right right, unsigned directory, unsigned file);

/* Appends chunks to one data file. */
struct ckt_image_writer {
	int fd;
	unsigned file;
	uint64_t offset;
	bool compress;
	ckt_image_hash_kind hash_kind;
	void *zstd, *buffer;
	ckt_image_chunk *chunks; /* what was written */
	size_t count, room;
};

/* Makes data-FILE at the place, which must not have it. */
int ckt_image_writer_init(struct ckt_image_writer *writer, int place, unsigned file, bool compress);
/* The same with an open, empty file; duplicates fd. */
int ckt_image_writer_init_open(
	struct ckt_image_writer *writer, int fd, unsigned file, bool compress);
/*
 * Writes nothing for zeros.  size <= CKT_IMAGE_CHUNK.  hash: of the data, by the writer's
 * hash_kind; NULL: computed here.
 */
int ckt_image_writer_add(struct ckt_image_writer *writer, unsigned space, uint64_t address,
	const void *data, uint32_t size, const uint8_t hash[CKT_IMAGE_HASH]);
/* The hash of contents. */
void ckt_image_hash(ckt_image_hash_kind kind, const void *data, size_t size, char *ret_hash);
/* fsyncs. */
int ckt_image_writer_finish(struct ckt_image_writer *writer);
/* Frees; after an error too. */
void ckt_image_writer_fini(struct ckt_image_writer *writer);

/*
 * Encodes, checksums, writes and fsyncs the manifest, then the directory; behind a broker, the
 * directory's owner does the latter.
 */
int ckt_image_write(int place, const ckt_image *image, char *ret_message, size_t message_size);
/*
 * Reads and checks the manifest: magic, version, checksum, structure, size of the data files.  Free
 * with xdr_free(xdr_ckt_image).
 */
int ckt_image_read(int place, ckt_image *ret_image, char *ret_message, size_t message_size);
/* -EFBIG if the manifest is larger: whoever opens the files may have replaced it, or it grew. */
int ckt_image_read_within(int place, uint64_t max_bytes, ckt_image *ret_image, char *ret_message,
	size_t message_size);
/* The minor version that wrote it, without other checks; 0 if it cannot be read. */
unsigned ckt_image_minor(int place);
/*
 * An image whose files are open, as one in memory is: fds[0] is its manifest, fds[1 + N] data-N.
 * Such an image builds on no other. The descriptors stay the caller's.
 */
int ckt_image_write_open(
	int manifest_fd, const ckt_image *image, char *ret_message, size_t message_size);
int ckt_image_read_open(const int *fds, unsigned count, ckt_image *ret_image, char *ret_message,
	size_t message_size);
unsigned ckt_image_minor_open(int manifest_fd);
/* The size that a manifest gives for itself, or -errno. */
int64_t ckt_image_manifest_bytes_open(int manifest_fd);
int64_t ckt_image_manifest_bytes(int place, unsigned directory);
/*
 * The id of an image of a chain, by its directory's number at the broker.  Nothing else of the
 * manifest is checked but its form; -EFBIG if it is larger.
 */
int ckt_image_read_id(int place, unsigned directory, uint64_t max_bytes, char ret_id[CKT_IMAGE_ID]);

/* The bytes of a manifest. */
int ckt_image_encode(const ckt_image *image, uint8_t **ret_data, size_t *ret_size);
int ckt_image_decode(const uint8_t *data, size_t size, ckt_image *ret_image, char *ret_message,
	size_t message_size);

/*
 * The files of an image, those of its ancestors included, open.  Reading chunks is thread-safe.
 */
struct ckt_image_reader {
	const ckt_image *image; /* the caller's */
	int *fds;               /* by chunk.file */
	unsigned count;
};

/*
 * places[0] belongs to the image, places[1 + n] to image->ancestors[n] (as many as count says;
 * those that no chunk needs may be missing).  Checks their sizes against the manifest; chunk hashes
 * check the rest.
 */
int ckt_image_reader_init(struct ckt_image_reader *reader, const ckt_image *image,
	const int *places, unsigned count, char *ret_message, size_t message_size);
int ckt_image_reader_init_open(struct ckt_image_reader *reader, const ckt_image *image,
	const int *fds, unsigned count, char *ret_message, size_t message_size);
/* Reads one chunk's contents into data (chunk->size bytes) and checks its hash. */
int ckt_image_reader_chunk(
	const struct ckt_image_reader *reader, const ckt_image_chunk *chunk, void *ret_data);
/* The same, but the caller must check the hash. */
int ckt_image_reader_chunk_unchecked(
	const struct ckt_image_reader *reader, const ckt_image_chunk *chunk, void *ret_data);
void ckt_image_reader_fini(struct ckt_image_reader *reader);

/* The same for an image that builds on no other, by its directory alone. */
int ckt_image_chunk_read(
	int place, const ckt_image *image, const ckt_image_chunk *chunk, void *ret_data);
