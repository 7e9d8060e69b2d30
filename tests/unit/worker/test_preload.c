/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions taken ahead: what of the journal is left, and which contents are there already. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/preload.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

enum {
	LOAD = CKT_JOURNAL_MODULE_LOAD,
	STREAMS = CKT_JOURNAL_STREAMS,
	LIMIT = CKT_JOURNAL_LIMIT,
	ARRAY = CKT_JOURNAL_ARRAY_CREATE
};

static void replayed(const ckt_image_journal *then, unsigned then_count,
	const ckt_image_journal *now, unsigned now_count, int result, uint64_t left)
{
	ckt_image before = {.journal = {then_count, (ckt_image_journal *)then}},
		  image = {.journal = {now_count, (ckt_image_journal *)now}};
	ckt_image_journal rest = {0};
	ckt_preload_done(&before);
	IS(ckt_preload_replayed(&image, &rest), result);
	IS(rest.id, left);
	ckt_preload_fini();
}

static void test_journal(void)
{
	ckt_image_journal then[] = {
		{.kind = LOAD, .id = 1}, {.kind = STREAMS, .id = 2, .context = 9}};
	ckt_image_journal now[] = {{.kind = LOAD, .id = 1},
		{.kind = STREAMS, .id = 2, .context = 9}, {.kind = LOAD, .id = 5}};
	NO(ckt_preload_active());
	replayed(NULL, 0, NULL, 0, 0, 0);
	replayed(NULL, 0, now, 3, 0, 1); /* all of it is left */
	replayed(then, 2, now, 2, 2, 0);
	replayed(then, 2, now, 3, 2, 5);
	replayed(then, 2, now, 1, -ESTALE, 0); /* shorter than it was: another session's */
	/* The last entry has grown: what came to it is left. */
	now[1].id = 7;
	replayed(then, 2, now, 3, 1, 5);
	now[1].id = 1;
	replayed(then, 2, now, 3, -ESTALE, 0); /* shrunk */
	now[1].id = 2;
	now[0].id = 3;
	replayed(then, 2, now, 3, -ESTALE, 0); /* not the last one, and not of a kind that grows */
	now[0].id = 1;
	static const size_t fields[] = {offsetof(ckt_image_journal, kind),
		offsetof(ckt_image_journal, context), offsetof(ckt_image_journal, hash),
		offsetof(ckt_image_journal, flags), offsetof(ckt_image_journal, device)};
	for (size_t i = 0; i < COUNT(fields); i++) {
		((uint8_t *)&now[1])[fields[i]] ^= 1;
		replayed(then, 2, now, 3, -ESTALE, 0);
		((uint8_t *)&now[1])[fields[i]] ^= 1;
	}
	/* A limit is what it was set to last. */
	then[1] = (ckt_image_journal){.kind = LIMIT, .id = 4096};
	now[1] = (ckt_image_journal){.kind = LIMIT, .id = 1024};
	replayed(then, 2, now, 2, 1, 1024);
	then[1] = (ckt_image_journal){.kind = ARRAY, .id = 1};
	now[1] = (ckt_image_journal){.kind = ARRAY, .id = 2};
	replayed(then, 2, now, 2, -ESTALE, 0);
}

/* ---- Memory */

enum { CHUNKS_MAX = 8 };

static struct {
	ckt_image_extent extents[3];
	ckt_image_device device;
	ckt_image_chunk chunks[CHUNKS_MAX];
	ckt_image image;
} made;

static uint64_t base(void)
{
	return (ckt_worker.devices[0].memory.base + ckt_worker.slice_size / 2) / CKT_MEMORY_EXTENT *
		CKT_MEMORY_EXTENT;
}

/*
 * Extents from their sizes in chunks, one behind the other with a gap; chunks by their number in
 * the first extent and a hash.
 */
static ckt_image *make(
	const unsigned *sizes, unsigned count, const unsigned (*chunks)[2], unsigned chunk_count)
{
	memset(&made, 0, sizeof made);
	for (unsigned i = 0; i < count; i++)
		made.extents[i] =
			(ckt_image_extent){.address = base() + (uint64_t)i * 64 * CKT_IMAGE_CHUNK,
				.size = (uint64_t)sizes[i] * CKT_IMAGE_CHUNK};
	for (unsigned i = 0; i < chunk_count; i++) {
		made.chunks[i] = (ckt_image_chunk){
			.address = base() + (uint64_t)chunks[i][0] * CKT_IMAGE_CHUNK,
			.size = CKT_IMAGE_CHUNK};
		memset(made.chunks[i].hash, (int)chunks[i][1], CKT_IMAGE_HASH);
	}
	made.device = (ckt_image_device){.extents = {count, made.extents}};
	made.image =
		(ckt_image){.devices = {1, &made.device}, .chunks = {chunk_count, made.chunks}};
	return &made.image;
}

