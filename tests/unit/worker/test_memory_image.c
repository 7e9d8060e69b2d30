/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/memory_image.c: extents and blocks of each GPU go into an image, but for what
 * libraries have for themselves and what is cached; contents lie where the extents are.
 */
#include <stdlib.h>

#include "checkpoint/save/image_save.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside.h"

struct seen {
	uint64_t address;
	unsigned count;
};

static void visit(const struct ckt_contents *contents, void *opaque)
{
	struct seen *seen = opaque;
	YES(contents->taken && !contents->owner);
	IS(contents->offset, contents->address);
	seen->count += seen->address >= contents->address &&
		seen->address - contents->address < contents->size;
}

static bool has_block(const ckt_image *image, uint64_t address)
{
	for (unsigned i = 0; i < image->devices.devices_val[0].blocks.blocks_len; i++)
		if (image->devices.devices_val[0].blocks.blocks_val[i].address == address)
			return true;
	return false;
}

static void test_save(void)
{
	struct ckt_saving s = {.worker = &ckt_worker};
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t block = inside_memory(3 << 20, 1), library;
	MUST(ckt_memory_alloc(memory, 4 << 20, CKT_MEMORY_LIBRARY, &library), CUDA_SUCCESS);
	MUST(ckt_memory_kind.save_table(&s), 0);
	IS(s.image.devices.devices_len, ckt_worker.device_count);
	TEXT(s.image.devices.devices_val[0].name, ckt_worker.devices[0].name);
	YES(has_block(&s.image, block));
	NO(has_block(&s.image, library));
	struct seen seen = {.address = block}, none = {.address = library};
	ckt_memory_kind.contents(&s.image, visit, &seen);
	ckt_memory_kind.contents(&s.image, visit, &none);
	IS(seen.count, 1);
	IS(none.count, 0);
	bool piece = false;
	for (size_t i = 0; i < s.piece_count; i++) {
		piece |= s.pieces[i].address == block && s.pieces[i].device == 0 &&
			s.pieces[i].hashable;
		NO(s.pieces[i].address == library);
	}
	YES(piece);
	free(s.pieces);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
	MUST(ckt_memory_free_library(memory, library), CUDA_SUCCESS);
	inside_free(block);
	ckt_memory_trim(memory);
}

UNIT_SUITE(memory_image, {"save", test_save})
