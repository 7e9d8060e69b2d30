/* SPDX-License-Identifier: Apache-2.0 */
/* The image: round trip, every truncation, every flipped byte, contents. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/store.h"

static char message[512];

/* Something of everything. */
static void make(ckt_image *image)
{
	static ckt_image_extent extents[] = {
		{0x200000000000, 2 << 20, 1}, {0x200000200000, 6 << 20, 0}};
	static ckt_image_block blocks[] = {{0x200000000000, 100, 5}, {0x200000200000, 5 << 20, 5}};
	static ckt_image_device device = {.name = "Cricket Soft GPU",
		.major = 12,
		.total_bytes = 1 << 30,
		.extents = {2, extents},
		.blocks = {2, blocks}};
	static ckt_image_reply replies[] = {
		{.seq = 7, .proc = 60, .body = {3, "abc"}}, {.seq = 9, .proc = 61}};
	static ckt_image_blob blobs[] = {
		{.size = 1000, .received = 1000}, {.size = 1000, .received = 10}};
	static ckt_image_journal journal[] = {{.kind = 1, .id = 3}, {.kind = 2, .id = 3}};
	static ckt_image_limit limits[] = {{1, 1024}};
	static ckt_image_context contexts[] = {{.id = 5, .primary = 1, .limits = {1, limits}}};
	static ckt_image_stream streams[] = {{8, 5, 1, -1}};
	static ckt_image_event events[] = {
		{.id = 9, .context = 5, .recorded = 1, .timed = 1, .milliseconds = 1.5f}};
	static ckt_image_global globals[] = {{"counter", 0x7000, 4}};
	static u_int keys[] = {7};
	static u_quad_t values[] = {3};
	static ckt_image_module modules[] = {{.id = 3,
		.context = 5,
		.option_keys = {1, keys},
		.option_values = {1, values},
		.globals = {1, globals}}};
	static ckt_image_attribute attributes[] = {{8, 65536}};
	static ckt_image_function functions[] = {
		{.id = 4, .module = 3, .name = "kernel", .attributes = {1, attributes}}};
	static u_quad_t files[] = {4096};
	static ckt_image_chunk chunks[] = {
		{.address = 0x200000000000, .size = 4000, .offset = 96, .stored = 4000},
		{.space = 1,
			.address = 900,
			.size = 100,
			.offset = 0,
			.stored = 90,
			.encoding = CKT_IMAGE_ZSTD}};
	static ckt_image_pool_block pool_blocks[] = {{0x200000200000, 1}};
	static ckt_image_pool pools[] = {{.id = 11,
		.reuse = 7,
		.release_threshold = 1 << 20,
		.used_high = 9,
		.blocks = {1, pool_blocks}}};
	static ckt_image_reservation reservations[] = {{0x200000800000, 4 << 20}};
	static ckt_image_physical physicals[] = {
		{.id = 12, .size = 2 << 20, .contents = 0x200000800000}};
	static ckt_image_mapping mappings[] = {{0x200000800000, 2 << 20, 0, 12, 3}};
	static ckt_image_ancestor ancestors[] = {{.id = "fifteen letters"}};
	static ckt_image_file elsewhere[] = {{.ancestor = 0, .file = 3, .bytes = 5}};
	static u_quad_t disabled[] = {6};
	static ckt_image_graph graphs[] = {{.id = 13,
		.context = 5,
		.total = 5,
		.data = {5, "nodes"},
		.disabled = {1, disabled}}};
	static ckt_image_seen seen[] = {{3, "counter"}};
	*image = (ckt_image){.session = "0123456789ab",
		.generation = 3,
		.program_name = "app",
		.owner_name = "token:alice",
		.owner_project = "vision",
		.client = "host",
		.build = "0.1",
		.executed = 10,
		.acked = 5,
		.deferred = 700,
		.replies = {2, replies},
		.window_base = 0x200000000000,
		.window_bytes = (uint64_t)4 << 40,
		.slice_bytes = (uint64_t)4 << 40,
		.devices = {1, &device},
		.blobs = {2, blobs},
		.journal = {2, journal},
		.contexts = {1, contexts},
		.streams = {1, streams},
		.events = {1, events},
		.modules = {1, modules},
		.functions = {1, functions},
		.file_bytes = {1, files},
		.chunks = {2, chunks},
		.pools = {1, pools},
		.reservations = {1, reservations},
		.physicals = {1, physicals},
		.mappings = {1, mappings},
		.id = "sixteen letters",
		.hash_kind = CKT_IMAGE_BLAKE3,
		.ancestors = {1, ancestors},
		.elsewhere = {1, elsewhere},
		.chain = true,
		.graphs = {1, graphs},
		.seen_known = true,
		.seen = {1, seen}};
}

