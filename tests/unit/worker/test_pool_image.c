/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/memory/pool_image.c: pools with their settings and marks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

static char message[CKT_MESSAGE_MAX];

static struct ckt_loading loading(void)
{
	message[0] = 0;
	return (struct ckt_loading){
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
}

static void test_pool(void)
{
	struct ckt_save s = {0};
	IS(ASK(pool_create, .id = ID(POOL, 41), .max_bytes = 12345678), CUDA_SUCCESS);
	IS(ASK(pool_set_attribute, .pool = ID(POOL, 41),
		   .attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, .value = 4096),
		CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	MUST(image->pools.pools_len, 3); /* one of each device, and its own */
	IS(image->pools.pools_val[0].id, ckt_handle_default_pool(0));
	IS(image->pools.pools_val[2].id, ID(POOL, 41));
	IS(image->pools.pools_val[2].max_bytes, 12345678);
	IS(image->pools.pools_val[2].release_threshold, 4096);
	IS(ASK(pool_destroy, .id = ID(POOL, 41)), CUDA_SUCCESS);
	struct ckt_loading l = loading();
	l.image = *image;
	for (unsigned i = 0; i < 3; i++)
		MUST(ckt_pool_kind.load(&l, i), 0);
	struct ckt_pool *pool = ckt_worker_pool_find(&ckt_worker, ID(POOL, 41));
	CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
	IS(pool->max_bytes, 12345678);
	IS(pool->release_threshold, 4096);
	NO(pool->destroyed);
	image->pools.pools_val[2].id = ID(POOL, 42);
	image->pools.pools_val[2].device = 99;
	YES(ckt_pool_kind.load(&l, 2) < 0);
	HAS(message, "memory pool 0x");
	image_free(image);
	image_files_close();
	IS(ASK(pool_destroy, .id = ID(POOL, 41)), CUDA_SUCCESS);
}

UNIT_SUITE(pool_image, {"pool", test_pool})
