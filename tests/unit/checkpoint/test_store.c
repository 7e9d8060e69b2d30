/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/format/store.c: the manifest as a file: header, versions, and directories that hold no
 * whole image.  What it holds: test_image.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "tests/unit/suite.h"

static char message[256];

static ckt_image small(void)
{
	static ckt_image_device device = {.name = "GPU", .major = 9, .total_bytes = 1 << 30};
	return (ckt_image){.session = "0123456789ab",
		.generation = 1,
		.program_name = "app",
		.client = "host",
		.build = "0.1",
		.owner_name = "",
		.owner_project = "",
		.window_base = 0x200000000000,
		.window_bytes = (uint64_t)4 << 40,
		.slice_bytes = (uint64_t)4 << 40,
		.devices = {1, &device}};
}

static uint32_t word(const uint8_t *data, size_t at)
{
	return (uint32_t)data[at] << 24 | (uint32_t)data[at + 1] << 16 |
		(uint32_t)data[at + 2] << 8 | data[at + 3];
}

/* The header's words, and what a change of each of them is told. */
static void test_header(void)
{
	ckt_image image = small(), back;
	uint8_t *data;
	size_t size;
	MUST(ckt_image_encode(&image, &data, &size), 0);
	IS(word(data, 0), CKT_IMAGE_MAGIC);
	IS(word(data, 4), CKT_IMAGE_MAJOR);
	IS(word(data, 8), CKT_IMAGE_MINOR);
	IS((uint64_t)word(data, 12) << 32 | word(data, 16), size - 20 - CKT_IMAGE_HASH);
	IS(ckt_image_decode(data, size, &back, message, sizeof message), 0);
	TEXT(back.program_name, "app");
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	static const struct {
		unsigned at;
		int result;
		const char *words;
	} table[] = {
		{0, -EBADMSG, "not a manifest"},
		{3, -EBADMSG, "not a manifest"},
		{7, -EPROTONOSUPPORT, "restore it with the Cricket version that wrote it"},
		{15, -EBADMSG, "truncated or too long"},
		{19, -EBADMSG, "truncated or too long"},
		{20, -EBADMSG, "checksum"},
		{51, -EBADMSG, "checksum"},
		{52, -EBADMSG, "checksum"},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		data[table[k].at] ^= 0x40;
		IS(ckt_image_decode(data, size, &back, message, sizeof message), table[k].result);
		HAS(message, table[k].words);
		data[table[k].at] ^= 0x40;
	}
	IS(ckt_image_decode(data, size - 1, &back, message, sizeof message), -EBADMSG);
	IS(ckt_image_decode(data, 10, &back, message, sizeof message), -EBADMSG);
	IS(ckt_image_decode(data, 0, &back, message, sizeof message), -EBADMSG);
	/* A minor version of tomorrow, or of yesterday with all that there is now: read. */
	for (int step = -1; step <= 1; step += 2) {
		data[11] = (uint8_t)(CKT_IMAGE_MINOR + step);
		IS(ckt_image_decode(data, size, &back, message, sizeof message), 0);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	}
	free(data);
	/* What the image says of itself must hold. */
	image.devices.devices_len = 0;
	MUST(ckt_image_encode(&image, &data, &size), 0);
	IS(ckt_image_decode(data, size, &back, message, sizeof message), -EBADMSG);
	HAS(message, "do not match its window");
	free(data);
	image = small();
	image.acked = 5;
	MUST(ckt_image_encode(&image, &data, &size), 0);
	IS(ckt_image_decode(data, size, &back, message, sizeof message), -EBADMSG);
	HAS(message, "more commands were acknowledged than executed");
	free(data);
}

