/* The object table, sequence numbers with stored replies, blobs, names of variables. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "server/worker/blob.h"
#include "server/worker/names.h"
#include "server/worker/object.h"
#include "server/worker/replies.h"

static void test_objects(void)
{
	static struct ckt_objects objects;
	struct ckt_object *object, *other;
	uint64_t id = ckt_handle_make(CKT_KIND_STREAM, 3, 5000);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, id));
	CU_ASSERT_EQUAL(ckt_objects_add(&objects, id, CKT_KIND_STREAM, false, &object), CUDA_SUCCESS);
	CU_ASSERT_PTR_EQUAL(ckt_objects_find(&objects, id), object);
	/* Another generation of the slot, another kind: not it. */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, ckt_handle_make(CKT_KIND_STREAM, 4, 5000)));
	CU_ASSERT_PTR_NULL(ckt_objects_find_kind(&objects, id, CKT_KIND_EVENT));
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 5000), CKT_KIND_EVENT, false, &other), CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 5001), CKT_KIND_STREAM, false, &other), CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 63), CKT_KIND_EVENT, false, &other), CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 70) | (uint64_t)1 << 63, CKT_KIND_EVENT, false, &other),
			    CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_objects_add(&objects, ckt_handle_primary(0), CKT_KIND_CONTEXT, true, &other), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, CKT_HANDLE_SLOTS - 1), CKT_KIND_EVENT, false, &other), CUDA_SUCCESS);
	size_t count;
	struct ckt_object **list = ckt_objects_in_order(&objects, &count);
	CU_ASSERT_EQUAL_FATAL(count, 3);
	CU_ASSERT_EQUAL(list[0]->id, id);
	CU_ASSERT_EQUAL(list[1]->id, ckt_handle_primary(0));
	free(list);
	ckt_objects_remove(&objects, object);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, id));
	uint32_t cursor = 0;
	CU_ASSERT_EQUAL(ckt_objects_next(&objects, &cursor)->id, ckt_handle_primary(0));
	CU_ASSERT_PTR_NOT_NULL(ckt_objects_next(&objects, &cursor));
	CU_ASSERT_PTR_NULL(ckt_objects_next(&objects, &cursor));
	ckt_objects_fini(&objects);
	CU_ASSERT_EQUAL(objects.count, 0);
}

static void execute(struct ckt_replies *replies, uint64_t seq, bool waited)
{
	CU_ASSERT_EQUAL(ckt_replies_check(replies, seq), CKT_SEQ_EXECUTE);
	if (waited)
		ckt_replies_expect(replies, seq, 1, (uint32_t)seq, 1);
	atomic_store(&replies->executed, seq);
}

static void store(struct ckt_replies *replies, uint64_t seq)
{
	pthread_mutex_lock(&replies->lock);
	struct ckt_stored *stored = ckt_replies_find(replies, seq);
	if (stored) {
		uint8_t *body = malloc(8);
		memcpy(body, &seq, 8);
		ckt_replies_store(replies, stored, body, 8, 0, 0);
	}
	pthread_mutex_unlock(&replies->lock);
}

static void test_replies(void)
{
	struct ckt_replies replies;
	ckt_replies_init(&replies);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 2), CKT_SEQ_BROKEN);
	CU_ASSERT_FALSE(ckt_replies_acked(&replies, 1));
	execute(&replies, 1, false);
	execute(&replies, 2, true);
	execute(&replies, 3, false);
	execute(&replies, 4, true);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 4), CKT_SEQ_REPLAY);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 1), CKT_SEQ_REPLAY);
	CU_ASSERT_EQUAL(ckt_replies_check(&replies, 6), CKT_SEQ_BROKEN);
	store(&replies, 4);
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 1));
	CU_ASSERT_FALSE(ckt_replies_find(&replies, 2)->done);
	CU_ASSERT_TRUE(ckt_replies_find(&replies, 4)->done);
	CU_ASSERT_EQUAL(replies.bytes, 8);
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 3));
	CU_ASSERT_PTR_NULL(ckt_replies_find(&replies, 2));
	CU_ASSERT_PTR_NOT_NULL(ckt_replies_find(&replies, 4));
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 1)); /* old news */
	CU_ASSERT_TRUE(ckt_replies_acked(&replies, 4));
	CU_ASSERT_EQUAL(replies.bytes, 0);
	CU_ASSERT_FALSE(ckt_replies_acked(&replies, 5));
	/* Many: what is not acknowledged is found, in whatever order it was finished; memory does not grow without end. */
	for (uint64_t seq = 5; seq < 50000; seq++) {
		execute(&replies, seq, seq % 3 != 0);
		if (seq > 20)
			store(&replies, seq - 7);
		CU_ASSERT_TRUE(ckt_replies_acked(&replies, seq - 10 > seq ? 0 : seq - 10));
		if (seq % 1000 == 1) {
			struct ckt_stored *stored = ckt_replies_find(&replies, seq - 8);
			CU_ASSERT_EQUAL(stored != NULL, (seq - 8) % 3 != 0);
			if (stored && stored->done) {
				uint64_t kept;
				memcpy(&kept, stored->body, 8);
				CU_ASSERT_EQUAL(kept, seq - 8);
			}
		}
	}
	CU_ASSERT_TRUE(replies.room <= 256);
	ckt_replies_fini(&replies);
}

