/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/image.c: images on this host: shown, verified, compared and flattened; damaged ones refused.
 */
#include <fcntl.h>
#include <jansson.h>
#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "ctl/command.h"
#include "ctl/subcommands.h"
#include "inside.h"

/* With a block of memory whose contents are that byte. */
static void make(const char *path, uint8_t id, uint8_t contents)
{
	static char data[4096];
	char message[256] = "";
	struct ckt_image_writer writer = {.fd = -1};
	ckt_image image;
	image_make(path, id, "");
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(ckt_image_read(fd, &image, message, sizeof message), 0);
	ckt_image_block block = {.address = image.window_base, .size = 4096},
			*no_blocks = image.devices.devices_val[0].blocks.blocks_val;
	memset(data, contents, sizeof data);
	MUST(ckt_image_writer_init(&writer, fd, 0, false), 0);
	writer.hash_kind = image.hash_kind;
	IS(ckt_image_writer_add(&writer, 0, block.address, data, sizeof data, NULL), 0);
	IS(ckt_image_writer_finish(&writer), 0);
	u_quad_t bytes = writer.offset;
	ckt_image changed = image;
	changed.file_bytes.file_bytes_len = 1;
	changed.file_bytes.file_bytes_val = &bytes;
	changed.chunks.chunks_len = (u_int)writer.count;
	changed.chunks.chunks_val = writer.chunks;
	changed.devices.devices_val[0].blocks.blocks_len = 1;
	changed.devices.devices_val[0].blocks.blocks_val = &block;
	IS(unlinkat(fd, "manifest", 0), 0); /* one is never written over */
	IS(ckt_image_write(fd, &changed, message, sizeof message), 0);
	changed.devices.devices_val[0].blocks.blocks_len = 0;
	changed.devices.devices_val[0].blocks.blocks_val = no_blocks;
	ckt_image_writer_fini(&writer);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	close(fd);
}

static json_int_t number(const char *name)
{
	json_t *json = json_loads(out, 0, NULL);
	json_int_t value = json_is_integer(json_object_get(json, name))
		? json_integer_value(json_object_get(json, name))
		: -1;
	json_decref(json);
	return value;
}

static void test_usage(void)
{
	static const char *const words[][4] = {{"look"}, {""}, {"show"}, {"show", "a", "b"},
		{"verify"}, {"diff", "a"}, {"flatten", "a"}, {"flatten", "a", "b", "c"},
		{"list", "a"}, {"remove"}};
	for (size_t i = 0; i < COUNT(words); i++) {
		IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, words[i][0], words[i][1],
			   words[i][2], words[i][3], NULL),
			CKT_EXIT_USAGE);
		HAS(err, "image show DIR, image verify DIR");
	}
	static const char *const verbs[] = {"show", "verify"};
	for (size_t i = 0; i < COUNT(verbs); i++)
		IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, verbs[i], "/nonexistent/image",
			   NULL),
			CKT_EXIT_REFUSED);
}

static void test_look(void)
{
	make(path_in("one"), 'a', 1);
	make(path_in("two"), 'b', 2);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "show", path_in("one"), NULL),
		CKT_EXIT_DONE);
	HAS(out, "image       61616161616161616161616161616161");
	HAS(out, "session     0123456789ab");
	HAS(out, "device      GPU");
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "show", path_in("one"), NULL),
		CKT_EXIT_DONE);
	IS(number("memory_bytes"), 4096);
	IS(number("contents_bytes"), 4096);
	IS(number("older_bytes"), 0);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "diff", path_in("one"),
		   path_in("two"), NULL),
		CKT_EXIT_DONE);
	IS(number("changed_chunks"), 1);
	IS(number("new_chunks"), 0);
	IS(number("gone_chunks"), 0);
	IS(number("bytes"), 4096);
	image_make(path_in("empty"), 'c', "");
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "diff", path_in("one"),
		   path_in("empty"), NULL),
		CKT_EXIT_DONE);
	IS(number("gone_chunks"), 1);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "diff", path_in("empty"),
		   path_in("one"), NULL),
		CKT_EXIT_DONE);
	IS(number("new_chunks"), 1);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "diff", path_in("one"),
		   path_in("one"), NULL),
		CKT_EXIT_DONE);
	IS(number("bytes"), 0);
}

static void test_verify(void)
{
	char byte;
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "verify", path_in("one"), NULL),
		CKT_EXIT_DONE);
	HAS(out, "is undamaged: 1 chunks");
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "flatten", path_in("one"), path_in("flat"),
		   NULL),
		CKT_EXIT_DONE);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "diff", path_in("one"),
		   path_in("flat"), NULL),
		CKT_EXIT_DONE);
	IS(number("bytes"), 0); /* the same contents */
	/* A bit in the contents. */
	int fd = open(path_in("one/data-0"), O_RDWR);
	MUST(pread(fd, &byte, 1, 100), 1);
	byte ^= 1;
	IS(pwrite(fd, &byte, 1, 100), 1);
	close(fd);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "verify", path_in("one"), NULL),
		CKT_EXIT_REFUSED);
	HAS(err, "are damaged");
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.json = true}, "verify", path_in("one"), NULL),
		CKT_EXIT_REFUSED);
	IS(number("damaged"), 1);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "flatten", path_in("one"), path_in("bad"),
		   NULL),
		CKT_EXIT_REFUSED);
	NO(exists(path_in("bad"))); /* nothing half-made stays */
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "verify", path_in("flat"), NULL),
		CKT_EXIT_DONE);
}

UNIT_SUITE(image, {"usage", test_usage}, {"look", test_look}, {"verify", test_verify})