static bool is_mapped(uint64_t address)
{
	uint32_t word;
	return ckt_driver.cuMemcpyDtoH_v2(&word, address, 4) == CUDA_SUCCESS;
}

static void test_memory(void)
{
	static const unsigned one[] = {3}, two[] = {3, 1}, none[] = {0};
	static const unsigned first[][2] = {{0, 1}, {1, 2}}, second[][2] = {{0, 1}, {1, 9}, {2, 3}},
			      third[][2] = {{0, 1}}, twice[][2] = {{0, 1}, {0, 1}},
			      outside[][2] = {{200, 1}};
	bool skip[CHUNKS_MAX] = {true, true};
	int error = 7;
	ckt_preload_fini();
	IS(ckt_preload_memory(&ckt_worker, make(one, 1, first, 2), false, skip, &error), 0);
	IS(error, CUDA_SUCCESS);
	NO(skip[0] || skip[1]); /* nothing was there */
	YES(is_mapped(base() + 2 * CKT_IMAGE_CHUNK));
	IS(inside_word(base()), 0);
	inside_fill(base(), 1, CKT_IMAGE_CHUNK);
	inside_fill(base() + CKT_IMAGE_CHUNK, 2, CKT_IMAGE_CHUNK);
	ckt_preload_done(&made.image);
	YES(ckt_preload_active());
	/*
	 * The same contents stay, others come, an extent is new, chunks of no extent wait for the
	 * last one.
	 */
	ckt_image *image = make(two, 2, second, 3);
	made.chunks[3] = (ckt_image_chunk){.space = 1, .address = base(), .size = 5};
	image->chunks.chunks_len = 4;
	IS(ckt_preload_memory(&ckt_worker, image, false, skip, &error), 0);
	YES(skip[0] && !skip[1] && !skip[2] && skip[3]);
	IS(inside_word(base()), 1);
	IS(inside_word(base() + 64 * CKT_IMAGE_CHUNK), 0);
	inside_fill(base() + 2 * CKT_IMAGE_CHUNK, 3, CKT_IMAGE_CHUNK);
	ckt_preload_done(image);
	/* What became zeros is cleared; the second extent goes. */
	image = make(one, 1, third, 1);
	made.chunks[1] = (ckt_image_chunk){.space = 1, .address = base(), .size = 5};
	image->chunks.chunks_len = 2;
	IS(ckt_preload_memory(&ckt_worker, image, true, skip, &error), 0);
	YES(skip[0] && !skip[1]); /* the last one leaves nothing */
	IS(inside_word(base()), 1);
	IS(inside_word(base() + CKT_IMAGE_CHUNK), 0);
	IS(inside_word(base() + 2 * CKT_IMAGE_CHUNK), 0);
	NO(is_mapped(base() + 64 * CKT_IMAGE_CHUNK));
	ckt_preload_done(image);
	/* Damaged ones. */
	IS(ckt_preload_memory(&ckt_worker, make(one, 1, twice, 2), false, skip, &error), -EBADMSG);
	image = make(one, 1, third, 1);
	made.chunks[0].size -= 4;
	IS(ckt_preload_memory(&ckt_worker, image, false, skip, &error), -EBADMSG);
	image = make(one, 1, third, 1);
	made.chunks[0].address += 512; /* inside of an extent, but at no piece's beginning */
	IS(ckt_preload_memory(&ckt_worker, image, false, skip, &error), -EBADMSG);
	/* a variable of a module, say */
	IS(ckt_preload_memory(&ckt_worker, make(one, 1, outside, 1), false, skip, &error), 0);
	ckt_preload_done(&made.image);
	/* Extents that no session has. */
	make(one, 1, third, 0);
	made.extents[0].address += 4096;
	IS(ckt_preload_memory(&ckt_worker, &made.image, false, skip, &error), -EIO);
	IS(error, CUDA_ERROR_INVALID_VALUE);
	ckt_preload_done(make(none, 0, third, 0));
	make(one, 1, third, 0);
	made.extents[0].size = (uint64_t)6 << 30;
	IS(ckt_preload_memory(&ckt_worker, &made.image, false, skip, &error), -EIO);
	IS(error, CUDA_ERROR_OUT_OF_MEMORY);
	ckt_preload_fini();
	NO(ckt_preload_active());
	ckt_preload_fini();
	ckt_memory_trim(&ckt_worker.devices[0].memory);
	NO(is_mapped(base()));
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
}

