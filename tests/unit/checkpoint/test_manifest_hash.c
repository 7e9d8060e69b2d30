/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/format/manifest_hash.c: no other manifest than the expected one is decoded, whatever
 * lies in its place by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "checkpoint/format/manifest_hash.h"
#include "checkpoint/format/store.h"
#include "tests/unit/suite.h"

static ckt_image_device device;

static ckt_image image_of(char id)
{
	ckt_image image = {.session = (char *)"0123456789ab",
		.program_name = (char *)"",
		.client = (char *)"",
		.build = (char *)"",
		.owner_name = (char *)"",
		.owner_project = (char *)""};
	device.name = (char *)"GPU";
	image.devices.devices_len = 1;
	image.devices.devices_val = &device;
	memset(image.id, id, sizeof image.id);
	return image;
}

static int hash_of(int place, uint8_t ret_hash[CKT_IMAGE_HASH])
{
	int fd = openat(place, "manifest", O_RDONLY | O_CLOEXEC);
	int result = ckt_image_file_hash(fd, ret_hash);
	close(fd);
	return result;
}

static int try_read(int place, char *ret_message, size_t size)
{
	ckt_image image = {0};
	int result = ckt_image_read(place, &image, ret_message, size);
	if (!result)
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	return result;
}

static void test_expected(void)
{
	char one[] = "/tmp/ckt-hash-XXXXXX", two[] = "/tmp/ckt-hash-XXXXXX", message[512],
	     command[160];
	uint8_t hash[CKT_IMAGE_HASH], said[CKT_IMAGE_HASH];
	MUST(mkdtemp(one) && mkdtemp(two), 1);
	int first = open(one, O_RDONLY | O_DIRECTORY), second = open(two, O_RDONLY | O_DIRECTORY);
	ckt_image image = image_of(1);
	MUST(ckt_image_write(first, &image, message, sizeof message), 0);
	IS(hash_of(first, hash), 0);
	/* Who wrote it knows it by its id. */
	YES(ckt_manifest_written_hash(image.id, said));
	YES(memcmp(hash, said, sizeof hash) == 0);
	image.generation = 9;
	MUST(ckt_image_write(second, &image, message, sizeof message), 0);
	IS(try_read(first, message, sizeof message), 0);
	ckt_manifest_expect(hash);
	IS(try_read(first, message, sizeof message), 0);
	IS(try_read(second, message, sizeof message), -EBADMSG);
	HAS(message, "the manifest was changed since its MAC was made");
	/* Exchanged after the check. */
	IS(renameat(second, "manifest", first, "manifest"), 0);
	IS(try_read(first, message, sizeof message), -EBADMSG);
	ckt_manifest_expect(NULL);
	IS(try_read(first, message, sizeof message), 0);
	close(first);
	close(second);
	snprintf(command, sizeof command, "rm -rf %s %s", one, two);
	IS(system(command), 0);
}

static void test_latest(void)
{
	uint8_t hash[CKT_IMAGE_HASH];
	char id[CKT_IMAGE_ID];
	for (char i = 1; i <= 9; i++) {
		memset(id, 100 + i, sizeof id);
		ckt_manifest_written(id, (const uint8_t *)id, sizeof id);
	}
	YES(ckt_manifest_written_hash(id, hash));
	memset(id, 102, sizeof id);
	YES(ckt_manifest_written_hash(id, hash));
	memset(id, 101, sizeof id);
	NO(ckt_manifest_written_hash(id, hash));
}

UNIT_SUITE(manifest_hash, {"expected", test_expected}, {"latest", test_latest})
