/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the objects of a session by the tables of their kinds: those that the journal does not
 * make, and the checks before.
 */
#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/object_kind.h"

int ckt_load_check_objects(struct ckt_loading *l)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->check)
			error = (*kind)->check(l);
	return error;
}

int ckt_load_begin(struct ckt_loading *l)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->begin)
			error = (*kind)->begin(l);
	return error;
}

int ckt_load_check_code(struct ckt_loading *l)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->check_code)
			error = (*kind)->check_code(l);
	return error;
}

int ckt_load_contents_loaded(struct ckt_loading *l)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->contents_loaded)
			error = (*kind)->contents_loaded(l);
	return error;
}

int ckt_load_ahead(struct ckt_loading *l)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->load_ahead)
			error = (*kind)->load_ahead(l);
	return error;
}

/* A list of the image begins with its length: XDR's arrays are a u_int and a pointer. */
static u_int length(const ckt_image *image, size_t list)
{
	return list ? *(const u_int *)(const void *)((const char *)image + list) : 0;
}

static int load_kind(struct ckt_loading *l, const struct ckt_object_kind *kind)
{
	int error = 0;
	int64_t begun = ckt_now_ns();
	for (u_int i = 0; kind->load && i < length(&l->image, kind->list) && !error; i++)
		error = kind->load(l, i);
	if (!error && kind->load_rest)
		error = kind->load_rest(l);
	ckt_debug("restore: %s: %.1f ms", kind->name, (double)(ckt_now_ns() - begun) * 1e-6);
	return error;
}

int ckt_load_objects(struct ckt_loading *l, enum ckt_load_stage stage)
{
	int error = 0;
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->stage == stage && ((*kind)->load || (*kind)->load_rest))
			error = load_kind(l, *kind);
	return error;
}
