/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/format/sealed_file.c: what is encrypted comes back, and nothing that was changed does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/format/sealed_file.h"
#include "tests/unit/suite.h"

enum { TAG_SIZE = 16, SEGMENT = CKT_SEALED_SEGMENT + TAG_SIZE };

static struct ckt_image_keys keys;
static const uint8_t salt[CKT_SEALED_SALT] = {1, 2, 3};

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	MUST(fd >= 0, 1);
	if (size)
		MUST(write(fd, data, size), (long long)size);
	return fd;
}

static uint8_t *contents(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *data = malloc((size_t)size + 1);
	MUST(pread(fd, data, (size_t)size, 0), (long long)size);
	*ret_size = (size_t)size;
	return data;
}

/* The sealed file of that plain text. */
static int seal(const uint8_t *data, size_t size, const char *name)
{
	int from = file_of(data, size), to = file_of(NULL, 0);
	keys.count = 1;
	ckt_image_key_init(&keys.keys[0], (const uint8_t[CKT_IMAGE_KEY_BYTES]){7});
	IS(ckt_sealed_write(&keys.keys[0], salt, name, from, to), 0);
	close(from);
	return to;
}

/* 0 if it is accepted; -EBADMSG where it is, but with other contents. */
static int open_sealed(int fd, const char *name, const uint8_t *data, size_t size)
{
	uint8_t found[CKT_SEALED_SALT] = {0};
	bool known = false;
	char message[512] = "";
	int to = file_of(NULL, 0);
	int result = ckt_sealed_read(&keys, name, fd, to, found, &known, message, sizeof message);
	YES((result != 0) == (*message != 0));
	if (!result) {
		size_t got;
		uint8_t *back = contents(to, &got);
		YES(got == size && memcmp(back, data, size) == 0);
		free(back);
	}
	close(to);
	return result;
}

static void test_sizes(void)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, CKT_SEALED_SEGMENT - 1, CKT_SEALED_SEGMENT,
		CKT_SEALED_SEGMENT + 1, 2 * CKT_SEALED_SEGMENT, 2 * CKT_SEALED_SEGMENT + 5};
	uint8_t *data = calloc(1, 3 * CKT_SEALED_SEGMENT);
	for (size_t i = 0; i < 3 * CKT_SEALED_SEGMENT; i++)
		data[i] = (uint8_t)(i * 31 >> 3);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		int fd = seal(data, sizes[i], "data-0");
		size_t size;
		uint8_t *sealed = contents(fd, &size);
		IS(size,
			CKT_SEALED_HEADER + sizes[i] +
				TAG_SIZE * (sizes[i] / CKT_SEALED_SEGMENT + 1));
		YES(ckt_sealed_is(fd));
		IS(open_sealed(fd, "data-0", data, sizes[i]), 0);
		/* No run of the plain text is in it. */
		if (sizes[i] > 64)
			YES(memmem(sealed, size, data + 16, 32) == NULL);
		free(sealed);
		close(fd);
	}
	free(data);
}

static void test_changed(void)
{
	uint8_t data[100];
	size_t size;
	memset(data, 0x55, sizeof data);
	int fd = seal(data, sizeof data, "manifest");
	uint8_t *sealed = contents(fd, &size);
	for (size_t i = 0; i < size; i++)
		for (unsigned bit = 0; bit < 8; bit += 3) {
			sealed[i] ^= (uint8_t)(1u << bit);
			int bad = file_of(sealed, size);
			YES(open_sealed(bad, "manifest", data, sizeof data) < 0);
			close(bad);
			sealed[i] ^= (uint8_t)(1u << bit);
		}
	for (size_t i = 0; i < size; i++) {
		int bad = file_of(sealed, i);
		IS(open_sealed(bad, "manifest", data, sizeof data), -EBADMSG);
		close(bad);
	}
	IS(open_sealed(fd, "data-0", data, sizeof data), -EBADMSG);
	keys.count = 0;
	IS(open_sealed(fd, "manifest", data, sizeof data), -ENOKEY);
	/* The id of that key, and other bytes. */
	keys.count = 1;
	keys.keys[0].bytes[0] ^= 1;
	IS(open_sealed(fd, "manifest", data, sizeof data), -EBADMSG);
	free(sealed);
	close(fd);
}

/* Whole segments that are left out, exchanged or repeated, and a file of another image. */
static void test_segments(void)
{
	size_t bytes = 2 * CKT_SEALED_SEGMENT + 10, size;
	uint8_t *data = calloc(1, bytes);
	int fd = seal(data, bytes, "data-0");
	uint8_t *sealed = contents(fd, &size), *other = malloc(size + SEGMENT);
	IS(open_sealed(fd, "data-0", data, bytes), 0);
	memcpy(other, sealed, CKT_SEALED_HEADER + SEGMENT);
	memcpy(other + CKT_SEALED_HEADER + SEGMENT,
		sealed + CKT_SEALED_HEADER + 2 * (size_t)SEGMENT, 10 + TAG_SIZE);
	int bad = file_of(other, size - SEGMENT);
	IS(open_sealed(bad, "data-0", data, bytes), -EBADMSG);
	close(bad);
	memcpy(other, sealed, size);
	memcpy(other + CKT_SEALED_HEADER, sealed + CKT_SEALED_HEADER + SEGMENT, SEGMENT);
	memcpy(other + CKT_SEALED_HEADER + SEGMENT, sealed + CKT_SEALED_HEADER, SEGMENT);
	bad = file_of(other, size);
	IS(open_sealed(bad, "data-0", data, bytes), -EBADMSG);
	close(bad);
	bad = file_of(sealed, CKT_SEALED_HEADER + 2 * (size_t)SEGMENT);
	IS(open_sealed(bad, "data-0", data, bytes), -EBADMSG);
	close(bad);
	uint8_t wrong[CKT_SEALED_SALT] = {9};
	bool known = true;
	char message[512];
	int to = file_of(NULL, 0);
	IS(ckt_sealed_read(&keys, "data-0", fd, to, wrong, &known, message, sizeof message),
		-EBADMSG);
	HAS(message, "data-0: it was changed since it was encrypted");
	close(to);
	free(other);
	free(sealed);
	free(data);
	close(fd);
}

UNIT_SUITE(
	sealed_file, {"sizes", test_sizes}, {"changed", test_changed}, {"segments", test_segments})
