/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/ipc/ipc_image.c: what a session shares and has open, in an image and from it: the
 * same memory at the same address; and images that claim what is not so, each refused with a
 * sentence.  One process is owner and the other side here.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/save.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/group_kit.h"
#include "tests/unit/worker/inside_image.h"

static char session[CKT_IPC_SESSION + 1] = "0a1b2c3d4e5f";

struct case_ {
	ckt_image_export export;
	ckt_image_import import;
	struct ckt_ipc_handle theirs, own;
	const char *says; /* NULL: taken */
};

/* As the session of an image that has both lists; nothing of it stays. */
static void check(struct case_ c)
{
	char message[CKT_MESSAGE_MAX] = "";
	memcpy(c.export.handle, &c.own, sizeof c.own);
	memcpy(c.import.handle, &c.theirs, sizeof c.theirs);
	struct ckt_loading l = {.worker = &ckt_worker,
		.message = message,
		.message_size = sizeof message,
		.image = {.session = session,
			.uid = 77,
			.copy = 5,
			.shared_exports = {1, &c.export},
			.shared_imports = {1, &c.import}}};
	int error = ckt_shared_kind.begin(&l);
	if (!error)
		error = ckt_shared_kind.load_rest(&l);
	if (c.says) {
		YES(error < 0);
		HAS(message, c.says);
	} else {
		IS(error, 0);
		IS(message[0], 0);
		IS(inside_word(c.import.id), 11);
		inside_fill(c.export.id, 12, 4096);
		IS(inside_word(c.import.id), 12);
		inside_fill(c.export.id, 11, 4096);
		/* as the program has it */
		IS(memcmp(&ckt_ipc.exports->handle, &c.own, sizeof c.own), 0);
	}
	IS(ASK(ipc_mem_close, .address = c.import.id),
		c.says ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
	ckt_ipc_forget(&ckt_worker, c.export.id);
	NO(ckt_ipc_is_shared(message, sizeof message));
	memset(ckt_ipc.session, 0, sizeof ckt_ipc.session);
	ckt_ipc.restored_copy = 0;
}

static struct ckt_ipc_handle handle_of(const char *of, uint8_t secret)
{
	struct ckt_ipc_handle handle = {.kind = CKT_IPC_BLOCK, .secret = {secret, 2, 3}};
	memcpy(handle.magic, CKT_IPC_MAGIC, sizeof handle.magic);
	memcpy(handle.session, of, sizeof handle.session);
	return handle;
}

static void test_load(void)
{
	uint64_t address = inside_memory(4096, 11), extent, whole, size, context, piece;
	/* The session of these tests stands still. */
	ckt_ipc_reopen();
	group_kit_begin();
	struct ckt_memory *memory = &ckt_worker_device_of(&ckt_worker, address)->memory;
	YES(ckt_memory_locate(memory, address, &size, &context, &extent, &whole, &piece));
	unsigned patience = ckt_ipc_absent_ms;
	ckt_ipc_absent_ms = 100;
	const uint64_t base = ckt_worker.window_base + ckt_worker.slice_size -
		(whole + CKT_MEMORY_EXTENT) / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	struct case_ good = {.export = {.id = address},
			     .theirs = handle_of(session, 1),
			     .own = handle_of(session, 1),
			     .import = {.id = base + (address - extent),
				     .context = ckt_handle_primary(0),
				     .offset = address - extent,
				     .size = size,
				     .whole = whole,
				     .copy = 5}},
		     c;
	check(good);
	check(good); /* nothing of the first is in the way */
#define REFUSED(text, ...)       \
	do {                     \
		c = good;        \
		__VA_ARGS__;     \
		c.says = (text); \
		check(c);        \
	} while (0)
	/* A session that nobody restores; handles and secrets that are none; another user's. */
	REFUSED("of session 0a1b2c3d4e5e, which is not restored at this server",
		c.theirs = handle_of("0a1b2c3d4e5e", 1));
	REFUSED("but that session's image does not share it", c.theirs.secret[0] ^= 1);
	REFUSED("but that session's image does not share it", c.theirs.kind = CKT_IPC_PHYSICAL);
	REFUSED("but that session's image does not share it", c.theirs.kind = CKT_IPC_EVENT);
	REFUSED("the session shares has no handle", c.own.kind = 0);
	REFUSED("the session shares has no handle", c.own.magic[0] = 0);
	REFUSED("the session shares has no handle", c.own = handle_of("0a1b2c3d4e5e", 1));
	REFUSED("has no handle, or no GPU", c.theirs.kind = 4);
	REFUSED("has no handle, or no GPU", c.theirs.magic[7] = 'x');
	REFUSED("has no handle, or no GPU", c.import.device = 99);
	/* An owner with less, with more, elsewhere, of another time. */
	REFUSED("restore the images of one checkpoint", c.import.size = size + 1);
	REFUSED("restore the images of one checkpoint", c.import.whole = whole + CKT_MEMORY_EXTENT);
	REFUSED("restore the images of one checkpoint", c.import.offset = good.import.offset + 16);
	REFUSED("is restored from an image of another time", c.import.copy = 6);
	/* Addresses that are taken, of nobody, of no window; a context that is none. */
	REFUSED("cannot recreate", c.import.id = address);
	REFUSED("cannot recreate", c.import.id = 0);
	REFUSED("cannot recreate", c.import.id = 0x1000);
	REFUSED("cannot recreate", c.import.id = ckt_worker.window_base + ckt_worker.window_size);
	REFUSED("cannot recreate", c.import.context = ID(CONTEXT, 299));
	REFUSED("cannot recreate", c.export.id = 0x1000);
	REFUSED("cannot recreate", c.export.id = address + 16);
	check(good);
	group_kit_end();
	YES(ckt_ipc.exports == NULL);
	ckt_ipc_absent_ms = patience;
	inside_free(address);
}

/* The lists of an image are what there is. */
static void test_save(void)
{
	struct ckt_save save = {0};
	uint64_t address = inside_memory(4096, 11);
	struct ckt_ipc_export *e;
	struct ckt_ipc_handle handle = handle_of(ckt_worker.session, 9);
	group_kit_begin();
	MUST(ckt_ipc_export_block(&ckt_worker, address, &handle, &e), CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&save), 0);
	ckt_image *image = image_read();
	IS(image->shared_exports.shared_exports_len, 1);
	IS(image->shared_exports.shared_exports_val[0].id, address);
	IS(memcmp(image->shared_exports.shared_exports_val[0].handle, &handle, sizeof handle), 0);
	IS(image->shared_imports.shared_imports_len, 0);
	IS(image->mappings.mappings_len, 0);
	image_free(image);
	image_files_close();
	/* With something of another session's an older reader finds what it cannot make. */
	struct ckt_ipc_import import = {.id = 0x1234000, .handle = handle, .copy = 8};
	ckt_ipc_enter_import(&import);
	image_files_new();
	MUST(image_save(&save), 0);
	image = image_read();
	IS(image->shared_imports.shared_imports_len, 1);
	IS(image->shared_imports.shared_imports_val[0].id, 0x1234000);
	IS(image->shared_imports.shared_imports_val[0].copy, 8);
	IS(image->mappings.mappings_len, 1);
	IS(image->mappings.mappings_val[0].physical, 0);
	image_free(image);
	image_files_close();
	ckt_ipc.imports = NULL;
	ckt_ipc_forget(&ckt_worker, address);
	group_kit_end();
	inside_free(address);
}

