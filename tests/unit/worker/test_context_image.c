/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/objects/context_image.c: contexts with their limits, and their steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

static char message[CKT_MESSAGE_MAX];

static struct ckt_loading loading(void)
{
	message[0] = 0;
	return (struct ckt_loading){
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
}

static const struct ckt_journal_step *step_of(enum ckt_journal_kind kind)
{
	const struct ckt_journal_step *step = ckt_context_kind.steps;
	while (step->replay && step->kind != kind)
		step++;
	MUST(step->kind, kind);
	return step;
}

static void test_save(void)
{
	struct ckt_save s = {0};
	struct ckt_object *context;
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 41), CU_CTX_SCHED_YIELD, 0, &context),
		CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(ckt_driver.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 3 << 20), CUDA_SUCCESS);
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	const ckt_image_context *saved = NULL;
	for (unsigned i = 0; i < image->contexts.contexts_len; i++)
		if (image->contexts.contexts_val[i].id == context->id)
			saved = &image->contexts.contexts_val[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(saved);
	NO(saved->primary);
	IS(saved->flags, CU_CTX_SCHED_YIELD);
	uint64_t fifo = 0;
	for (unsigned i = 0; i < saved->limits.limits_len; i++)
		if (saved->limits.limits_val[i].limit == CU_LIMIT_PRINTF_FIFO_SIZE)
			fifo = saved->limits.limits_val[i].value;
	IS(fifo, 3 << 20);
	/* What differs is set again: of a context that is there, the limits. */
	struct ckt_loading l = loading();
	ckt_image_context again = *saved;
	size_t now = 0;
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(ckt_driver.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20), CUDA_SUCCESS);
	l.image.contexts.contexts_val = &again;
	l.image.contexts.contexts_len = 1;
	IS(ckt_context_kind.load(&l, 0), 0);
	IS(ckt_driver.cuCtxGetLimit(&now, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
	IS(now, 3 << 20);
	again.id = ID(CONTEXT, 42);
	YES(ckt_context_kind.load(&l, 0) < 0);
	HAS(message, "context 0x");
	image_free(image);
	image_files_close();
	ckt_context_destroy(&ckt_worker, context);
}

static void test_journal(void)
{
	struct ckt_loading l = loading();
	ckt_image_journal entry = {.id = ID(CONTEXT, 43), .flags = CU_CTX_SCHED_SPIN};
	MUST(step_of(CKT_JOURNAL_CONTEXT_CREATE)->replay(&l, &entry), 0);
	struct ckt_object *context = ckt_objects_find(&ckt_worker.objects, entry.id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	IS(context->ctx.flags, CU_CTX_SCHED_SPIN);
	/* Again, it is there. */
	YES(step_of(CKT_JOURNAL_CONTEXT_CREATE)->replay(&l, &entry) < 0);
	/* A step that ends something ends contexts of the program only. */
	ckt_image_journal primary = {.id = ckt_handle_primary(0)};
	IS(step_of(CKT_JOURNAL_CONTEXT_DESTROY)->replay(&l, &primary), 0);
	CU_ASSERT_PTR_NOT_NULL(ckt_objects_find(&ckt_worker.objects, primary.id));
	IS(step_of(CKT_JOURNAL_CONTEXT_DESTROY)->replay(&l, &entry), 0);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, entry.id));
	primary.device = 99;
	IS(step_of(CKT_JOURNAL_PRIMARY)->replay(&l, &primary), -EBADMSG);
	HAS(message, "a context of GPU 99");
	IS(step_of(CKT_JOURNAL_LIMIT)->merge, CKT_JOURNAL_REPLACES);
	/* A limit that another model of GPU does not take is no reason to refuse. */
	ckt_image_journal limit = {.context = ckt_handle_primary(0), .flags = 9999, .id = 1};
	YES(step_of(CKT_JOURNAL_LIMIT)->replay(&l, &limit) < 0);
	l.other_model = true;
	IS(step_of(CKT_JOURNAL_LIMIT)->replay(&l, &limit), 0);
}

UNIT_SUITE(context_image, {"save", test_save}, {"journal", test_journal})