static int decode(const uint8_t *data, size_t size, ckt_image *ret)
{
	/* In memory of its very size, so that a sanitizer sees a read behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	int result = ckt_image_decode(copy, size, ret, message, sizeof message);
	free(copy);
	return result;
}

static void test_round_trip(void)
{
	ckt_image image, back = {0};
	uint8_t *data, *again;
	size_t size, again_size;
	make(&image);
	CU_ASSERT_EQUAL_FATAL(ckt_image_encode(&image, &data, &size), 0);
	CU_ASSERT_EQUAL_FATAL(decode(data, size, &back), 0);
	CU_ASSERT_STRING_EQUAL(back.modules.modules_val[0].globals.globals_val[0].name, "counter");
	CU_ASSERT_EQUAL(back.replies.replies_val[1].seq, 9);
	CU_ASSERT_EQUAL_FATAL(ckt_image_encode(&back, &again, &again_size), 0);
	CU_ASSERT_TRUE(again_size == size && !memcmp(again, data, size));
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
	free(again);
	/* Every truncation, something behind, every flipped bit in turn. */
	for (size_t cut = 0; cut < size; cut++)
		CU_ASSERT_EQUAL(decode(data, cut, &back), -EBADMSG);
	uint8_t *longer = calloc(size + 4, 1);
	memcpy(longer, data, size);
	CU_ASSERT_EQUAL(decode(longer, size + 4, &back), -EBADMSG);
	free(longer);
	for (size_t at = 0; at < size; at++) {
		data[at] ^= (uint8_t)(1 << at % 8);
		int result = decode(data, size, &back);
		/*
		 * The minor version alone may be another: later writers add what we need not know.
		 */
		bool minor = at >= 8 && at < 12;
		CU_ASSERT_TRUE(minor ? result == 0 : result != 0);
		if (!result)
			xdr_free((xdrproc_t)xdr_ckt_image, (char *)&back);
		data[at] ^= (uint8_t)(1 << at % 8);
	}
	data[7] = 2;
	CU_ASSERT_EQUAL(decode(data, size, &back), -EPROTONOSUPPORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "version 2."));
	free(data);
}

/* Well-formed and checksummed, but without sense. */
static void refused(ckt_image *image)
{
	ckt_image back = {0};
	uint8_t *data;
	size_t size;
	CU_ASSERT_EQUAL_FATAL(ckt_image_encode(image, &data, &size), 0);
	CU_ASSERT_EQUAL(decode(data, size, &back), -EBADMSG);
	free(data);
}

static void test_structure(void)
{
	ckt_image image;
	make(&image);
	image.chunks.chunks_val[0].offset = 97; /* behind the end of its file */
	refused(&image);
	image.chunks.chunks_val[0].offset = 96;
	image.chunks.chunks_val[0].file = 1;
	refused(&image);
	image.chunks.chunks_val[0].file = 0;
	image.chunks.chunks_val[0].size = CKT_IMAGE_CHUNK + 1;
	refused(&image);
	image.chunks.chunks_val[0].size = 4000;
	image.chunks.chunks_val[1].address = 901; /* outside its blob */
	refused(&image);
	image.chunks.chunks_val[1].address = 900;
	image.chunks.chunks_val[1].space = 3;
	refused(&image);
	image.chunks.chunks_val[1].space = 1;
	image.devices.devices_val[0].extents.extents_val[1].address = 0x100000000000;
	refused(&image);
	image.devices.devices_val[0].extents.extents_val[1].address = 0x200000200000;
	image.devices.devices_val[0].extents.extents_val[1].size = UINT64_MAX;
	refused(&image);
	image.devices.devices_val[0].extents.extents_val[1].size = 6 << 20;
	image.acked = 11;
	refused(&image);
	image.acked = 8; /* a stored reply was acknowledged */
	refused(&image);
	image.acked = 5;
	image.modules.modules_val[0].option_keys.option_keys_len = 0;
	refused(&image);
	image.modules.modules_val[0].option_keys.option_keys_len = 1;
	image.elsewhere.elsewhere_val[0].ancestor = 1;
	refused(&image);
	image.elsewhere.elsewhere_val[0].ancestor = 0;
	image.slice_bytes++;
	refused(&image);
}