static void test_blobs(void)
{
	static struct ckt_blobs blobs;
	uint8_t data[1000], hash[32], wrong[32], again[32];
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)i;
	ckt_hash(data, sizeof data, hash);
	memcpy(wrong, hash, sizeof wrong);
	wrong[0] ^= 1;
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 0, data, 400), 0);
	CU_ASSERT_PTR_NULL(ckt_blobs_find(&blobs, hash));
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 500, data, 400), -EPROTO);	/* a gap */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1001, 400, data, 400), -EPROTO);	/* another size */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 400, data, 601), -EPROTO);	/* too much */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 0, data, 400), 0);		/* again */
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, hash, 1000, 400, data + 400, 600), 0);
	const struct ckt_blob *blob = ckt_blobs_find(&blobs, hash);
	CU_ASSERT_PTR_NOT_NULL_FATAL(blob);
	CU_ASSERT_TRUE(blob->size == 1000 && !memcmp(blob->data, data, 1000) && blob->data[1000] == 0);
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, wrong, 1000, 0, data, 1000), -EBADMSG);
	CU_ASSERT_PTR_NULL(ckt_blobs_find(&blobs, wrong));
	CU_ASSERT_EQUAL(ckt_blobs_piece(&blobs, wrong, UINT64_MAX, 0, data, 1), -ENOMEM);
	CU_ASSERT_EQUAL(ckt_blobs_add(&blobs, data, 1000, again), 0);
	CU_ASSERT_EQUAL(memcmp(again, hash, 32), 0);
	CU_ASSERT_EQUAL(blobs.count, 1);
	CU_ASSERT_EQUAL(ckt_blobs_add(&blobs, data, 0, again), 0);
	CU_ASSERT_EQUAL(blobs.count, 2);
}

static bool has(const struct ckt_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->list[i], name))
			return true;
	return false;
}

static void test_names(void)
{
	static const char text[] = ".global .align 4 .b8 _Z5table[16];\n.global .u32 $tmp$1 = 3;\0second\0_Z5table";
	struct ckt_names names;
	CU_ASSERT_EQUAL(ckt_names_collect((const uint8_t *)text, sizeof text, &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "$tmp$1") && has(&names, "second"));
	CU_ASSERT_FALSE(has(&names, "4"));
	size_t twice = 0;
	for (size_t i = 0; i < names.count; i++)
		twice += !strcmp(names.list[i], "_Z5table");
	CU_ASSERT_EQUAL(twice, 1);
	ckt_names_fini(&names);
	/* In a fat binary, one entry plain and one compressed; cut off anywhere it does no harm. */
	uint8_t image[1024] = {0}, *p = image + 16;
	memcpy(image, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	char packed[256];
	size_t size = ZSTD_compress(packed, sizeof packed, text, sizeof text, 1);
	CU_ASSERT_FALSE_FATAL(ZSTD_isError(size));
	for (int entry = 0; entry < 2; entry++) {
		uint64_t payload = entry ? (size + 7) / 8 * 8 : 8, flags = 0x8000, unpacked = sizeof text;
		uint32_t header = 64, compressed = (uint32_t)size;
		memcpy(p, "\x01\x00\x01\x01", 4);
		memcpy(p + 4, &header, 4);
		memcpy(p + 8, &payload, 8);
		if (entry) {
			memcpy(p + 16, &compressed, 4);
			memcpy(p + 40, &flags, 8);
			memcpy(p + 56, &unpacked, 8);
		}
		memcpy(p + 64, entry ? packed : "\0plain\0", entry ? size : 8);
		p += 64 + payload;
	}
	uint64_t body = (uint64_t)(p - image) - 16;
	memcpy(image + 8, &body, 8);
	CU_ASSERT_EQUAL(ckt_names_collect(image, (size_t)(p - image), &names), 0);
	CU_ASSERT_TRUE(has(&names, "_Z5table") && has(&names, "plain"));
	ckt_names_fini(&names);
	for (size_t cut = 0; cut < (size_t)(p - image); cut++) {
		uint8_t *copy = malloc(cut + 1);
		memcpy(copy, image, cut);
		CU_ASSERT_EQUAL(ckt_names_collect(copy, cut, &names), 0);
		ckt_names_fini(&names);
		free(copy);
	}
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("tables", NULL, NULL);
	CU_add_test(suite, "objects", test_objects);
	CU_add_test(suite, "replies", test_replies);
	CU_add_test(suite, "blobs", test_blobs);
	CU_add_test(suite, "names", test_names);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
