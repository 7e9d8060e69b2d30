/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest: coding, checksum, structure.  See store.h. */
#include "checkpoint/format/store.h"
#include "checkpoint/format/manifest_hash.h"
#include "rpc/array_extent.h"
#include "base/bounds.h"
#include "base/file_io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(CKT_IMAGE_DEVICES == CKT_DEVICES_MAX, "an image has the devices of a session");

/* Everything of fixed size before the body. */
enum { HEADER_SIZE = 3 * 4 + 8 + CKT_IMAGE_HASH };
/*
 * An empty list takes four bytes; this is more than enough for all that minor versions have
 * appended.
 */
enum { APPENDED_BYTES_MAX = 256 };
enum { SEALED_MAGIC = 0x436b4531 }; /* sealed_file.c */
#define MANIFEST_BYTES_MAX ((uint64_t)4 << 30)

static void checksum(const uint8_t *data, size_t size, char *ret_hash)
{
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, data);
	sha256_digest(&sha, CKT_IMAGE_HASH, (uint8_t *)ret_hash);
}

int ckt_image_encode(const ckt_image *image, uint8_t **ret_data, size_t *ret_size)
{
	size_t body = xdr_sizeof((xdrproc_t)xdr_ckt_image, (void *)image);
	if (!body || body > MANIFEST_BYTES_MAX)
		return -EFBIG;
	uint8_t *data = malloc(HEADER_SIZE + body);
	if (!data)
		return -ENOMEM;
	XDR xdr;
	xdrmem_create(&xdr, (char *)data + HEADER_SIZE, (u_int)body, XDR_ENCODE);
	bool good = xdr_ckt_image(&xdr, (ckt_image *)image);
	if (good) {
		ckt_image_header header = {.magic = CKT_IMAGE_MAGIC,
			.major = CKT_IMAGE_MAJOR,
			.minor = CKT_IMAGE_MINOR,
			.body_bytes = body};
		checksum(data + HEADER_SIZE, body, header.checksum);
		xdrmem_create(&xdr, (char *)data, HEADER_SIZE, XDR_ENCODE);
		good = xdr_ckt_image_header(&xdr, &header);
	}
	if (!good) {
		free(data);
		return -EMSGSIZE;
	}
	*ret_data = data;
	*ret_size = HEADER_SIZE + body;
	return 0;
}

/* ---- Structure: what the reader relies on beyond XDR's own bounds */

static int damaged(char *ret_message, size_t message_size, const char *what)
{
	snprintf(ret_message, message_size, "the image is damaged: %s", what);
	return -EBADMSG;
}

static int check_devices(const ckt_image *image, char *ret_message, size_t message_size)
{
	if (!image->devices.devices_len ||
		image->slice_bytes > image->window_bytes / image->devices.devices_len)
		return damaged(ret_message, message_size, "its devices do not match its window");
	for (unsigned d = 0; d < image->devices.devices_len; d++) {
		const ckt_image_device *device = &image->devices.devices_val[d];
		uint64_t base = image->window_base + d * image->slice_bytes;
		for (unsigned i = 0; i < device->extents.extents_len; i++) {
			const ckt_image_extent *e = &device->extents.extents_val[i];
			uint64_t at = e->address - base;
			if (e->address < base || at > image->slice_bytes ||
				e->size > image->slice_bytes - at || e->use > 1)
				return damaged(
					ret_message, message_size, "memory is outside its window");
		}
	}
	return 0;
}

static uint64_t array_bytes(const ckt_image *image, uint64_t index)
{
	const ckt_image_array *array = &image->arrays.arrays_val[index];
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = array->width,
		.Height = array->height,
		.Depth = array->depth,
		.Format = (CUarray_format)array->format,
		.NumChannels = array->channels,
		.Flags = array->flags};
	return array->live ? ckt_array_total_bytes(&desc, array->levels) : 0;
}

static int check_arrays(const ckt_image *image, char *ret_message, size_t message_size)
{
	for (unsigned i = 0; i < image->arrays.arrays_len; i++)
		if (image->arrays.arrays_val[i].live && !array_bytes(image, i))
			return damaged(ret_message, message_size, "an array has size 0");
	return 0;
}

/* What is wrong with the place of a chunk in its file; NULL: nothing. */
static const char *file_fault(const ckt_image *image, const ckt_image_chunk *chunk)
{
	unsigned own = image->file_bytes.file_bytes_len;
	if (chunk->file >= own && chunk->file - own >= image->elsewhere.elsewhere_len)
		return "a chunk names a file that does not exist";
	uint64_t file = chunk->file < own ? image->file_bytes.file_bytes_val[chunk->file]
					  : image->elsewhere.elsewhere_val[chunk->file - own].bytes;
	if (chunk->offset > file || chunk->stored > file - chunk->offset)
		return "a chunk extends past the end of its file";
	return NULL;
}

