/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries' code in a checkpoint image, and its uses as steps of the journal; see code.h. */
#include <errno.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/libs/code/code_table.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

enum { BEGINNING = 4096 };

int ckt_code_save(struct ckt_saving *s)
{
	ckt_image *image = &s->image;
	image->codes.codes_val = ckt_save_list(s, ckt_code_count(), sizeof(ckt_image_code));
	image->code_uses.code_uses_val =
		ckt_save_list(s, ckt_code_use_count(), sizeof(ckt_image_code_use));
	for (uint32_t i = 0; i < ckt_code_count() && !s->no_memory; i++) {
		const struct ckt_code *code = ckt_code_entry(i);
		ckt_image_code *saved = &image->codes.codes_val[image->codes.codes_len++];
		*saved = (ckt_image_code){.file = ckt_save_string(s, code->file),
			.offset = code->offset,
			.size = code->size,
			.preserved = code->preserved,
			.own = code->own};
		memcpy(saved->hash, code->hash, sizeof saved->hash);
	}
	for (uint32_t i = 0; i < ckt_code_use_count() && !s->no_memory; i++) {
		const struct ckt_code_use *use = ckt_code_use_at(i);
		image->code_uses.code_uses_val[image->code_uses.code_uses_len++] =
			(ckt_image_code_use){.kind = use->kind,
				.code = use->code,
				.symbol = ckt_save_string(s, use->symbol)};
	}
	return ckt_save_has_memory(s);
}

int ckt_code_check(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	const char *wrong = NULL;
	for (u_int i = 0; i < image->codes.codes_len && !wrong; i++)
		if (strchr(image->codes.codes_val[i].file, '/') || !image->codes.codes_val[i].size)
			wrong = "does not name a library";
	for (u_int i = 0; i < image->code_uses.code_uses_len && !wrong; i++) {
		const ckt_image_code_use *use = &image->code_uses.code_uses_val[i];
		if (use->code >= image->codes.codes_len)
			wrong = "is used but missing";
		else if (use->kind < CKT_CODE_KERNEL || use->kind > CKT_CODE_MODULE_UNLOAD)
			wrong = "is used in a way that this Cricket does not know";
	}
	for (u_int i = 0; i < image->journal.journal_len && !wrong; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_CODE &&
			image->journal.journal_val[i].id >= image->code_uses.code_uses_len)
			wrong = "has a step in the journal that is not described";
	return wrong
		? ckt_load_refuse(l, -EBADMSG, "the image is damaged: code of a library %s", wrong)
		: 0;
}

/* The bytes if they have not changed; otherwise NULL and the reason. */
static const uint8_t *find_bytes(
	const struct ckt_worker *worker, const ckt_image_code *code, const char **ret_wrong)
{
	uint8_t hash[CKT_HASH_SIZE];
	if (!code->file[0]) {
		const struct ckt_blob *blob =
			ckt_blobs_find(&worker->blobs, (const uint8_t *)code->hash);
		*ret_wrong = "the image does not hold it";
		return blob && blob->size == code->size ? blob->data : NULL;
	}
	const uint8_t *data = ckt_code_find_file(code->file, code->offset, code->size);
	*ret_wrong = "no such library is open here, or it is another build";
	if (!data)
		return NULL;
	ckt_blob_hash(data, code->size < BEGINNING ? code->size : BEGINNING, hash);
	return memcmp(hash, code->hash, sizeof hash) ? NULL : data;
}

/*
 * Logs missing code but does not refuse it: the addresses show whether it matters
 * (moved_variables.h).
 */
static void tell_missing(
	struct ckt_loading *l, const ckt_image_code *code, const char *symbol, const char *wrong)
{
	static bool told;
	if (!told)
		ckt_worker_note(l->worker,
			"code of the library %s cannot be loaded in its old order "
			"(%s%s%s): variables of modules may move",
			code->file[0] ? code->file : "that was made at run time",
			*symbol ? symbol : "a module", *symbol ? ": " : ": ", wrong);
	told = true;
}

int ckt_code_again(struct ckt_loading *l, const ckt_image_journal *entry)
{
	const ckt_image_code_use *use = &l->image.code_uses.code_uses_val[entry->id];
	const ckt_image_code *saved = &l->image.codes.codes_val[use->code];
	struct ckt_code known = {.offset = saved->offset,
		.size = saved->size,
		.preserved = saved->preserved,
		.own = saved->own,
		.kept = !saved->file[0]};
	const char *wrong;
	uint32_t code;
	memcpy(known.hash, saved->hash, sizeof known.hash);
	if (strlen(saved->file) < sizeof known.file)
		strcpy(known.file, saved->file);
	const uint8_t *data = find_bytes(l->worker, saved, &wrong);
	CUresult result = ckt_worker_use_context(l->worker, entry->context);
	if (result)
		return ckt_load_fail(l, result, "the context of a library's code", entry->context);
	if (!data) {
		tell_missing(l, saved, use->symbol, wrong);
		return 0;
	}
	if (!ckt_code_add_known(&known, &code))
		return ckt_load_refuse(
			l, -ENOMEM, "the worker has no memory for the list of libraries' code");
	/* The library's own options may be needed before the driver accepts the code. */
	result = ckt_code_use_ahead(code, data, (enum ckt_code_use_kind)use->kind, use->symbol);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		return ckt_load_fail(
			l, result, "code of a library, used first in context", entry->context);
	if (result)
		tell_missing(l, saved, use->symbol, "the driver rejects it");
	return 0;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_CODE, .replay = ckt_code_again},
	{0},
};

const struct ckt_object_kind ckt_code_kind = {
	.name = "code of libraries",
	.steps = steps,
	.save_rest = ckt_code_save,
	.check = ckt_code_check,
};
