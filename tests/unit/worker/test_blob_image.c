/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/blob_image.c: modules' contents go into an image as pieces of a space of
 * their own, whole or as far as they have come, and not again where the last image has them.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside.h"

static void test_save(void)
{
	static struct ckt_worker worker;
	struct ckt_save save = {.compress = false};
	struct ckt_saving s = {.worker = &worker, .save = &save};
	static uint8_t big[CKT_IMAGE_CHUNK + 100];
	uint8_t hash[CKT_HASH_SIZE], other[CKT_HASH_SIZE];
	memset(big, 3, sizeof big);
	MUST(ckt_blobs_add(&worker.blobs, big, sizeof big, hash), 0);
	ckt_blob_hash("abcdef", 6, other);
	/* Half of it is still to come. */
	MUST(ckt_blobs_piece(&worker.blobs, other, 6, 0, "abc", 3), 0);
	MUST(ckt_blob_kind.save_table(&s), 0);
	IS(s.image.blobs.blobs_len, 2);
	uint64_t bytes = 0;
	for (unsigned i = 0; i < 2; i++) {
		const ckt_image_blob *blob = &s.image.blobs.blobs_val[i];
		bool whole = !memcmp(blob->hash, hash, sizeof hash);
		IS(blob->size, whole ? sizeof big : 6);
		IS(blob->received, whole ? sizeof big : 3);
	}
	IS(s.piece_count, 3);
	for (size_t i = 0; i < s.piece_count; i++) {
		YES(s.pieces[i].space == 1 || s.pieces[i].space == 2);
		NO(s.pieces[i].hashable);
		CU_ASSERT_PTR_NOT_NULL(s.pieces[i].data);
		bytes += s.pieces[i].size;
	}
	IS(bytes, sizeof big + 3);
	IS(ckt_blob_kind.stage, CKT_LOAD_CODE);
	free(s.pieces);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
	for (size_t i = 0; i < worker.blobs.count; i++) {
		free(worker.blobs.list[i]->data);
		free(worker.blobs.list[i]);
	}
	free(worker.blobs.list);
}

UNIT_SUITE(blob_image, {"save", test_save})
