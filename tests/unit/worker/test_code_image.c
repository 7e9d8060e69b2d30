/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/code/code_image.c: libraries' code and its uses in an image; damaged lists are
 * refused.  Run with CUDA_MODULE_LOADING=LAZY.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/journal.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/save.h"
#include "server/worker/libs/code/code_table.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/inside_image.h"
#include "tests/unit/worker/toy.h"

static ckt_image *saved(void)
{
	struct ckt_save save = {0};
	image_files_new();
	MUST(image_save(&save), 0);
	return image_read();
}

static int check(ckt_image *image, char *message)
{
	struct ckt_loading l = {.worker = &ckt_worker,
		.image = *image,
		.message = message,
		.message_size = CKT_MESSAGE_MAX};
	return ckt_code_check(&l);
}

static int again(ckt_image *image, ckt_image_journal *entry, char *message)
{
	struct ckt_loading l = {.worker = &ckt_worker,
		.image = *image,
		.message = message,
		.message_size = CKT_MESSAGE_MAX};
	return ckt_code_again(&l, entry);
}

static void test_image(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	char message[CKT_MESSAGE_MAX] = "";
	void *library;
	ckt_worker.executor = pthread_self();
	MUST(toy->toy_code_load(0, &library), CUDA_SUCCESS);
	IS(toy->toy_code_run(library, "first"), CUDA_SUCCESS);
	ckt_image *image = saved();
	IS(image->start, CKT_IMAGE_START_NARROW | CKT_IMAGE_START_LAZY);
	MUST(image->codes.codes_len > 0 && image->code_uses.code_uses_len == ckt_code_use_count(),
		true);
	ckt_image_journal *entry = &image->journal.journal_val[image->journal.journal_len - 1];
	MUST(entry->kind, CKT_JOURNAL_CODE);
	MUST(entry->id < image->code_uses.code_uses_len, true);
	ckt_image_code_use *use = &image->code_uses.code_uses_val[entry->id];
	ckt_image_code *code = &image->codes.codes_val[use->code];
	TEXT(use->symbol, "first");
	TEXT(code->file, "libtoy.so.1");
	IS(check(image, message), 0);

	/* Another build of the library: said once, and left to the addresses. */
	code->hash[0] ^= 1;
	IS(again(image, entry, message), 0);
	HAS(ckt_worker.note,
		"code of the library libtoy.so.1 cannot be loaded in its old order (first: no such library is open here");
	code->hash[0] ^= 1;
	/* Done again it is a step of the journal again, of a use that is known. */
	uint32_t uses = ckt_code_use_count();
	size_t steps = ckt_worker.checkpoint.journal.count;
	IS(again(image, entry, message), 0);
	IS(ckt_code_use_count(), uses);
	MUST(ckt_worker.checkpoint.journal.count, steps + 1);
	IS(ckt_worker.checkpoint.journal.list[steps].id, entry->id);
	entry->context = ID(CONTEXT, 999);
	YES(again(image, entry, message) < 0);
	entry->context = ckt_handle_primary(0);

	unsigned before = use->code;
	use->code = image->codes.codes_len;
	IS(check(image, message), -EBADMSG);
	HAS(message, "is used but missing");
	use->code = before;
	use->kind = 77;
	IS(check(image, message), -EBADMSG);
	use->kind = CKT_CODE_KERNEL;
	entry->id = image->code_uses.code_uses_len;
	IS(check(image, message), -EBADMSG);
	HAS(message, "a step in the journal that is not described");
	entry->id = 0;
	/* A file elsewhere is none of a library's. */
	char *file = code->file;
	code->file = (char *)"../libtoy.so.1";
	IS(check(image, message), -EBADMSG);
	code->file = file;
	code->size = 0;
	IS(check(image, message), -EBADMSG);
	image_free(image);
	image_files_close();
	IS(toy->toy_code_unload(library), CUDA_SUCCESS);
	ckt_worker.executor = executor;
}

UNIT_SUITE(libs_code_image, {"image", test_image})
