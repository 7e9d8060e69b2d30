/*
 * server/worker/image_save.c: writing a session as an image: every table says what the session has, contents are there and hashed, and
 * nothing counts that failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/store.h"
#include "server/worker/chain.h"
#include "tests/unit/worker/inside.h"

static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
			  ".visible .global .align 4 .u32 total = 77;\n.visible .entry nothing()\n{\n\tret;\n}\n";

static int fds[CKT_IMAGE_MEMORY_FILES];
static char message[CKT_MESSAGE_MAX];

static void files_new(void)
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		fds[i] = memfd_create("test", MFD_CLOEXEC);
	message[0] = 0;
}

static void files_close(void)
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		close(fds[i]);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
}

static int save(struct ckt_save *save)
{
	save->memory_fds = fds;
	return ckt_worker_save(&ckt_worker, save, message, sizeof message);
}

static ckt_image *read_image(void)
{
	ckt_image *image = calloc(1, sizeof *image);
	int result = ckt_image_read_open(fds, CKT_IMAGE_MEMORY_FILES, image, message, sizeof message);
	MUST(result, 0);
	return image;
}

static void image_free(ckt_image *image)
{
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)image);
	free(image);
}

/* A word of device memory as the image has it; -1 where no chunk holds it. */
static int64_t word(const ckt_image *image, uint64_t address)
{
	struct ckt_image_reader reader;
	int64_t value = -1;
	static uint8_t data[CKT_IMAGE_CHUNK];
	MUST(ckt_image_reader_init_open(&reader, image, fds, CKT_IMAGE_MEMORY_FILES, message, sizeof message), 0);
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *c = &image->chunks.chunks_val[i];
		uint32_t found;
		if (c->space || address < c->address || address - c->address >= c->size)
			continue;
		IS(ckt_image_reader_chunk(&reader, c, data), 0);
		memcpy(&found, data + (address - c->address), 4);
		value = found;
	}
	ckt_image_reader_fini(&reader);
	return value;
}

static void test_tables(void)
{
	struct ckt_save s = {.compress = true};
	struct ckt_object *module = inside_module(ID(MODULE, 41), ptx), *function;
	uint64_t memory = inside_memory(5 << 20, 3), small = inside_memory(4096, 0);
	MUST(ckt_stream_make(&ckt_worker, ID(STREAM, 41), CU_STREAM_NON_BLOCKING, -1), CUDA_SUCCESS);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 41), "nothing", &function), CUDA_SUCCESS);
	IS(ASK(event_create, .id = ID(EVENT, 41)), CUDA_SUCCESS);
	IS(ASK(event_create, .id = ID(EVENT, 42)), CUDA_SUCCESS);
	IS(ASK(event_record, .event = ID(EVENT, 41)), CUDA_SUCCESS);
	IS(ASK(pool_create, .id = ID(POOL, 41), .max_bytes = 12345678), CUDA_SUCCESS);
	ckt_module_note_seen(module, "total");
	inside_fill(memory + CKT_IMAGE_CHUNK, 0, CKT_IMAGE_CHUNK);
	ckt_driver.cuCtxSynchronize();
	files_new();
	snprintf(ckt_worker.program_name, sizeof ckt_worker.program_name, "program");
	MUST(save(&s), 0);
	ckt_image *image = read_image();
	TEXT(image->session, "0123456789ab");
	TEXT(image->program_name, "program");
	IS(memcmp(image->id, s.image, sizeof s.image), 0);
	IS(image->window_base, CKT_WINDOW_BASE);
	IS(image->executed, atomic_load(&ckt_worker.replies.executed));
	IS(image->hash_kind, CKT_IMAGE_BLAKE3);
	IS(image->devices.devices_len, 2);
	IS(image->devices.devices_val[0].total_bytes, (uint64_t)4 << 30);
	unsigned blocks = 0;
	for (unsigned i = 0; i < image->devices.devices_val[0].blocks.blocks_len; i++) {
		const ckt_image_block *b = &image->devices.devices_val[0].blocks.blocks_val[i];
		blocks += (b->address == memory && b->size == 5 << 20) || (b->address == small && b->size == 4096);
	}
	IS(blocks, 2);
	IS(image->journal.journal_len, ckt_worker.journal_count);
	IS(image->streams.streams_len, 1);
	IS(image->streams.streams_val[0].id, ID(STREAM, 41));
	IS(image->streams.streams_val[0].flags, CU_STREAM_NON_BLOCKING);
	IS(image->streams.streams_val[0].priority, -1);
	IS(image->events.events_len, 2);
	YES(image->events.events_val[0].recorded && image->events.events_val[0].timed && !image->events.events_val[1].recorded);
	IS(image->pools.pools_len, 3);	/* one of each device, and its own */
	IS(image->pools.pools_val[2].max_bytes, 12345678);
	const ckt_image_module *m = NULL;
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		m = image->modules.modules_val[i].id == module->id ? &image->modules.modules_val[i] : m;
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	IS(m->globals.globals_len, 1);
	TEXT(m->globals.globals_val[0].name, "total");
	YES(image->seen_known);
	IS(image->seen.seen_len, 1);
	IS(word(image, memory), 3);
	IS(word(image, memory + CKT_IMAGE_CHUNK), -1);	/* zeros are left out */
	IS(word(image, m->globals.globals_val[0].address), 77);
	YES(s.bytes > 0 && s.bytes < s.memory_bytes);
	IS(s.changed_bytes, s.memory_bytes);
	image_free(image);
	files_close();
	inside_free(small);
	inside_free(memory);
	ckt_module_unload(&ckt_worker, module);
	for (unsigned i = 0; i < 2; i++)
		ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, 41 + i)));
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 41)));
	IS(ASK(pool_destroy, .id = ID(POOL, 41)), CUDA_SUCCESS);
}

