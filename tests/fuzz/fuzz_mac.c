/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what stands beside an image or is given for it: manifest-mac and key files
 * (checkpoint/format/image_key.c), and encrypted files (checkpoint/format/sealed_file.c).
 *
 * The first byte says which, the second which allocation fails; the rest is the file.  No MAC of a
 * key holds that the key did not make, and nothing is decrypted that was not encrypted with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "checkpoint/format/sealed_file.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 2, MACS = 0, KEY = 1, SEALED = 2, KINDS = 3, INPUT_MAX = 4096 };

static const uint8_t salt[CKT_SEALED_SALT] = {5};
static struct ckt_image_keys keys;
/* What the key made of its own. */
static uint8_t mac[CKT_IMAGE_MAC_FILE_MAX], sealed[256];
static size_t mac_size, sealed_size;

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	fuzz_insist(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file");
	return fd;
}

static void prepare(void)
{
	struct ckt_image_macs macs = {0};
	ckt_image_mac one = {.session = (char *)"0123456789ab", .uid = 1, .made = 2};
	if (keys.count)
		return;
	keys.count = 1;
	ckt_image_key_init(&keys.keys[0], (const uint8_t[CKT_IMAGE_KEY_BYTES]){1});
	fuzz_insist(!ckt_image_mac_make(&keys.keys[0], &one), "no MAC");
	fuzz_insist(!ckt_image_macs_add(&macs, &one), "no list");
	mac_size = (size_t)ckt_image_macs_encode(&macs, mac);
	int from = file_of((const uint8_t *)"plain", 5), to = file_of(NULL, 0);
	fuzz_insist(!ckt_sealed_write(&keys.keys[0], salt, "data-0", from, to), "no file");
	sealed_size = (size_t)pread(to, sealed, sizeof sealed, 0);
	close(from);
	close(to);
}

static void try_macs(const uint8_t *data, size_t size)
{
	struct ckt_image_macs macs;
	const ckt_image_mac *found;
	uint8_t again[CKT_IMAGE_MAC_FILE_MAX];
	char message[512] = "";
	if (ckt_image_macs_decode(data, size, &macs))
		return;
	fuzz_insist(macs.count && macs.count <= CKT_IMAGE_MACS, "a number of MACs");
	fuzz_insist(ckt_image_macs_encode(&macs, again) == (int)size && !memcmp(again, data, size),
		"MACs change when encoded again");
	int result = ckt_image_macs_check(&macs, &keys, NULL, &found, message, sizeof message);
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence");
	if (!result) {
		struct ckt_image_macs own;
		fuzz_insist(!ckt_image_macs_decode(mac, mac_size, &own), "the own MAC");
		fuzz_insist(!memcmp(found->mac, own.macs[0].mac, sizeof found->mac) &&
				!memcmp(found->manifest, own.macs[0].manifest,
					sizeof found->manifest) &&
				!strcmp(found->session, own.macs[0].session),
			"a MAC that the key did not make");
	}
	ckt_image_mac more = macs.macs[0];
	more.key[0] ^= 1;
	result = ckt_image_macs_add(&macs, &more);
	fuzz_insist(result == 0 || result == -E2BIG, "a further MAC");
}

static void try_key(uint8_t how, const uint8_t *data, size_t size)
{
	struct ckt_image_keys some = {.count = how & 16 ? CKT_IMAGE_KEYS_MAX : 0};
	char path[64], message[512] = "", text[2 * CKT_IMAGE_KEY_ID + 1];
	int fd = file_of(data, size);
	fchmod(fd, how & 32 ? 0644 : 0600);
	snprintf(path, sizeof path, how & 64 ? "/nonexistent" : "/proc/self/fd/%d", fd);
	int result = ckt_image_keys_add(&some, path, message, sizeof message);
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence");
	fuzz_insist(result || (!(how & (16 | 32 | 64)) && (size == 32 || size == 64 || size == 65)),
		"a key");
	if (!result)
		ckt_image_key_text(some.keys[0].id, text);
	close(fd);
}

