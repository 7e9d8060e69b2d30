/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/format/image_key.c: keys, and what a manifest-mac may hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "tests/unit/suite.h"

static char directory[64];
static int place = -1;

static void begin(void)
{
	strcpy(directory, "/tmp/ckt-key-XXXXXX");
	MUST(mkdtemp(directory) != NULL, 1);
	place = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void end(void)
{
	char command[160];
	close(place);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	IS(system(command), 0);
}

static const char *path_of(const char *name)
{
	static char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static void put(const char *name, const void *data, size_t size, mode_t mode)
{
	int fd = openat(place, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(write(fd, data, size), (long long)size);
	fchmod(fd, mode);
	close(fd);
}

static void test_files(void)
{
	struct ckt_image_key made, read, raw;
	char message[512] = "", text[2 * CKT_IMAGE_KEY_ID + 1];
	struct stat st;
	begin();
	IS(ckt_image_key_make(path_of("key"), &made), 0);
	IS(ckt_image_key_make(path_of("key"), &read), -EEXIST);
	IS(stat(path_of("key"), &st), 0);
	IS(st.st_mode & 0777, 0600);
	IS(st.st_size, 65);
	IS(ckt_image_key_read(path_of("key"), &read, message, sizeof message), 0);
	YES(memcmp(&made, &read, sizeof made) == 0);
	put("raw", made.bytes, sizeof made.bytes, 0400);
	IS(ckt_image_key_read(path_of("raw"), &raw, message, sizeof message), 0);
	YES(memcmp(&made, &raw, sizeof made) == 0);
	/* The id is of the key alone, and is not its beginning. */
	ckt_image_key_text(made.id, text);
	IS(strlen(text), 2 * CKT_IMAGE_KEY_ID);
	YES(memcmp(made.id, made.bytes, sizeof made.id) != 0);
	static const mode_t open_modes[] = {0640, 0604, 0620, 0602, 0610, 0601};
	for (size_t i = 0; i < COUNT(open_modes); i++) {
		put("open", made.bytes, sizeof made.bytes, open_modes[i]);
		IS(ckt_image_key_read(path_of("open"), &raw, message, sizeof message), -EPERM);
		HAS(message, "others may read it");
		unlink(path_of("open"));
	}
	IS(ckt_image_key_read(path_of(""), &raw, message, sizeof message), -EPERM);
	IS(mkfifo(path_of("pipe"), 0600), 0);
	IS(ckt_image_key_read(path_of("pipe"), &raw, message, sizeof message), -EPERM);
	IS(ckt_image_key_read(path_of("none"), &raw, message, sizeof message), -ENOENT);
	end();
}

static void test_texts(void)
{
	static const char digits[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n";
	struct ckt_image_key key;
	char message[512], text[sizeof digits];
	begin();
	for (size_t size = 0; size < sizeof digits; size++) {
		bool good = size == 32 || size == 64 || size == 65;
		put("key", digits, size, 0600);
		IS(ckt_image_key_read(path_of("key"), &key, message, sizeof message),
			good ? 0 : -EBADMSG);
	}
	for (size_t at = 0; at < 65; at++) {
		strcpy(text, digits);
		text[at] = 'g';
		put("key", text, 65, 0600);
		IS(ckt_image_key_read(path_of("key"), &key, message, sizeof message), -EBADMSG);
		HAS(message, "cricketctl image-key make FILE");
	}
	end();
}

static void test_several(void)
{
	struct ckt_image_keys keys = {0};
	struct ckt_image_key key;
	char message[512];
	begin();
	IS(ckt_image_key_make(path_of("key"), &key), 0);
	for (unsigned i = 0; i < CKT_IMAGE_KEYS_MAX; i++)
		IS(ckt_image_keys_add(&keys, path_of("key"), message, sizeof message), 0);
	IS(ckt_image_keys_add(&keys, path_of("key"), message, sizeof message), -E2BIG);
	keys.count = 0;
	IS(ckt_image_keys_add(&keys, path_of("none"), message, sizeof message), -ENOENT);
	IS(keys.count, 0);
	end();
}

static const uint8_t hash[CKT_IMAGE_HASH] = {1, 2, 3};

static ckt_image_mac mac_by(const struct ckt_image_key *key)
{
	ckt_image_mac mac = {.session = (char *)"0123456789ab", .uid = 7, .made = 99};
	memcpy(mac.manifest, hash, sizeof hash);
	IS(ckt_image_mac_make(key, &mac), 0);
	return mac;
}

static struct ckt_image_keys keys_of(uint8_t first, uint8_t second)
{
	struct ckt_image_keys keys = {.count = 2};
	ckt_image_key_init(&keys.keys[0], (const uint8_t[CKT_IMAGE_KEY_BYTES]){first});
	ckt_image_key_init(&keys.keys[1], (const uint8_t[CKT_IMAGE_KEY_BYTES]){second});
	return keys;
}

static int check(const void *data, size_t size, const struct ckt_image_keys *keys)
{
	struct ckt_image_macs macs;
	const ckt_image_mac *mac;
	char message[512] = "";
	int result = ckt_image_macs_decode(data, size, &macs);
	if (!result)
		result = ckt_image_macs_check(&macs, keys, hash, &mac, message, sizeof message);
	return result;
}

/* Every bit of it counts, and every truncation is refused. */
static void test_changed(void)
{
	struct ckt_image_keys keys = keys_of(1, 2);
	struct ckt_image_macs macs = {0};
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX];
	ckt_image_mac mac = mac_by(&keys.keys[0]);
	IS(ckt_image_macs_add(&macs, &mac), 0);
	int size = ckt_image_macs_encode(&macs, data);
	MUST(size > 0, 1);
	IS(check(data, (size_t)size, &keys), 0);
	for (int i = 0; i < size; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			data[i] ^= (uint8_t)(1u << bit);
			YES(check(data, (size_t)size, &keys) < 0);
			data[i] ^= (uint8_t)(1u << bit);
		}
	for (int i = 0; i < size; i++)
		IS(check(data, (size_t)i, &keys), -EBADMSG);
	data[size] = 0;
	IS(check(data, (size_t)size + 1, &keys), -EBADMSG);
	/* An older key reads; a stranger's does not, and another manifest is another one. */
	keys = keys_of(9, 1);
	IS(check(data, (size_t)size, &keys), 0);
	keys = keys_of(9, 8);
	IS(check(data, (size_t)size, &keys), -ENOKEY);
	keys.count = 0;
	IS(check(data, (size_t)size, &keys), -ENOKEY);
	/* A key that has the other's id and not its bytes. */
	keys = keys_of(9, 8);
	memcpy(keys.keys[0].id, mac.key, sizeof mac.key);
	IS(check(data, (size_t)size, &keys), -EBADMSG);
}

static void test_list(void)
{
	struct ckt_image_macs macs = {0}, back;
	uint8_t data[CKT_IMAGE_MAC_FILE_MAX], again[CKT_IMAGE_MAC_FILE_MAX];
	size_t size = 0;
	begin();
	for (uint8_t i = 0; i < CKT_IMAGE_MACS; i++) {
		struct ckt_image_keys keys = keys_of(i, 0);
		ckt_image_mac mac = mac_by(&keys.keys[0]);
		IS(ckt_image_macs_add(&macs, &mac), 0);
		/* A key has one. */
		IS(ckt_image_macs_add(&macs, &mac), 0);
		IS(macs.count, i + 1);
	}
	struct ckt_image_keys keys = keys_of(77, 0);
	ckt_image_mac mac = mac_by(&keys.keys[0]);
	IS(ckt_image_macs_add(&macs, &mac), -E2BIG);
	IS(ckt_image_macs_read(place, again, &size, &back), -ENOENT);
	IS(ckt_image_macs_write(place, &macs), 0);
	IS(ckt_image_macs_write(place, &macs), 0);
	IS(ckt_image_macs_read(place, again, &size, &back), 0);
	IS(back.count, CKT_IMAGE_MACS);
	int encoded = ckt_image_macs_encode(&back, data);
	YES(encoded > 0 && (size_t)encoded == size && memcmp(data, again, size) == 0);
	IS(access(path_of("manifest-mac-new"), F_OK), -1);
	/* No file, too large a file, and what is no file. */
	put("manifest-mac", again, 0, 0600);
	IS(ckt_image_macs_read(place, again, &size, &back), -EBADMSG);
	IS(truncate(path_of("manifest-mac"), CKT_IMAGE_MAC_FILE_MAX + 1), 0);
	IS(ckt_image_macs_read(place, again, &size, &back), -EBADMSG);
	unlink(path_of("manifest-mac"));
	IS(symlink("/etc/passwd", path_of("manifest-mac")), 0);
	IS(ckt_image_macs_read(place, again, &size, &back), -ELOOP);
	unlink(path_of("manifest-mac"));
	IS(mkfifo(path_of("manifest-mac"), 0600), 0);
	IS(ckt_image_macs_read(place, again, &size, &back), -EBADMSG);
	end();
}

UNIT_SUITE(image_key, {"files", test_files}, {"texts", test_texts}, {"several", test_several},
	{"changed", test_changed}, {"list", test_list})