/* Whose owner is gone, and whoever is gone that had something. */
static void test_obstacle(void)
{
	char message[CKT_MESSAGE_MAX] = "";
	struct ckt_ipc_import import = {.id = 0x1234000, .handle = handle_of("0a1b2c3d4e5e", 1)};
	struct ckt_ipc_taker taker = {.session = "0a1b2c3d4e5"};
	group_kit_begin();
	NO(ckt_ipc_obstacle(&ckt_worker, message, sizeof message));
	ckt_ipc_enter_import(&import);
	YES(ckt_ipc_obstacle(&ckt_worker, message, sizeof message));
	HAS(message, "session 0a1b2c3d4e5e has since freed");
	ckt_ipc.imports = NULL;
	ckt_ipc.takers = realloc(ckt_ipc.takers, sizeof taker);
	ckt_ipc.takers[0] = taker;
	ckt_ipc.taker_count = ckt_ipc.taker_room = 1;
	NO(ckt_ipc_obstacle(&ckt_worker, message, sizeof message));
	IS(ckt_ipc.taker_count, 0);
	/* Nobody can say whether it is gone. */
	group_kit_end();
	ckt_ipc.takers[0] = taker;
	ckt_ipc.taker_count = 1;
	YES(ckt_ipc_obstacle(&ckt_worker, message, sizeof message));
	HAS(message, "can be saved only together with them");
	ckt_ipc.taker_count = 0;
}

UNIT_SUITE(ipc_image, {"load", test_load}, {"save", test_save}, {"obstacle", test_obstacle})