/* Memory of the program's own, variables and arrays: by whose they are, not by where they lie. */
static void test_objects(void)
{
	enum { PHYSICAL = 0, VARIABLE = 1, ARRAY_CHUNK = 2 };
	uint64_t id = ID(PHYSICAL, 230), module = ID(MODULE, 230), array = ID(ARRAY, 230),
		 handle = 0, cursor = 0;
	uint64_t variable = inside_memory(4096, 9); /* stands for a module's */
	ckt_image_physical physical = {.id = id, .size = CKT_IMAGE_CHUNK, .contents = base()};
	ckt_image_global global = {.name = (char *)"v", .address = variable, .size = 64};
	ckt_image_module of = {
		.id = module, .context = ckt_handle_primary(0), .globals = {1, &global}};
	ckt_image_array saved = {.id = array,
		.width = 16,
		.format = CU_AD_FORMAT_UNSIGNED_INT8,
		.channels = 1,
		.live = true};
	ckt_image_chunk chunks[] = {{.address = base(), .size = CKT_IMAGE_CHUNK},
		{.address = variable, .size = 64}, {.space = 1, .size = 16}};
	ckt_image image = {.devices = {1, &made.device},
		.physicals = {1, &physical},
		.modules = {1, &of},
		.arrays = {1, &saved},
		.chunks = {3, chunks}};
	bool skip[3];
	int error;
	uint32_t size;
	memset(&made, 0, sizeof made);
	ckt_preload_fini();
	IS(ckt_preload_memory(&ckt_worker, &image, false, skip, &error), 0);
	NO(skip[PHYSICAL] || skip[VARIABLE] || skip[ARRAY_CHUNK]);
	IS(inside_word(base()), 0); /* mapped, and clear */
	inside_fill(base(), 5, CKT_IMAGE_CHUNK);
	ckt_preload_done(&image);
	NO(ckt_preload_knows(array));
	/* It lies elsewhere, with the same contents. */
	physical.contents = chunks[PHYSICAL].address = base() + 8 * CKT_MEMORY_EXTENT;
	IS(ckt_preload_memory(&ckt_worker, &image, false, skip, &error), 0);
	YES(skip[PHYSICAL] && skip[VARIABLE] && skip[ARRAY_CHUNK]);
	NO(is_mapped(base()));
	IS(inside_word(physical.contents), 5);
	ckt_preload_done(&image);
	YES(ckt_preload_knows(array) && ckt_preload_knows(id));
	NO(ckt_preload_next_clear(array, &cursor, &size));
	IS(ckt_preload_clear(&ckt_worker), CUDA_SUCCESS);
	IS(inside_word(variable), 9);
	/* All became zeros: the variable is cleared, and the array's owner is told. */
	image.chunks.chunks_len = 0;
	IS(ckt_preload_memory(&ckt_worker, &image, false, skip, &error), 0);
	IS(ckt_preload_clear(&ckt_worker), CUDA_SUCCESS);
	IS(inside_word(variable), 0);
	IS(inside_word(physical.contents), 0);
	cursor = 0;
	YES(ckt_preload_next_clear(array, &cursor, &size));
	IS(size, 16);
	cursor += size;
	NO(ckt_preload_next_clear(array, &cursor, &size));
	ckt_preload_done(&image);
	/* The last one: nothing stays mapped, and the memory is whose it was. */
	IS(ckt_preload_memory(&ckt_worker, &image, true, skip, &error), 0);
	NO(is_mapped(physical.contents));
	NO(ckt_preload_take(id, 0, 2 * CKT_IMAGE_CHUNK, 0, &handle));
	NO(ckt_preload_take(array, 0, CKT_IMAGE_CHUNK, 0, &handle));
	NO(ckt_preload_take(id, 0, CKT_IMAGE_CHUNK, 1, &handle));
	YES(ckt_preload_take(id, 0, CKT_IMAGE_CHUNK, 0, &handle));
	NO(ckt_preload_take(id, 0, CKT_IMAGE_CHUNK, 0, &handle));
	IS(ckt_driver.cuMemRelease(handle), CUDA_SUCCESS);
	ckt_preload_fini();
	/* Addresses outside of the window are nobody's to map. */
	physical.contents = 0x1000;
	IS(ckt_preload_memory(&ckt_worker, &image, false, skip, &error), -EIO);
	ckt_preload_fini();
	inside_free(variable);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
}

UNIT_SUITE(preload, {"objects", test_objects}, {"journal", test_journal}, {"memory", test_memory})
