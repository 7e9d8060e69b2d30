/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/durable/sealed_chain.c: what a worker writes is encrypted, and comes back as it was, or by no key and not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "checkpoint/format/sealed_file.h"
#include "inside.h"
#include "server/daemon/durable/sealed_chain.h"

static const char text[] = "what the session holds";

static struct ckt_image_keys make_keys(uint8_t first)
{
	struct ckt_image_keys keys = {.count = 1};
	uint8_t bytes[CKT_IMAGE_KEY_BYTES] = {first};
	ckt_image_key_init(&keys.keys[0], bytes);
	return keys;
}

static int make_directory(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	mkdir(path, 0700);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* As a worker does. */
static void put(int broker, unsigned file, const char *contents)
{
	int fd = ckt_broker_open(broker, CKT_BROKER_MAKE, 0, file);
	CU_ASSERT_FATAL(fd >= 0);
	IS(write(fd, contents, strlen(contents)), (ssize_t)strlen(contents));
	close(fd);
}

static void write_image(const struct ckt_image_keys *keys, int to)
{
	struct ckt_sealed_image *image;
	struct ckt_broker *broker;
	int fd;
	MUST(ckt_sealed_image_start(&image, &broker, &fd), 0);
	put(fd, 0, text);
	put(fd, CKT_BROKER_MANIFEST, "a manifest");
	/* No file twice, none of another image, and none to read. */
	IS(ckt_broker_open(fd, CKT_BROKER_MAKE, 0, 0), -EEXIST);
	IS(ckt_broker_open(fd, CKT_BROKER_MAKE, 1, 1), -EPERM);
	IS(ckt_broker_open(fd, CKT_BROKER_READ, 0, 0), -EPERM);
	MUST(ckt_sealed_image_vouch(image, (const uint8_t *)"a sum", 5), 0);
	IS(ckt_sealed_image_vouch(image, (const uint8_t *)text, CKT_IMAGE_MAC_FILE_MAX + 1),
		-E2BIG);
	IS(ckt_sealed_image_bytes(image), 3 * 4096);
	IS(ckt_sealed_image_finish(image, NULL, to), -ENOKEY);
	MUST(ckt_sealed_image_finish(image, keys, to), 0);
	/* What comes now is in no image. */
	IS(ckt_broker_open(fd, CKT_BROKER_MAKE, 0, 1), -ESTALE);
	ckt_broker_stop(broker);
	ckt_sealed_image_unref(image);
	close(fd);
	ckt_sealed_image_unref(NULL);
}

/* What the broker gives for data-0 of the first image of two; or -errno. */
static int get(const int directories[2], const struct ckt_image_keys *keys, char ret_text[64])
{
	struct ckt_broker *broker;
	int fd;
	MUST(ckt_sealed_chain_serve(directories, 2, keys, &broker, &fd), 0);
	int manifest = ckt_broker_open(fd, CKT_BROKER_READ, 1, CKT_BROKER_MANIFEST);
	int file = ckt_broker_open(fd, CKT_BROKER_READ, 0, 0);
	ssize_t n = file < 0 ? file : read(file, ret_text, 63);
	if (n >= 0)
		ret_text[n] = 0;
	if (file >= 0)
		close(file);
	if (manifest >= 0)
		close(manifest);
	IS(ckt_broker_open(fd, CKT_BROKER_READ, 2, 0), -EPERM);
	ckt_broker_stop(broker);
	close(fd);
	return file < 0 ? file : 0;
}

static void test_sealed(void)
{
	struct ckt_image_keys keys = make_keys(1), other = make_keys(2), none = {.count = 0};
	int first = make_directory("sealed"), second = make_directory("plain");
	char back[64], message[CKT_MESSAGE_MAX];
	write_image(&keys, first);
	YES(ckt_sealed_image_is(first));
	for (unsigned i = 0; i < 3; i++) {
		const char *name = i == 0 ? "data-0" : i == 1 ? "manifest" : "manifest-mac";
		int file = openat(first, name, O_RDONLY | O_CLOEXEC);
		YES(ckt_sealed_is(file));
		close(file);
	}
	/* Beside it one that is not encrypted. */
	int file = openat(second, "data-0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	IS(write(file, "plain", 5), 5);
	close(file);
	NO(ckt_sealed_image_is(second));
	IS(get((int[2]){first, second}, &keys, back), 0);
	CU_ASSERT_STRING_EQUAL(back, text);
	IS(get((int[2]){second, first}, &keys, back), 0);
	CU_ASSERT_STRING_EQUAL(back, "plain");
	IS(get((int[2]){first, second}, &other, back), -ENOKEY);
	IS(get((int[2]){first, second}, &none, back), -ENOKEY);
	uint8_t salt[CKT_SEALED_SALT];
	bool known = false;
	IS(ckt_sealed_image_open(first, "manifest", NULL, salt, &known, message), -ENOKEY);
	YES(strstr(message, "is encrypted with key") != NULL);
	IS(ckt_sealed_image_open(first, "data-9", &keys, salt, &known, message), -ENOENT);
	/* A file of another image of the same key. */
	int third = make_directory("sealed-too");
	write_image(&keys, third);
	file = ckt_sealed_image_open(first, "manifest", &keys, salt, &known, message);
	YES(file >= 0);
	close(file);
	IS(ckt_sealed_image_open(third, "data-0", &keys, salt, &known, message), -EBADMSG);
	/* Changed; a link; a directory. */
	file = openat(first, "data-0", O_WRONLY | O_CLOEXEC);
	IS(pwrite(file, "?", 1, 60), 1);
	close(file);
	IS(get((int[2]){first, second}, &keys, back), -EBADMSG);
	IS(unlinkat(first, "data-0", 0), 0);
	IS(symlinkat("../plain/data-0", first, "data-0"), 0);
	IS(get((int[2]){first, second}, &keys, back), -ELOOP);
	IS(unlinkat(first, "data-0", 0), 0);
	IS(mkdirat(first, "data-0", 0700), 0);
	IS(get((int[2]){first, second}, &keys, back), -EPERM);
	close(first);
	close(second);
	close(third);
}

UNIT_SUITE(sealed_chain, {"sealed", test_sealed})