/* What is wrong with the place that a chunk's bytes have in the session; NULL: nothing. */
static const char *space_fault(const ckt_image *image, const ckt_image_chunk *chunk)
{
	unsigned blobs = image->blobs.blobs_len;
	uint64_t bytes = 0;
	if (!chunk->space)
		return NULL;
	if (chunk->space <= blobs)
		bytes = image->blobs.blobs_val[chunk->space - 1].received;
	else if (chunk->space - blobs - 1 < image->arrays.arrays_len)
		bytes = array_bytes(image, chunk->space - blobs - 1);
	if (chunk->address <= bytes && chunk->size <= bytes - chunk->address)
		return NULL;
	return chunk->space <= blobs ? "a chunk extends outside its blob"
				     : "a chunk belongs to no blob and no array";
}

static int check_chunks(const ckt_image *image, char *ret_message, size_t message_size)
{
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		if (chunk->size == 0 || chunk->size > CKT_IMAGE_CHUNK ||
			chunk->stored > chunk->size ||
			(chunk->encoding == CKT_IMAGE_RAW && chunk->stored != chunk->size))
			return damaged(ret_message, message_size,
				"a chunk has an invalid size or position");
		const char *fault = file_fault(image, chunk);
		if (!fault)
			fault = space_fault(image, chunk);
		if (fault)
			return damaged(ret_message, message_size, fault);
	}
	return 0;
}

static int check_lists(const ckt_image *image, char *ret_message, size_t message_size)
{
	for (unsigned i = 0; i < image->elsewhere.elsewhere_len; i++)
		if (image->elsewhere.elsewhere_val[i].ancestor >= image->ancestors.ancestors_len ||
			image->elsewhere.elsewhere_val[i].file >= CKT_IMAGE_FILES)
			return damaged(ret_message, message_size,
				"it builds on an image that it does not name");
	for (unsigned i = 0; i < image->blobs.blobs_len; i++)
		if (image->blobs.blobs_val[i].received > image->blobs.blobs_val[i].size)
			return damaged(
				ret_message, message_size, "a blob holds more than its size");
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		if (image->modules.modules_val[i].option_keys.option_keys_len !=
			image->modules.modules_val[i].option_values.option_values_len)
			return damaged(
				ret_message, message_size, "a module's options are incomplete");
	return 0;
}

static int check_sequence(const ckt_image *image, char *ret_message, size_t message_size)
{
	uint64_t last = image->acked;
	if (image->acked > image->executed)
		return damaged(
			ret_message, message_size, "more commands were acknowledged than executed");
	for (unsigned i = 0; i < image->replies.replies_len; i++) {
		uint64_t seq = image->replies.replies_val[i].seq;
		if (seq <= last || seq > image->executed)
			return damaged(
				ret_message, message_size, "stored replies are out of order");
		last = seq;
	}
	return 0;
}

/* Reads the header, and compares it with the body behind it. */
static int read_header(const uint8_t *data, size_t size, ckt_image_header *ret_header,
	char *ret_message, size_t message_size)
{
	XDR xdr;
	char sum[CKT_IMAGE_HASH];
	xdrmem_create(
		&xdr, (char *)data, size < HEADER_SIZE ? (u_int)size : HEADER_SIZE, XDR_DECODE);
	bool decoded = xdr_ckt_image_header(&xdr, ret_header);
	if (decoded && ret_header->magic == SEALED_MAGIC) {
		snprintf(ret_message, message_size,
			"the image is encrypted: decrypt it with 'cricketctl image decrypt DIR NEW "
			"--image-key FILE'");
		return -EBADMSG;
	}
	if (!decoded || ret_header->magic != CKT_IMAGE_MAGIC)
		return damaged(ret_message, message_size, "not a manifest of an image");
	if (ret_header->major != CKT_IMAGE_MAJOR) {
		snprintf(ret_message, message_size,
			"the image has version %u.%u, but this Cricket reads %d.x: "
			"restore it with the Cricket version that wrote it",
			ret_header->major, ret_header->minor, CKT_IMAGE_MAJOR);
		return -EPROTONOSUPPORT;
	}
	if (ret_header->body_bytes != size - HEADER_SIZE)
		return damaged(ret_message, message_size, "the manifest is truncated or too long");
	checksum(data + HEADER_SIZE, ret_header->body_bytes, sum);
	if (memcmp(sum, ret_header->checksum, sizeof sum))
		return damaged(ret_message, message_size, "the manifest's checksum is wrong");
	return 0;
}