static void try_sealed(uint8_t how, uint8_t fails, const uint8_t *data, size_t size)
{
	uint8_t found[CKT_SEALED_SALT] = {5}, plain[8];
	bool known = how & 16;
	char message[512] = "";
	int from = file_of(data, size), to = file_of(NULL, 0);
	ckt_sealed_is(from);
	fuzz_fail_allocation(fails);
	int result = ckt_sealed_read(&keys, how & 32 ? "data-1" : "data-0", from, to, found, &known,
		message, sizeof message);
	fuzz_fail_allocation(0);
	fuzz_insist((result != 0) == (*message != 0), "an error has a sentence");
	if (!result)
		fuzz_insist(size == sealed_size && !memcmp(data, sealed, size) &&
				pread(to, plain, sizeof plain, 0) == 5,
			"decrypted what was never encrypted");
	close(from);
	close(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD || size > INPUT_MAX)
		return 0;
	prepare();
	if (data[0] % KINDS == MACS)
		try_macs(data + HEAD, size - HEAD);
	else if (data[0] % KINDS == KEY)
		try_key(data[0], data + HEAD, size - HEAD);
	else
		try_sealed(data[0], data[1] & 7, data + HEAD, size - HEAD);
	return 0;
}

static void write_seed(const char *to, const char *name, uint8_t kind, uint8_t fails,
	const void *data, size_t size)
{
	uint8_t seed[INPUT_MAX] = {kind, fails};
	memcpy(seed + HEAD, data, size);
	fuzz_write_seed(to, name, seed, HEAD + size);
}

static void write_seeds(const char *to)
{
	static const char digits[] =
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
	uint8_t many[CKT_IMAGE_MAC_FILE_MAX];
	char name[32];
	prepare();
	write_seed(to, "mac", MACS, 0, mac, mac_size);
	write_seed(to, "mac-short", MACS, 0, mac, mac_size - 1);
	for (unsigned i = 0; i < mac_size; i += 13) {
		memcpy(many, mac, mac_size);
		many[i] ^= 1;
		snprintf(name, sizeof name, "mac-%u", i);
		write_seed(to, name, MACS, 0, many, mac_size);
	}
	for (unsigned i = 0; i <= CKT_IMAGE_MACS && (i + 1) * mac_size <= sizeof many; i++) {
		memcpy(many + i * mac_size, mac, mac_size);
		many[i * mac_size + 4] ^= (uint8_t)i;
		snprintf(name, sizeof name, "macs-%u", i);
		write_seed(to, name, MACS, 0, many, (i + 1) * mac_size);
	}
	/* Each is KEY modulo KINDS: a good one, too many, open to others, none. */
	static const uint8_t hows[] = {1, 16, 34, 64};
	for (unsigned i = 0; i < sizeof hows; i++) {
		snprintf(name, sizeof name, "key-%u", i);
		write_seed(to, name, hows[i], 0, digits, 65);
	}
	write_seed(to, "key-raw", KEY, 0, digits, 32);
	write_seed(to, "key-64", KEY, 0, digits, 64);
	write_seed(to, "key-wrong", KEY, 0, "g", 1);
	write_seed(to, "key-letters", KEY, 0,
		"g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 64);
	for (uint8_t fails = 0; fails < 3; fails++) {
		snprintf(name, sizeof name, "sealed-%u", fails);
		write_seed(to, name, SEALED, fails, sealed, sealed_size);
	}
	write_seed(to, "sealed-name", 32, 0, sealed, sealed_size);
	write_seed(to, "sealed-known", 17, 0, sealed, sealed_size);
	for (unsigned i = 0; i < sealed_size; i += 7) {
		memcpy(many, sealed, sealed_size);
		many[i] ^= 1;
		snprintf(name, sizeof name, "sealed-at-%u", i);
		write_seed(to, name, SEALED, 0, many, sealed_size);
	}
	write_seed(to, "sealed-short", SEALED, 0, sealed, sealed_size - 9);
	write_seed(to, "sealed-head", SEALED, 0, sealed, 10);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *to = getenv("CKT_FUZZ_SEEDS");
	(void)argc, (void)argv;
	if (!to)
		return 0;
	write_seeds(to);
	exit(0);
}