static void test_directory(void)
{
	char directory[] = "/tmp/ckt-store-XXXXXX";
	ckt_image image = small(), back;
	memset(image.id, 7, sizeof image.id);
	MUST(mkdtemp(directory) != NULL, 1);
	int dir = open(directory, O_RDONLY | O_DIRECTORY);
	IS(ckt_image_minor(dir), 0);
	IS(ckt_image_read(dir, &back, message, sizeof message), -ENOENT);
	HAS(message, "holds no complete image");
	IS(ckt_image_write(dir, &image, message, sizeof message), 0);
	IS(ckt_image_minor(dir), CKT_IMAGE_MINOR);
	IS(ckt_image_read(dir, &back, message, sizeof message), 0);
	TEXT(back.session, "0123456789ab");
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	/* As large as was said, or larger. */
	uint64_t bytes_now = (uint64_t)ckt_image_manifest_bytes(dir, 0);
	IS(ckt_image_read_within(dir, bytes_now, &back, message, sizeof message), 0);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	IS(ckt_image_read_within(dir, bytes_now - 1, &back, message, sizeof message), -EFBIG);
	HAS(message, "File too large");
	/* Which one it is. */
	char id[CKT_IMAGE_ID];
	IS(ckt_image_read_id(dir, 0, bytes_now, id), 0);
	IS(memcmp(id, image.id, sizeof id), 0);
	IS(ckt_image_read_id(dir, 0, bytes_now - 1, id), -EFBIG);
	IS(ckt_image_read_id(-1, 0, bytes_now, id), -EBADF);
	/* Never over another one. */
	IS(ckt_image_write(dir, &image, message, sizeof message), -EEXIST);
	HAS(message, "cannot write the manifest: File exists");
	IS(unlinkat(dir, "manifest", 0), 0);
	/* No file, a link to one, nothing in it. */
	IS(mkdirat(dir, "manifest", 0700), 0);
	YES(ckt_image_read(dir, &back, message, sizeof message) < 0);
	IS(unlinkat(dir, "manifest", AT_REMOVEDIR), 0);
	IS(symlinkat("/etc/passwd", dir, "manifest"), 0);
	IS(ckt_image_read(dir, &back, message, sizeof message), -ELOOP);
	IS(ckt_image_minor(dir), 0);
	IS(unlinkat(dir, "manifest", 0), 0);
	close(openat(dir, "manifest", O_WRONLY | O_CREAT, 0600));
	IS(ckt_image_read(dir, &back, message, sizeof message), -EBADMSG);
	IS(ckt_image_minor(dir), 0);
	IS(unlinkat(dir, "manifest", 0), 0);
	/* A data file that the manifest names must be there, of its size. */
	u_quad_t bytes = 3;
	image.file_bytes.file_bytes_len = 1;
	image.file_bytes.file_bytes_val = &bytes;
	IS(ckt_image_write(dir, &image, message, sizeof message), 0);
	IS(ckt_image_read(dir, &back, message, sizeof message), -EBADMSG);
	HAS(message, "data-0 is missing or its size differs");
	int fd = openat(dir, "data-0", O_WRONLY | O_CREAT, 0600);
	IS(write(fd, "abc", 3), 3);
	IS(ckt_image_read(dir, &back, message, sizeof message), 0);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	IS(write(fd, "d", 1), 1);
	IS(ckt_image_read(dir, &back, message, sizeof message), -EBADMSG);
	close(fd);
	unlinkat(dir, "data-0", 0);
	unlinkat(dir, "manifest", 0);
	close(dir);
	IS(rmdir(directory), 0);
}

static void test_open(void)
{
	int fds[2] = {memfd_create("manifest", MFD_CLOEXEC), memfd_create("data", MFD_CLOEXEC)};
	u_quad_t bytes = 2;
	ckt_image image = small(), back;
	image.file_bytes.file_bytes_len = 1;
	image.file_bytes.file_bytes_val = &bytes;
	IS(ckt_image_minor_open(fds[0]), 0);
	IS(ckt_image_read_open(fds, 0, &back, message, sizeof message), -EBADF);
	IS(ckt_image_write_open(fds[0], &image, message, sizeof message), 0);
	IS(ckt_image_minor_open(fds[0]), CKT_IMAGE_MINOR);
	/* nothing in data-0 yet */
	IS(ckt_image_read_open(fds, 2, &back, message, sizeof message), -EBADMSG);
	IS(ftruncate(fds[1], 2), 0);
	IS(ckt_image_read_open(fds, 1, &back, message, sizeof message), -EBADMSG);
	/* Wherever the descriptor stands. */
	IS(lseek(fds[0], 5, SEEK_SET), 5);
	IS(ckt_image_read_open(fds, 2, &back, message, sizeof message), 0);
	TEXT(back.client, "host");
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	close(fds[0]);
	close(fds[1]);
}

UNIT_SUITE(checkpoint / format / store, {"header", test_header}, {"directory", test_directory},
	{"open", test_open})