/* On failure *ret_image holds what was decoded. */
static int read_body(const uint8_t *body, const ckt_image_header *header, ckt_image *ret_image,
	char *ret_message, size_t message_size)
{
	XDR xdr;
	/*
	 * An older minor version did not know some lists: zeros after its end decode as empty
	 * lists.
	 */
	size_t padding = header->minor < CKT_IMAGE_MINOR ? APPENDED_BYTES_MAX : 0;
	uint8_t *padded = padding ? calloc(1, header->body_bytes + padding) : NULL;
	if (padding && !padded)
		return -ENOMEM;
	if (padded)
		memcpy(padded, body, header->body_bytes);
	xdrmem_create(&xdr, padded ? (char *)padded : (char *)body,
		(u_int)(header->body_bytes + padding), XDR_DECODE);
	bool decoded = xdr_ckt_image(&xdr, ret_image);
	/* A later minor version may have appended fields. */
	bool whole = xdr_getpos(&xdr) == header->body_bytes || header->minor > CKT_IMAGE_MINOR ||
		(padding && xdr_getpos(&xdr) > header->body_bytes);
	free(padded);
	return decoded && whole
		? 0
		: damaged(ret_message, message_size, "the manifest cannot be decoded");
}

int ckt_image_decode(const uint8_t *data, size_t size, ckt_image *ret_image, char *ret_message,
	size_t message_size)
{
	static int (*const checks[])(const ckt_image *, char *, size_t) = {
		check_devices, check_arrays, check_chunks, check_lists, check_sequence};
	ckt_image_header header;
	ckt_image image = {0};
	int result = read_header(data, size, &header, ret_message, message_size);
	if (result)
		return result;
	result = read_body(data + HEADER_SIZE, &header, &image, ret_message, message_size);
	for (size_t i = 0; i < sizeof checks / sizeof *checks && !result; i++)
		result = checks[i](&image, ret_message, message_size);
	if (result)
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	else
		*ret_image = image;
	return result;
}

/* ---- Files */

int ckt_image_open(int place, enum ckt_broker_right right, unsigned directory, unsigned file)
{
	char name[32] = "manifest";
	if (ckt_broker_is(place))
		return ckt_broker_open(place, right, directory, file);
	if (file != CKT_BROKER_MANIFEST)
		snprintf(name, sizeof name, "data-%u", file);
	int fd = right == CKT_BROKER_MAKE
		? openat(place, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)
		: openat(place, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int write_manifest(int fd, const ckt_image *image)
{
	uint8_t *data;
	size_t size;
	int result = ckt_image_encode(image, &data, &size);
	if (result)
		return result;
	result = ckt_write_all(fd, data, size);
	if (!result && fsync(fd))
		result = -errno;
	if (!result)
		ckt_manifest_written(image->id, data, size);
	free(data);
	return result;
}

static int wrote(int result, char *ret_message, size_t message_size)
{
	if (result)
		snprintf(ret_message, message_size, "cannot write the manifest: %s",
			strerror(-result));
	return result;
}

int ckt_image_write(int place, const ckt_image *image, char *ret_message, size_t message_size)
{
	int fd = ckt_image_open(place, CKT_BROKER_MAKE, 0, CKT_BROKER_MANIFEST);
	int result = fd < 0 ? fd : write_manifest(fd, image);
	if (fd >= 0)
		close(fd);
	if (!result && !ckt_broker_is(place) && fsync(place))
		result = -errno;
	return wrote(result, ret_message, message_size);
}

int ckt_image_write_open(
	int manifest_fd, const ckt_image *image, char *ret_message, size_t message_size)
{
	return wrote(write_manifest(manifest_fd, image), ret_message, message_size);
}

/* The whole file, whatever the descriptor's offset. */
static int read_file(int fd, uint64_t max_bytes, uint8_t **ret_data, size_t *ret_size)
{
	struct stat st;
	int result = fstat(fd, &st)                ? -errno
		: !S_ISREG(st.st_mode)             ? -EINVAL
		: (uint64_t)st.st_size > max_bytes ? -EFBIG
						   : 0;
	uint8_t *data = result ? NULL : malloc((size_t)st.st_size + 1);
	size_t have = 0;
	if (!result && !data)
		result = -ENOMEM;
	while (!result && have < (size_t)st.st_size) {
		ssize_t n = pread(fd, data + have, (size_t)st.st_size - have, (off_t)have);
		if (n > 0)
			have += (size_t)n;
		else if (n == 0)
			break;
		else if (errno != EINTR)
			result = -errno;
	}
	if (result) {
		free(data);
		return result;
	}
	*ret_data = data;
	*ret_size = have;
	return 0;
}

static int read_manifest(
	int fd, uint64_t max_bytes, ckt_image *ret_image, char *ret_message, size_t message_size)
{
	uint8_t *data = NULL;
	size_t size = 0;
	int result = fd < 0 ? fd : read_file(fd, max_bytes, &data, &size);
	if (result) {
		snprintf(ret_message, message_size,
			"the directory holds no complete image: manifest: %s", strerror(-result));
		return result;
	}
	/* The same words as of ckt_image_macs_check: somebody was faster than the one that checked. */
	result = ckt_manifest_is_expected(data, size)
		? ckt_image_decode(data, size, ret_image, ret_message, message_size)
		: damaged(ret_message, message_size,
			  "the manifest was changed since its MAC was made");
	free(data);
	return result;
}

static bool has_size(const struct stat *st, uint64_t bytes)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == bytes;
}

static int wrong_file(ckt_image *image, unsigned file, char *ret_message, size_t message_size)
{
	snprintf(ret_message, message_size,
		"the image is damaged: data-%u is missing or its size differs from the "
		"manifest's",
		file);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)image);
	return -EBADMSG;
}