/* What a chain promises: only what changed since, and only behind the last one. */
static void test_incremental(void)
{
	uint64_t memory = inside_memory((uint64_t)8 << 20, 5);
	struct ckt_save whole = {.keep_hashes = true}, next = {.keep_hashes = true, .incremental = true};
	files_new();
	next.base = (const char *)whole.image;
	IS(save(&next), -ESTALE);
	HAS(message, "save a whole one");
	files_close();
	files_new();
	MUST(save(&whole), 0);
	ckt_image *image = read_image();
	YES(image->chain);
	IS(image->ancestors.ancestors_len, 0);
	image_free(image);
	YES(ckt_chain_continues((const char *)whole.image));
	files_close();
	inside_fill(memory + 3 * CKT_IMAGE_CHUNK, 6, 4);
	files_new();
	MUST(save(&next), 0);
	YES(next.changed_bytes >= CKT_IMAGE_CHUNK && next.changed_bytes < 3 * CKT_IMAGE_CHUNK);
	IS(next.memory_bytes, whole.memory_bytes);
	NO(ckt_chain_continues((const char *)whole.image));
	YES(ckt_chain_continues((const char *)next.image));
	files_close();
	/* One that is not to be built on ends the chain. */
	struct ckt_save last = {0};
	files_new();
	MUST(save(&last), 0);
	NO(ckt_chain_continues((const char *)last.image));
	files_close();
	inside_free(memory);
}

/* Told to fail at each step: no image, no chain, and the next one is good. */
static void test_faults(void)
{
	static const char *const points[] = {"fail:2", "fail:3", "fail:4"};
	uint64_t memory = inside_memory(4 << 20, 5);
	for (size_t i = 0; i < COUNT(points); i++) {
		struct ckt_save s = {.keep_hashes = true};
		ckt_image image = {0};
		files_new();
		setenv("CRICKET_FAULT", points[i], 1);
		IS(save(&s), -EIO);
		unsetenv("CRICKET_FAULT");
		YES(message[0] != 0);
		YES(ckt_image_read_open(fds, CKT_IMAGE_MEMORY_FILES, &image, message, sizeof message) != 0);
		NO(ckt_chain_continues((const char *)s.image));
		files_close();
	}
	struct ckt_save s = {0};
	files_new();
	IS(save(&s), 0);
	ckt_image *image = read_image();
	IS(word(image, memory), 5);
	image_free(image);
	files_close();
	/* A full disk: every data file refuses to grow. */
	files_new();
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++) {
		close(fds[i]);
		fds[i] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		IS(fcntl(fds[i], F_ADD_SEALS, F_SEAL_GROW), 0);
	}
	IS(save(&s), -EPERM);
	HAS(message, "writing the image");
	files_close();
	inside_free(memory);
	ckt_chain_break();
}

/* The manifest, cut anywhere or one bit another, is no image. */
static void test_damaged(void)
{
	struct ckt_save s = {0};
	unsigned taken = 0;
	files_new();
	MUST(save(&s), 0);
	off_t size = lseek(fds[0], 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)size);
	IS(pread(fds[0], bytes, (size_t)size, 0), size);
	for (off_t cut = 0; cut < size; cut++) {
		ckt_image image = {0};
		if (!ckt_image_decode(bytes, (size_t)cut, &image, message, sizeof message)) {
			xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
			taken++;
		}
	}
	for (off_t at = 0; at < size; at += 1 + at / 64) {
		ckt_image image = {0};
		bytes[at] ^= 0x10;
		if (!ckt_image_decode(bytes, (size_t)size, &image, message, sizeof message)) {
			xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
			/* A newer minor version is no harm. */
			taken += !(at >= 8 && at < 12);
		}
		bytes[at] ^= 0x10;
	}
	IS(taken, 0);
	free(bytes);
	files_close();
}

UNIT_SUITE(image_save, {"tables", test_tables}, {"incremental", test_incremental}, {"faults", test_faults}, {"damaged", test_damaged})
