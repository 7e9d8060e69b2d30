/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/save/save_tables.c: who the session is, its GPUs with their memory, its modules'
 * contents and its journal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/memory/window.h"
#include "server/worker/module/module.h"
#include "tests/unit/worker/inside_image.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static void test_tables(void)
{
	struct ckt_save s = {.compress = true};
	struct ckt_object *module = inside_module(ID(MODULE, 41), ptx);
	uint64_t memory = inside_memory(5 << 20, 3), small = inside_memory(4096, 0);
	image_files_new();
	snprintf(ckt_worker.program_name, sizeof ckt_worker.program_name, "program");
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
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
		blocks += (b->address == memory && b->size == 5 << 20) ||
			(b->address == small && b->size == 4096);
	}
	IS(blocks, 2);
	IS(image->journal.journal_len, ckt_worker.checkpoint.journal.count);
	IS(image->blobs.blobs_len, ckt_worker.blobs.count);
	unsigned found = 0;
	for (unsigned i = 0; i < image->blobs.blobs_len; i++)
		found += !memcmp(image->blobs.blobs_val[i].hash, module->module.hash,
				 sizeof module->module.hash) &&
			image->blobs.blobs_val[i].received == sizeof ptx;
	IS(found, 1);
	image_free(image);
	image_files_close();
	inside_free(small);
	inside_free(memory);
	ckt_module_unload(&ckt_worker, module);
}

/*
 * Pieces of a chunk's size, the last one shorter; those that the GPU may hash are its own memory,
 * aligned.
 */
static void test_pieces(void)
{
	struct ckt_saving s = {.worker = &ckt_worker};
	static const uint8_t blob[10];
	ckt_save_add_pieces(&s, 0, 1, CKT_WINDOW_BASE, NULL, 2 * (uint64_t)CKT_IMAGE_CHUNK + 5);
	ckt_save_add_pieces(&s, 0, 0, CKT_WINDOW_BASE + 8, NULL, 16);
	ckt_save_add_pieces(&s, 3, 0, 0, blob, sizeof blob);
	ckt_save_add_pieces(&s, 0, 0, CKT_WINDOW_BASE, NULL, 0);
	MUST(s.piece_count, 5);
	for (unsigned i = 0; i < 3; i++) {
		IS(s.pieces[i].address, CKT_WINDOW_BASE + i * (uint64_t)CKT_IMAGE_CHUNK);
		IS(s.pieces[i].size, i < 2 ? CKT_IMAGE_CHUNK : 5);
		IS(s.pieces[i].device, 1);
		YES(s.pieces[i].hashable && !s.pieces[i].data);
	}
	NO(s.pieces[3].hashable);
	NO(s.pieces[4].hashable);
	IS(s.pieces[4].space, 3);
	YES(s.pieces[4].data == blob);
	free(s.pieces);
}

UNIT_SUITE(save_tables, {"tables", test_tables}, {"pieces", test_pieces})