static bool file_has_size(int place, unsigned file, uint64_t bytes)
{
	struct stat st;
	int fd = ckt_image_open(place, CKT_BROKER_READ, 0, file);
	bool good = fd >= 0 && fstat(fd, &st) == 0 && has_size(&st, bytes);
	if (fd >= 0)
		close(fd);
	return good;
}

int ckt_image_read(int place, ckt_image *ret_image, char *ret_message, size_t message_size)
{
	return ckt_image_read_within(
		place, MANIFEST_BYTES_MAX, ret_image, ret_message, message_size);
}

int ckt_image_read_within(
	int place, uint64_t max_bytes, ckt_image *ret_image, char *ret_message, size_t message_size)
{
	int fd = ckt_image_open(place, CKT_BROKER_READ, 0, CKT_BROKER_MANIFEST);
	int result =
		read_manifest(fd, max_bytes < MANIFEST_BYTES_MAX ? max_bytes : MANIFEST_BYTES_MAX,
			ret_image, ret_message, message_size);
	if (fd >= 0)
		close(fd);
	for (unsigned i = 0; !result && i < ret_image->file_bytes.file_bytes_len; i++)
		if (!file_has_size(place, i, ret_image->file_bytes.file_bytes_val[i]))
			result = wrong_file(ret_image, i, ret_message, message_size);
	return result;
}

int ckt_image_read_open(const int *fds, unsigned count, ckt_image *ret_image, char *ret_message,
	size_t message_size)
{
	int result = read_manifest(
		count ? fds[0] : -EBADF, MANIFEST_BYTES_MAX, ret_image, ret_message, message_size);
	for (unsigned i = 0; !result && i < ret_image->file_bytes.file_bytes_len; i++) {
		struct stat st;
		if (1 + i >= count || fstat(fds[1 + i], &st) ||
			!has_size(&st, ret_image->file_bytes.file_bytes_val[i]))
			result = wrong_file(ret_image, i, ret_message, message_size);
	}
	return result;
}

unsigned ckt_image_minor_open(int manifest_fd)
{
	uint32_t words[3] = {0};
	bool whole = pread(manifest_fd, words, sizeof words, 0) == sizeof words &&
		ntohl(words[0]) == CKT_IMAGE_MAGIC;
	return whole ? ntohl(words[2]) : 0;
}

unsigned ckt_image_minor(int place)
{
	int fd = ckt_image_open(place, CKT_BROKER_READ, 0, CKT_BROKER_MANIFEST);
	if (fd < 0)
		return 0;
	unsigned minor = ckt_image_minor_open(fd);
	close(fd);
	return minor;
}

int64_t ckt_image_manifest_bytes_open(int manifest_fd)
{
	struct stat st;
	return fstat(manifest_fd, &st) ? -errno : st.st_size;
}

int64_t ckt_image_manifest_bytes(int place, unsigned directory)
{
	int fd = ckt_image_open(place, CKT_BROKER_READ, directory, CKT_BROKER_MANIFEST);
	if (fd < 0)
		return fd;
	int64_t bytes = ckt_image_manifest_bytes_open(fd);
	close(fd);
	return bytes;
}

int ckt_image_read_id(int place, unsigned directory, uint64_t max_bytes, char ret_id[CKT_IMAGE_ID])
{
	char message[256];
	uint8_t *data = NULL;
	size_t size = 0;
	ckt_image image;
	int fd = ckt_image_open(place, CKT_BROKER_READ, directory, CKT_BROKER_MANIFEST);
	int result = fd < 0 ? fd : read_file(fd, max_bytes, &data, &size);
	if (fd >= 0)
		close(fd);
	if (!result)
		result = ckt_image_decode(data, size, &image, message, sizeof message);
	free(data);
	if (result)
		return result;
	memcpy(ret_id, image.id, CKT_IMAGE_ID);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return 0;
}
