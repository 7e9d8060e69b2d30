/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/module/module_image.c: modules with their variables and functions, and the
 * variables whose addresses the program knows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "server/worker/module/module.h"
#include "server/worker/objects/object_kinds.h"
#include "tests/unit/worker/inside_image.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 total = 77;\n.visible .entry nothing()\n{\n\tret;\n}\n";

static char message[CKT_MESSAGE_MAX];

static struct ckt_loading loading(void)
{
	message[0] = 0;
	return (struct ckt_loading){
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
}

static ckt_image_module *module_of(const ckt_image *image, uint64_t id)
{
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		if (image->modules.modules_val[i].id == id)
			return &image->modules.modules_val[i];
	return NULL;
}

static void test_module(void)
{
	struct ckt_save s = {0};
	struct ckt_object *module = inside_module(ID(MODULE, 41), ptx), *function;
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 41), "nothing", &function),
		CUDA_SUCCESS);
	ckt_module_note_seen(module, "total");
	image_files_new();
	MUST(image_save(&s), 0);
	ckt_image *image = image_read();
	ckt_image_function *f = NULL;
	for (unsigned i = 0; i < image->functions.functions_len; i++)
		if (image->functions.functions_val[i].id == ID(FUNCTION, 41))
			f = &image->functions.functions_val[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	IS(f->module, ID(MODULE, 41));
	TEXT(f->name, "nothing");
	ckt_image_module *m = module_of(image, module->id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	MUST(m->globals.globals_len, 1);
	TEXT(m->globals.globals_val[0].name, "total");
	IS(image_word(image, m->globals.globals_val[0].address), 77);
	YES(image->seen_known);
	ckt_image_seen *seen = NULL;
	for (unsigned i = 0; i < image->seen.seen_len; i++)
		if (image->seen.seen_val[i].module == ID(MODULE, 41))
			seen = &image->seen.seen_val[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
	TEXT(seen->name, "total");
	/* The steps of its journal, and what the tables add. */
	struct ckt_loading l = loading();
	ckt_image_journal entry = {.id = ID(MODULE, 41), .context = module->context};
	memcpy(entry.hash, module->module.hash, sizeof entry.hash);
	l.image.modules.modules_val = m;
	l.image.functions.functions_val = f;
	l.image.seen.seen_val = seen;
	l.image.seen_known = true;
	l.image.contexts = image->contexts;
	l.image.modules.modules_len = l.image.functions.functions_len = l.image.seen.seen_len = 1;
	IS(ckt_module_kind.steps[1].replay(&l, &entry), 0);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(MODULE, 41)));
	IS(ckt_function_kind.load(&l, 0), -EBADMSG);
	HAS(message, "function nothing has no module");
	IS(ckt_seen_kind.load_rest(&l), -EBADMSG);
	entry.hash[0] ^= 1;
	IS(ckt_module_kind.steps[0].replay(&l, &entry), -EBADMSG);
	HAS(message, "its journal describes module");
	entry.hash[0] ^= 1;
	MUST(ckt_module_kind.steps[0].replay(&l, &entry), 0);
	MUST(ckt_function_kind.load(&l, 0), 0);
	MUST(ckt_seen_kind.load_rest(&l), 0);
	module = ckt_objects_find(&ckt_worker.objects, ID(MODULE, 41));
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	IS(module->module.seen_count, 1);
	CU_ASSERT_PTR_NOT_NULL(ckt_objects_find(&ckt_worker.objects, ID(FUNCTION, 41)));
	/* On another model, code is needed for it: PTX is. */
	l.other_model = true;
	IS(ckt_module_kind.check_code(&l), 0);
	m->hash[0] ^= 1;
	IS(ckt_module_kind.check_code(&l), -EBADMSG);
	image_free(image);
	image_files_close();
	ckt_module_unload(&ckt_worker, module);
}

UNIT_SUITE(module_image, {"module", test_module})
