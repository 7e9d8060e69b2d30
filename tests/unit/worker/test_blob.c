/* SPDX-License-Identifier: Apache-2.0 */
/* Contents by their hash. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/blob.h"
#include "tests/unit/suite.h"

static void test_blobs(void)
{
	static struct ckt_blobs blobs;
	uint8_t data[1000], hash[32], wrong[32], again[32];
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)i;
	ckt_blob_hash(data, sizeof data, hash);
	memcpy(wrong, hash, sizeof wrong);
	wrong[0] ^= 1;
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 0, data, 400), 0);
	CU_ASSERT_PTR_NULL(ckt_blobs_find(&blobs, hash));
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 500, data, 400), -EPROTO); /* a gap */
	/* another size */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1001, 400, data, 400), -EPROTO);
	/* too much */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 400, data, 601), -EPROTO);
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 0, data, 400), 0); /* again */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 400, data + 400, 600), 0);
	const struct ckt_blob *blob = ckt_blobs_find(&blobs, hash);
	CU_ASSERT_PTR_NOT_NULL_FATAL(blob);
	CU_ASSERT_TRUE(
		blob->size == 1000 && !memcmp(blob->data, data, 1000) && blob->data[1000] == 0);
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, wrong, 1000, 0, data, 1000), -EBADMSG);
	CU_ASSERT_PTR_NULL(ckt_blobs_find(&blobs, wrong));
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, wrong, UINT64_MAX, 0, data, 1), -ENOMEM);
	CU_ASSERT_EQUAL(ckt_blobs_add(&blobs, data, 1000, again), 0);
	CU_ASSERT_EQUAL(memcmp(again, hash, 32), 0);
	CU_ASSERT_EQUAL(blobs.count, 1);
	CU_ASSERT_EQUAL(ckt_blobs_add(&blobs, data, 0, again), 0);
	CU_ASSERT_EQUAL(blobs.count, 2);
}

UNIT_SUITE(blob, {"blobs", test_blobs})
