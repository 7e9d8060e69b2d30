/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/load/image_load.c: restoring what nobody saved: an image whose manifest decodes and
 * has the right checksum, and one value in it that cannot be.  The worker refuses with a sentence,
 * or takes it and goes on answering; it never dies.  argv[1] the worker, argv[2] the soft
 * libcuda.so.1.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "server/worker/module/blob.h"
#include "checkpoint/load/image_load.h"
#include "tests/unit/worker/wire_session.h"

static char base_path[] = "/tmp/ckt-image-XXXXXX";

#define ID(kind, n) ckt_handle_make(CKT_KIND_##kind, 1, n)
#define FIRST(list) (i->list.list##_val[0])
#define SECOND(list) (i->list.list##_val[1])

static const char ptx[] =
	".version 8.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 total = 5;\n"
	".visible .entry nothing() { ret; }\n";

static void make_base(void)
{
	struct wire w = {0};
	char message[CKT_MESSAGE_MAX] = "";
	uint8_t hash[32];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base_path));
	CU_ASSERT_EQUAL_FATAL(wire_start(&w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(&w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(done(WIRE_CALL(&w, mem_alloc, true, .size = 1000)), CUDA_SUCCESS);
	struct wire_reply reply = WIRE_CALL(&w, mem_alloc, true, .size = 5 << 20);
	struct ckt_mem_alloc_res res = {0};
	CU_ASSERT_TRUE_FATAL(ckt_mem_alloc_res_get(&reply.results, &res));
	free(reply.data);
	WIRE_BATCH(&w, memset, .dst = res.address, .element_size = 1, .value = 7, .width = 5 << 20,
		.height = 1);
	for (unsigned n = 0; n < 2; n++) {
		WIRE_BATCH(&w, stream_create, .id = ID(STREAM, 100 + n),
			.flags = CU_STREAM_NON_BLOCKING);
		WIRE_BATCH(&w, event_create, .id = ID(EVENT, 200 + n), .flags = 0);
		WIRE_BATCH(&w, event_record, .event = ID(EVENT, 200 + n),
			.stream = ID(STREAM, 100 + n));
	}
	ckt_blob_hash(ptx, sizeof ptx - 1, hash);
	WIRE_BATCH(&w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1,
		.data = (uint8_t *)ptx, .data_len = sizeof ptx - 1);
	CU_ASSERT_EQUAL(done(WIRE_CALL(&w, module_load, true, .id = ID(MODULE, 300), .hash = hash,
				.hash_len = 32)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(&w, module_get_function, true, .module = ID(MODULE, 300),
				.id = ID(FUNCTION, 400), .name = "nothing", .name_len = 7)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(&w, module_get_global, true, .module = ID(MODULE, 300),
				.name = "total", .name_len = 5)),
		CUDA_SUCCESS);
	/* Replies that stay: nothing of it is acknowledged. */
	w.acked = 0;
	CU_ASSERT_EQUAL_FATAL(wire_save(&w, base_path, true, 5000, message), 0);
	CU_ASSERT_TRUE(wire_ended(&w));
	free(w.log);
	free(w.printed);
}

/* ---- One change each */

#define NEW(list, type)                                                        \
	(i->list.list##_len = 1, i->list.list##_val = calloc(1, sizeof(type)), \
		&i->list.list##_val[0])

enum { REFUSED = 1 };
struct change {
	const char *name;
	void (*make)(ckt_image *i);
	int expected;
};

#define CHANGE(name, ...)              \
	static void name(ckt_image *i) \
	{                              \
		__VA_ARGS__;           \
	}
#define LIST(X)                                                                                   \
	X(nothing, 0, (void)i)                                                                    \
	X(no_devices, REFUSED, i->devices.devices_len = 0)                                        \
	X(other_window, REFUSED, i->window_base += 4096)                                          \
	X(no_slice, REFUSED, i->slice_bytes = 0)                                                  \
	X(odd_slice, REFUSED, i->slice_bytes = 4097)                                              \
	X(huge_slice, REFUSED, i->slice_bytes = UINT64_MAX)                                       \
	X(extent_outside, REFUSED, FIRST(devices).extents.extents_val[0].address = 0x1000000)     \
	X(extent_odd, REFUSED, FIRST(devices).extents.extents_val[0].address += 512)              \
	X(extent_empty, REFUSED, FIRST(devices).extents.extents_val[0].size = 0)                  \
	X(extent_huge, REFUSED,                                                                   \
		FIRST(devices).extents.extents_val[0].size = UINT64_MAX & ~(uint64_t)0x1fffff)    \
	X(extent_twice, REFUSED,                                                                  \
		FIRST(devices).extents.extents_val[1].address =                                   \
			FIRST(devices).extents.extents_val[0].address)                            \
	X(extent_use, REFUSED, FIRST(devices).extents.extents_val[0].use = 77)                    \
	X(block_outside, REFUSED, FIRST(devices).blocks.blocks_val[0].address += 1ull << 32)      \
	X(block_empty, REFUSED, FIRST(devices).blocks.blocks_val[0].size = 0)                     \
	X(block_huge, REFUSED, FIRST(devices).blocks.blocks_val[0].size = UINT64_MAX)             \
	X(block_twice, REFUSED,                                                                   \
		FIRST(devices).blocks.blocks_val[1] = FIRST(devices).blocks.blocks_val[0])        \
	X(chunk_outside, REFUSED, FIRST(chunks).address = 0x1000000)                              \
	X(chunk_around, REFUSED, FIRST(chunks).address = UINT64_MAX - 4096)                       \
	X(chunk_size, REFUSED, FIRST(chunks).size = UINT32_MAX)                                   \
	X(chunk_file, REFUSED, FIRST(chunks).file = 12345)                                        \
	X(chunk_offset, REFUSED, FIRST(chunks).offset = UINT64_MAX - 4)                           \
	X(chunk_stored, REFUSED, FIRST(chunks).stored = UINT32_MAX)                               \
	X(chunk_encoding, REFUSED, FIRST(chunks).encoding = CKT_IMAGE_ZSTD)                       \
	X(chunk_space, REFUSED, FIRST(chunks).space = 12345)                                      \
	X(chunk_hash, REFUSED, FIRST(chunks).hash[3] ^= 1)                                        \
	X(file_size, REFUSED, FIRST(file_bytes)++)                                                \
	X(blob_size, REFUSED, FIRST(blobs).size = UINT64_MAX)                                     \
	X(blob_received, REFUSED, FIRST(blobs).received = FIRST(blobs).size + 1)                  \
	X(stream_zero, REFUSED, FIRST(streams).id = 0)                                            \
	X(stream_kind, REFUSED, FIRST(streams).id = ID(EVENT, 100))                               \
	X(stream_twice, REFUSED, SECOND(streams).id = FIRST(streams).id)                          \
	X(stream_slot, REFUSED, FIRST(streams).id = FIRST(events).id)                             \
	X(stream_context, REFUSED, FIRST(streams).context = 99)                                   \
	X(stream_flags, REFUSED, FIRST(streams).flags = 0xffff)                                   \
	X(event_kind, REFUSED, FIRST(events).id = ID(STREAM, 200))                                \
	X(event_twice, REFUSED, SECOND(events).id = FIRST(events).id)                             \
	X(event_context, REFUSED, FIRST(events).context = ID(CONTEXT, 9))                         \
	X(event_time, 0, FIRST(events).milliseconds = -1e30f)                                     \
	X(module_hash, REFUSED, FIRST(modules).hash[0] ^= 1)                                      \
	X(module_context, REFUSED, FIRST(modules).context = 12)                                   \
	X(module_id, REFUSED, FIRST(modules).id = ID(STREAM, 300))                                \
	X(journal_kind, REFUSED, FIRST(journal).kind = 99)                                        \
	X(journal_context, REFUSED, FIRST(journal).context = 99)                                  \
	X(function_module, REFUSED, FIRST(functions).module = ID(MODULE, 301))                    \
	X(function_id, REFUSED, FIRST(functions).id = ID(MODULE, 400))                            \
	X(function_twice, REFUSED, FIRST(functions).id = FIRST(modules).id)                       \
	X(context_device, REFUSED, FIRST(contexts).device = 77)                                   \
	X(context_id, REFUSED, FIRST(contexts).id = ID(STREAM, 1))                                \
	X(reply_late, REFUSED, FIRST(replies).seq = i->executed + 1)                              \
	X(reply_order, REFUSED, SECOND(replies).seq = FIRST(replies).seq)                         \
	X(acked_late, REFUSED, i->acked = i->executed + 1)                                        \
	X(mapping_alone, REFUSED,                                                                 \
		*NEW(mappings, ckt_image_mapping) =                                               \
			(ckt_image_mapping){.address = i->window_base + (1ull << 32),             \
				.size = 2 << 20,                                                  \
				.physical = ID(PHYSICAL, 500)})                                   \
	X(reservation_outside, REFUSED,                                                           \
		*NEW(reservations, ckt_image_reservation) =                                       \
			(ckt_image_reservation){.address = 4096, .size = 2 << 20})                \
	X(physical_device, REFUSED,                                                               \
		*NEW(physicals, ckt_image_physical) = (ckt_image_physical){                       \
			.id = ID(PHYSICAL, 500), .device = 9, .size = 2 << 20})                   \
	X(physical_size, REFUSED,                                                                 \
		*NEW(physicals, ckt_image_physical) =                                             \
			(ckt_image_physical){.id = ID(PHYSICAL, 500), .size = UINT64_MAX})        \
	X(pool_device, REFUSED,                                                                   \
		*NEW(pools, ckt_image_pool) = (ckt_image_pool){.id = ID(POOL, 600), .device = 9}) \
	X(array_size, REFUSED,                                                                    \
		*NEW(arrays, ckt_image_array) = (ckt_image_array){.id = ID(ARRAY, 700),           \
			.context = FIRST(contexts).id,                                            \
			.width = UINT64_MAX,                                                      \
			.height = UINT64_MAX,                                                     \
			.format = 1,                                                              \
			.channels = 1,                                                            \
			.live = true})                                                            \
	X(texture_array, REFUSED,                                                                 \
		*NEW(textures, ckt_image_texture) = (ckt_image_texture){.id = ID(TEXTURE, 800),   \
			.context = FIRST(contexts).id,                                            \
			.array = ID(ARRAY, 700),                                                  \
			.handle = 1})                                                             \
	X(graph_garbage, REFUSED, ckt_image_graph *g = NEW(graphs, ckt_image_graph);              \
		g->id = ID(GRAPH_EXEC, 900); g->context = FIRST(contexts).id;                     \
		g->data.data_len = 64; g->data.data_val = calloc(1, 64);                          \
		memset(g->data.data_val, 0xff, 64))                                               \
	X(seen_module, REFUSED, i->seen_known = true;                                             \
		ckt_image_seen *s = NEW(seen, ckt_image_seen); s->module = ID(MODULE, 999);       \
		s->name = strdup("x"))

#define DEFINE(name, expected, ...) CHANGE(name, __VA_ARGS__)
LIST(DEFINE)
#define ENTRY(name, expected, ...) {#name, name, expected},
static const struct change changes[] = {LIST(ENTRY)};

static void forgive_leaks(bool forgive)
{
#ifdef __SANITIZE_ADDRESS__
	(forgive ? __lsan_disable : __lsan_enable)();
#else
	(void)forgive;
#endif
}

/* The base with one change, in a directory of its own. */
static void write_changed(const struct change *change, char *directory)
{
	char message[CKT_MESSAGE_MAX] = "";
	ckt_image image = {0};
	int from = open(base_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* What a change shortens or replaces is not freed. */
	forgive_leaks(true);
	CU_ASSERT_EQUAL_FATAL(ckt_image_read(from, &image, message, sizeof message), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	int to = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = opendir(base_path);
	for (struct dirent *entry; (entry = readdir(list));)
		if (strncmp(entry->d_name, "data-", 5) == 0)
			CU_ASSERT_EQUAL(linkat(from, entry->d_name, to, entry->d_name, 0), 0);
	closedir(list);
	change->make(&image);
	forgive_leaks(false);
	CU_ASSERT_EQUAL(ckt_image_write(to, &image, message, sizeof message), 0);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	close(from);
	close(to);
}

static void test_changes(void)
{
	for (size_t n = 0; n < sizeof changes / sizeof *changes; n++) {
		char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX] = "";
		struct wire w = {.may_die = true};
		write_changed(&changes[n], directory);
		int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int status = wire_start(&w, worker_path, driver_path, 0, fd, message);
		bool died = w.died, refused = status != 0;
		if (!died && !refused) {
			ckt_worker_status_res listed = wire_status(&w);
			died = w.died;
			xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
			kill(w.pid, SIGTERM);
		}
		bool right = !died && refused == (changes[n].expected == REFUSED) &&
			refused == (message[0] != 0) && wire_ended(&w);
		if (!right || getenv("CKT_TEST_VERBOSE"))
			fprintf(stderr, "%s: %s%s\n", changes[n].name,
				died              ? "the worker died"
					: refused ? "refused: "
						  : "taken",
				message);
		CU_ASSERT_TRUE(right);
		close(fd);
		free(w.log);
		free(w.printed);
		remove_directory(directory);
	}
	remove_directory(base_path);
}

UNIT_SUITE(image_load, {"base", make_base}, {"changes", test_changes})