static void files(bool compress)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	int dir = open(directory, O_RDONLY | O_DIRECTORY);
	struct ckt_image_writer writer;
	uint8_t *zero = calloc(CKT_IMAGE_CHUNK, 1), *noise = malloc(CKT_IMAGE_CHUNK),
		*text = malloc(5000), *back = malloc(CKT_IMAGE_CHUNK);
	for (unsigned i = 0; i < CKT_IMAGE_CHUNK; i++)
		noise[i] = (uint8_t)rand();
	memset(text, 'a', 5000);
	CU_ASSERT_EQUAL_FATAL(ckt_image_writer_init(&writer, dir, 0, compress), 0);
	CU_ASSERT_EQUAL(ckt_image_writer_add(&writer, 0, 0x1000, zero, CKT_IMAGE_CHUNK, NULL), 0);
	CU_ASSERT_EQUAL(ckt_image_writer_add(&writer, 0, 0x2000, noise, CKT_IMAGE_CHUNK, NULL), 0);
	CU_ASSERT_EQUAL(ckt_image_writer_add(&writer, 0, 0x3000, text, 5000, NULL), 0);
	zero[CKT_IMAGE_CHUNK - 1] = 1;
	CU_ASSERT_EQUAL(ckt_image_writer_add(&writer, 0, 0x4000, zero, CKT_IMAGE_CHUNK, NULL), 0);
	CU_ASSERT_EQUAL(writer.count, 3);
	CU_ASSERT_EQUAL(ckt_image_writer_finish(&writer), 0);
	u_quad_t written = writer.offset;
	ckt_image contents = {.hash_kind = writer.hash_kind, .file_bytes = {1, &written}};
	CU_ASSERT_EQUAL(writer.chunks[1].encoding, compress ? CKT_IMAGE_ZSTD : CKT_IMAGE_RAW);
	CU_ASSERT_TRUE(!compress || writer.chunks[1].stored < 1000);
	CU_ASSERT_EQUAL(ckt_image_chunk_read(dir, &contents, &writer.chunks[0], back), 0);
	CU_ASSERT_EQUAL(memcmp(back, noise, CKT_IMAGE_CHUNK), 0);
	CU_ASSERT_EQUAL(ckt_image_chunk_read(dir, &contents, &writer.chunks[1], back), 0);
	CU_ASSERT_EQUAL(memcmp(back, text, 5000), 0);
	CU_ASSERT_EQUAL(ckt_image_chunk_read(dir, &contents, &writer.chunks[2], back), 0);
	CU_ASSERT_EQUAL(memcmp(back, zero, CKT_IMAGE_CHUNK), 0);
	/* One wrong byte, wherever it lies. */
	int fd = openat(dir, "data-0", O_RDWR);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t at = writer.chunks[i].offset + writer.chunks[i].stored / 2;
		uint8_t byte;
		CU_ASSERT_EQUAL(pread(fd, &byte, 1, (off_t)at), 1);
		byte ^= 4;
		CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, (off_t)at), 1);
		CU_ASSERT_EQUAL(
			ckt_image_chunk_read(dir, &contents, &writer.chunks[i], back), -EBADMSG);
	}
	/*
	 * The whole: the manifest says how long the files are, and there is one image a directory.
	 */
	ckt_image image, read = {0};
	make(&image);
	struct stat st;
	fstat(fd, &st);
	u_quad_t bytes = (u_quad_t)st.st_size;
	image.file_bytes.file_bytes_val = &bytes;
	image.chunks.chunks_len = 0;
	CU_ASSERT_EQUAL(ckt_image_read(dir, &read, message, sizeof message), -ENOENT);
	CU_ASSERT_EQUAL(ckt_image_write(dir, &image, message, sizeof message), 0);
	CU_ASSERT_EQUAL(ckt_image_write(dir, &image, message, sizeof message), -EEXIST);
	CU_ASSERT_EQUAL(fstatat(dir, "manifest", &st, 0), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	CU_ASSERT_EQUAL(ckt_image_read(dir, &read, message, sizeof message), 0);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&read);
	CU_ASSERT_EQUAL(ftruncate(fd, (off_t)bytes - 1), 0);
	CU_ASSERT_EQUAL(ckt_image_read(dir, &read, message, sizeof message), -EBADMSG);
	close(fd);
	ckt_image_writer_fini(&writer);
	unlinkat(dir, "data-0", 0);
	unlinkat(dir, "manifest", 0);
	close(dir);
	CU_ASSERT_EQUAL(rmdir(directory), 0);
	free(zero);
	free(noise);
	free(text);
	free(back);
}

static void test_files(void)
{
	files(false);
}

static void test_compressed(void)
{
	files(true);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("image", NULL, NULL);
	CU_add_test(suite, "round trip", test_round_trip);
	CU_add_test(suite, "structure", test_structure);
	CU_add_test(suite, "files", test_files);
	CU_add_test(suite, "compressed", test_compressed);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
